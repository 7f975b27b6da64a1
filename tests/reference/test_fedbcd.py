"""FedSGD, FedBCD and FedPBCD against a blind NumPy twin, in every mode."""

from typing import Any

import jax
import numpy as np
import pytest

from stalesim.simulator.engine.simulation import Prepared, key_of
from tests.reference import fedbcd_twin as twin
from tests.reference.gossip_support import NEAR, Ran, ran
from tests.reference.layers_twin import Linear, mlp
from tests.runs import prepared, rows_of

BATCH = 13
BASE: dict[str, Any] = {
    "problem": {"partition": {"parties": 4}, "l2": 0.01},
    "clients": {"compute": {"law": "expon", "scale": "m", "loc": 0.1}},
    "protocol": {"kind": "rounds"},
    "algorithm": {
        "kind": "fed_bcd",
        "step_size": 0.1,
        "batch": BATCH,
        "local_steps": 3,
    },
    "stop": {"commits": 24},
    "evaluate": {
        "every": {"commits": 24},
        "metrics": ["objective", "test_accuracy", "test_auc"],
    },
    "engine": {"precision": "float64", "chunk": 32},
}
SEQUENTIAL = {"protocol": {"kind": "rounds", "order": "sequential"}}
ASYNC = {"protocol": {"kind": "asynchronous"}}
FALLING = {"algorithm": {"step_size": {"kind": "inverse_root", "value": 0.3}}}
FROZEN = {"algorithm": {"local_gradient": "frozen"}}
TAYLOR = {"problem": {"loss": "taylor"}}
MLP = {"problem": {"model": {"kind": "mlp", "hidden": 5, "activation": "tanh"}}}
RELU = {"problem": {"model": {"kind": "mlp", "hidden": 5, "activation": "relu"}}}


def method(kind: str, **options: Any) -> dict[str, Any]:
    options = {"step_size": 0.1, "batch": BATCH, **options}
    return {"algorithm": {"kind": kind, **options}}


PULLED = method("fed_pbcd", local_steps=4, proximal=0.5)
ALONE = {"problem": {"partition": {"parties": 1}}}
RUNS: dict[str, tuple[dict[str, Any], ...]] = {
    "fed_sgd": (method("fed_sgd"),),
    "parallel": (),
    "parallel, falling": (FALLING,),
    "parallel, frozen": (FROZEN,),
    "parallel, taylor": (TAYLOR,),
    "parallel, mlp": (MLP,),
    "parallel, mlp, frozen": (RELU, FROZEN),
    "parallel, 17 parties": ({"problem": {"partition": {"parties": 17}}},),
    "proximal": (PULLED,),
    "proximal, mlp": (PULLED, MLP),
    "sequential": (SEQUENTIAL,),
    "sequential, one party": (SEQUENTIAL, ALONE),
    "sequential, frozen": (SEQUENTIAL, FROZEN),
    "sequential, mlp": (SEQUENTIAL, MLP),
    "asynchronous": (ASYNC,),
    "asynchronous, falling": (ASYNC, FALLING),
    "asynchronous, frozen": (ASYNC, FROZEN),
    "asynchronous, proximal, mlp": (ASYNC, PULLED, MLP),
}


def plan_of(*changes: dict[str, Any], number: int = 0) -> Prepared:
    return prepared(BASE, *changes, number=number, seed=number)


def ran_alone(*changes: dict[str, Any]) -> tuple[Prepared, Ran]:
    plan = plan_of(*changes)
    return plan, ran([plan])[0]


def flat(plan: Prepared, party: int, weights: np.ndarray) -> np.ndarray:
    """Lays a party's weights out as the twin does, without padding."""
    model, held = plan.run.scenario.problem.model, plan.shares.num_features[party]
    if model.kind == "linear":
        assert (weights[:, held:] == 0).all()
        return weights[:, :held].T.ravel()
    h, P = model.hidden, plan.problem.embedding.num_features
    first, bias, last = np.split(weights, [h * P, h * P + h])
    first = first.reshape(h, P)
    assert (first[:, held:] == 0).all()
    return np.concatenate([first[:, :held].T.ravel(), bias, last])


def twin_problem(plan: Prepared) -> tuple[twin.Problem, list[np.ndarray]]:
    problem, config = plan.problem, plan.run.scenario.problem
    widths, kind = plan.shares.num_features, config.model
    models: list[Any] = (
        [Linear(p) for p in widths]
        if kind.kind == "linear"
        else [mlp(p, kind.hidden, kind.activation) for p in widths]
    )
    x = [np.asarray(problem.x[k])[:, :p] for k, p in enumerate(widths)]
    y = 2.0 * np.asarray(problem.y) - 1
    loss = "taylor2" if problem.loss == "taylor" else "logistic"
    with jax.enable_x64(True):
        start = np.asarray(problem.start(key_of(plan.run.seed)))
    params = [flat(plan, k, start[k]) for k in range(len(widths))]
    return twin.Problem(models, x, y, loss, config.l2), params


def local_of(config: Any) -> twin.Local:
    """Returns what a method's parties do between exchanges."""
    return twin.Local(
        getattr(config, "local_steps", 1),
        getattr(config, "local_gradient", "recompute"),
        getattr(config, "proximal", 0.0),
    )


def twin_of(plan: Prepared) -> list[np.ndarray]:
    """Gives the twin the same batches and step sizes; returns the last parameters."""
    scenario = plan.run.scenario
    config, protocol = scenario.algorithm, scenario.protocol
    problem, params = twin_problem(plan)
    rows, samples = rows_of(plan)
    K, local = len(params), local_of(config)

    def step(t: int) -> float:
        falling = not isinstance(config.step_size, float)
        return float(0.3 / np.sqrt(t + 1)) if falling else 0.1

    if protocol.kind == "asynchronous":
        turns = [
            (int(k), ids[0]) for k, ids in zip(rows.worker[:, 0], samples, strict=True)
        ]
        steps = [step(row // K) for row in range(len(turns))]
        return twin.asynchronous(problem, params, turns, steps, local)[-1]
    sequential = protocol.order == "sequential"
    batches = samples[:: K if sequential else 1, 0]
    steps = [step(t) for t in range(len(batches))]
    history = twin.fedbcd(problem, params, batches, steps, local, sequential=sequential)
    return history[-1]


def assert_agree(plan: Prepared, found: Ran) -> None:
    expected, (_, begun) = twin_of(plan), twin_problem(plan)
    for party, theta in enumerate(expected):
        mine = flat(plan, party, np.asarray(found.state.weights[party]))
        np.testing.assert_allclose(mine, theta, *NEAR)
    moved = sum(np.sum((a - b) ** 2) for a, b in zip(expected, begun, strict=True))
    assert moved > 1e-4, "a run that goes nowhere shows nothing"


PLAIN = ("fed_sgd", "parallel", "sequential", "asynchronous")


@pytest.mark.parametrize(
    "name",
    [
        name if name in PLAIN else pytest.param(name, marks=pytest.mark.slow)
        for name in RUNS
    ],
)
def test_kernels_agree_with_the_twin(name: str) -> None:
    plan, found = ran_alone(*RUNS[name])
    assert_agree(plan, found)
    assert (found.infos["moved_norm"] > 0).all()


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["stepwise", "batched", "shared"])
@pytest.mark.parametrize("name", ["parallel", "sequential", "asynchronous"])
def test_engines_agree_with_the_twin(name: str, mode: str) -> None:
    steps = (0.1, FALLING["algorithm"]["step_size"])
    plans = [
        plan_of(*RUNS[name], {"algorithm": {"step_size": step}}, number=number)
        if mode != "shared"
        else plan_of(*RUNS[name], {"algorithm": {"step_size": step}})
        for number, step in enumerate(steps)
    ]
    plans = plans[:1] if mode == "stepwise" else plans
    for plan, found in zip(plans, ran(plans, mode), strict=True):
        assert_agree(plan, found)


def test_one_party_is_plain_sgd() -> None:
    plan, found = ran_alone(ALONE, method("fed_sgd"))
    _, samples = rows_of(plan)
    x, y = np.asarray(plan.problem.x[0]), np.asarray(plan.problem.y)
    w = np.zeros(x.shape[1])
    for ids in samples[:, 0]:
        error = 1 / (1 + np.exp(-x[ids] @ w)) - y[ids]
        w = w - 0.1 * (x[ids].T @ error / BATCH + 0.01 * w)
    np.testing.assert_allclose(found.state.weights[0, 0], w, *NEAR)


@pytest.mark.parametrize("t", [None, 3])
def test_asynchronously_one_step_is_vafl_without_a_server_model(t: int | None) -> None:
    protocol = {"protocol": {"kind": "t_synchronous", "t": t}} if t else ASYNC
    vafl = method("vafl", upload="batch", server_step_size=0.0)
    _, theirs = ran_alone(protocol, vafl)
    _, mine = ran_alone(protocol, method("fed_sgd"))
    np.testing.assert_allclose(mine.state.weights, theirs.state.weights, *NEAR)
    assert (np.asarray(theirs.state.server) == 0).all()
    for name in ("loss", "embedding_staleness_mean", "embedding_staleness_max"):
        np.testing.assert_allclose(
            mine.infos[name], theirs.infos[name], 1e-9, err_msg=name
        )


def test_a_run_says_the_largest_step_that_theorem_2_allows() -> None:
    plan, found = ran_alone()
    x = np.concatenate([np.asarray(part) for part in plan.problem.x], axis=1)

    def smoothness(x: np.ndarray) -> float:
        return 0.25 * np.linalg.norm(x, 2) ** 2 / len(x) + 0.01

    of_parties = [smoothness(np.asarray(part)) for part in plan.problem.x]
    root = np.sqrt(sum(np.square(of_parties)) + 3 * max(of_parties) ** 2)
    expected = min(1 / (2 * smoothness(x)), 1 / (2 * 3 * root))
    np.testing.assert_allclose(found.infos["step_bound"], expected, 1e-5)
