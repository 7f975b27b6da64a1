"""FedBCD for transfer learning against a blind NumPy twin, and its refusals."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from stalesim.simulator.engine.simulation import Prepared, key_of
from stalesim.simulator.problem.vertical import LABELLED, OTHER
from stalesim.simulator.scenario.study import merge
from tests.reference import ftl_twin as twin
from tests.reference.gossip_support import NEAR, Ran, ran
from tests.reference.layers_twin import Layer
from tests.reference.test_fedbcd import local_of
from tests.runs import execute, prepared, rows_of

HIDDEN = 6
BASE: dict[str, Any] = {
    "problem": {
        "partition": {
            "parties": None,
            "groups": {"profile": ["0-8"], "bills": ["9-29"]},
        },
        "model": {"kind": "mlp", "hidden": HIDDEN},
        "transfer": {"overlap": 0.2, "alpha": 3.0},
        "reduction": "sum",
        "l2": 0.01,
    },
    "clients": {"compute": {"law": "constant", "value": 1.0}},
    "protocol": {"kind": "rounds"},
    "algorithm": {
        "kind": "fed_bcd",
        "step_size": 0.004,
        "batch": 91,
        "local_steps": 3,
    },
    "stop": {"commits": 12},
    "evaluate": {"every": {"commits": 12}, "metrics": ["objective", "test_auc"]},
    "engine": {"precision": "float64", "chunk": 8},
}
STEP = 0.004
RUNS: dict[str, dict[str, Any]] = {
    "full batches": {},
    "one step": {"algorithm": {"kind": "fed_sgd", "step_size": STEP, "batch": 91}},
    "minibatches": {"algorithm": {"batch": 17}},
    "a pull": {
        "algorithm": {
            "kind": "fed_pbcd",
            "step_size": STEP,
            "batch": 40,
            "local_steps": 4,
            "proximal": 2.0,
        }
    },
}


def plan_of(change: dict[str, Any], number: int = 0) -> Prepared:
    return prepared(merge(BASE, change), number=number)


def theta(plan: Prepared, party: int, weights: np.ndarray) -> np.ndarray:
    """Lays a party's weights out as the twin does, without padding."""
    held, P = (
        plan.shares.num_features[party],
        plan.problem.embedding.num_features,
    )
    first = weights[: HIDDEN * P].reshape(HIDDEN, P)
    assert (first[:, held:] == 0).all()
    return np.concatenate([first[:, :held].T.ravel(), weights[HIDDEN * P :]])


def assert_agree(plan: Prepared, found: Ran) -> None:
    with jax.enable_x64(True):
        start = np.asarray(plan.problem.start(key_of(plan.run.seed)))
    _, samples = rows_of(plan)
    data, config = plan.problem, plan.run.scenario.algorithm
    x = [np.asarray(data.x[k])[:, :p] for k, p in enumerate(plan.shares.num_features)]
    problem = twin.Problem(
        layers=(
            Layer(x[LABELLED].shape[1], HIDDEN, "tanh"),
            Layer(x[OTHER].shape[1], HIDDEN, "tanh"),
        ),
        x=(x[LABELLED], x[OTHER]),
        y=2.0 * np.asarray(data.y) - 1,
        overlap=np.asarray(plan.problem.common),
        alpha=3.0,
        l2=0.01,
    )
    begun = (
        theta(plan, LABELLED, start[LABELLED]),
        theta(plan, OTHER, start[OTHER]),
    )
    history, losses = twin.fedbcd(
        problem, begun, list(samples[:, 0]), STEP, local_of(config)
    )
    for party, expected, first in zip(
        (LABELLED, OTHER), history[-1], begun, strict=True
    ):
        mine = theta(plan, party, np.asarray(found.state[party]))
        np.testing.assert_allclose(mine, expected, *NEAR)
        assert np.abs(expected - first).max() > 1e-3
    np.testing.assert_allclose(found.infos["loss"], losses, 1e-9)


@pytest.mark.parametrize("name", RUNS)
def test_the_kernel_agrees_with_the_twin(name: str) -> None:
    plan = plan_of(RUNS[name])
    assert_agree(plan, ran([plan])[0])


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["stepwise", "shared"])
def test_engines_agree_with_the_twin(mode: str) -> None:
    plans = [plan_of({}, number) for number in (0, 1)]
    plans = plans[: 1 if mode == "stepwise" else 2]
    for plan, found in zip(plans, ran(plans, mode), strict=True):
        assert_agree(plan, found)


def test_in_sequence_each_party_sees_what_the_other_left() -> None:
    order = {"protocol": {"kind": "rounds", "order": "sequential"}}
    with jax.enable_x64(True):
        plan = plan_of(merge(order, {"stop": {"commits": 2}}))
        state = ran([plan])[0].state
        _, samples = rows_of(plan)
        assert (samples[0] == samples[1]).all(), "one batch a round"
        problem, l2 = plan.problem, 0.01
        weights = problem.start(key_of(plan.run.seed))
        ids = jnp.asarray(samples[0, 0])
        y, present = problem.y[ids], jnp.ones(ids.size, bool)

        def loss(party: int, own: Any, others: Any) -> Any:
            both = {party: own, 1 - party: others}
            u = [problem.embed(k, both[k], ids) for k in (OTHER, LABELLED)]
            phi = problem.prototype(both[LABELLED])
            return problem.common_loss(phi, u[LABELLED], u[OTHER], y, present)

        for party in (OTHER, LABELLED):
            own, others = weights[party], weights[1 - party]
            for _ in range(3):
                slope = jax.grad(lambda w, p=party, o=others: loss(p, w, o))(own)
                own = own - STEP * (slope + l2 * own)
            weights = weights.at[party].set(own)
    np.testing.assert_allclose(state, weights, 1e-9, 1e-12)


def test_components_are_counted_as_bytes() -> None:
    plan = plan_of({})
    with jax.enable_x64(True):
        memory, _ = execute([plan])
    size = 4 * 91 * (HIDDEN * HIDDEN + 2 * HIDDEN)
    assert memory.column("evaluations", "upload_bytes")[-1] == 12 * size
    assert memory.column("evaluations", "download_bytes")[-1] == 12 * size
    assert memory.column("evaluations", "messages")[-1] == 2 * 12
