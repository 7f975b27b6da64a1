"""FedSGD and FedBCD with a network over the outputs (F-29), against JAX and by hand."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from stalesim.simulator.engine.simulation import Prepared, key_of
from stalesim.simulator.problem import losses
from tests.reference.gossip_support import ran
from tests.runs import prepared, rows_of
from tests.support import SGD

ROWS = 12
BASE: dict[str, Any] = {
    "engine": {"precision": "float64"},
    "stop": {"commits": ROWS},
    "problem": {
        "data": {"kind": "digits", "scale": "unit", "limit": 60},
        "partition": {"kind": "vertical", "parties": 3},
        "model": {"kind": "dense", "hidden": [7]},
        "server": {"width": 5, "combine": "weighted_sum", "hidden": [6]},
        "l2": 0.01,
    },
    "protocol": {"kind": "rounds"},
}
ALGORITHMS = {
    "fed_sgd": {"kind": "fed_sgd"},
    "fed_bcd": {"kind": "fed_bcd", "local_steps": 3},
    "frozen": {"kind": "fed_bcd", "local_steps": 3, "local_gradient": "frozen"},
    "fed_pbcd": {"kind": "fed_pbcd", "local_steps": 3, "proximal": 0.5},
    "vafl": {"kind": "vafl", "upload": "all"},
}


@pytest.fixture(autouse=True)
def _double():
    with jax.enable_x64(True):
        yield


def plan_of(name: str, **changes: Any) -> Prepared:
    algorithm = {"batch": 8, "step_size": 0.2, **ALGORITHMS[name]}
    base = {k: v for k, v in SGD.items() if k != "algorithm"}
    return prepared(base, BASE, {"algorithm": algorithm}, changes)


def end_of(plan: Prepared) -> Any:
    return ran([plan])[0].state


def slow(plan: Prepared) -> tuple[np.ndarray, np.ndarray]:
    """Local steps one party after the other, gradients of the whole by JAX."""
    problem, config = plan.problem, plan.run.scenario.algorithm
    key = key_of(plan.run.seed)
    weights, server = problem.start(key), problem.start_server(key)
    _, samples = rows_of(plan)
    M, last = problem.num_parties, problem.num_parties - 1
    apply = problem.embedding.apply
    for row in range(ROWS):
        ids = samples[row, 0]
        x, y = problem.x[:, ids], problem.y[ids]

        def loss(h: Any, server: Any, y: Any = y) -> Any:
            logits = problem.server.apply(server, h)
            return losses.per_sample("softmax", logits, y).mean()

        h = jnp.stack([apply(weights[m], x[m]) for m in range(M)])
        at_exchange = jax.grad(loss)(h, server)
        ends, moved_server = [], server
        for m in range(M):
            w, s = weights[m], server
            for _ in range(getattr(config, "local_steps", 1)):

                def own(w: Any, s: Any, m: int = m, x: Any = x, h: Any = h) -> Any:
                    return loss(h.at[m].set(apply(w, x[m])), s)

                def linear(
                    w: Any, s: Any, m: int = m, x: Any = x, to_h: Any = at_exchange
                ) -> Any:
                    del s
                    return jnp.sum(to_h[m] * apply(w, x[m]))

                frozen = getattr(config, "local_gradient", "") == "frozen" and m != last
                to_w, to_s = jax.grad(linear if frozen else own, (0, 1))(w, s)
                pull = getattr(config, "proximal", 0.0)
                step_w = to_w + 0.01 * w + pull * (w - weights[m])
                step_s = to_s + pull * (s - server)
                w = w - 0.2 * step_w
                s = s - 0.2 * step_s if m == last else s
            ends.append(w)
            moved_server = s if m == last else moved_server
        weights, server = jnp.stack(ends), moved_server
    return np.asarray(weights), np.asarray(server)


@pytest.mark.long
@pytest.mark.parametrize("name", [name for name in ALGORITHMS if name != "vafl"])
def test_local_steps_are_those_of_the_whole_loss(name: str) -> None:
    plan = plan_of(name)
    state = end_of(plan)
    weights, server = slow(plan)
    np.testing.assert_allclose(state.weights, weights, 1e-9, 1e-12)
    np.testing.assert_allclose(state.server, server, 1e-9, 1e-12)
    assert (
        np.abs(server - plan.problem.start_server(key_of(plan.run.seed))).max() > 1e-3
    )


def test_fedsgd_is_synchronous_vafl_on_the_same_batches() -> None:
    """Both are centralised SGD of all blocks (X-1), with the network as one of them."""
    theirs = end_of(plan_of("vafl", protocol={"kind": "synchronous"}))
    mine = end_of(plan_of("fed_sgd"))
    np.testing.assert_allclose(mine.weights, theirs.weights, 1e-9, 1e-12)
    np.testing.assert_allclose(mine.server, theirs.server, 1e-9, 1e-12)


@pytest.mark.parametrize("order", ["asynchronous", "sequential"])
def test_only_the_labelled_party_moves_the_network(order: str) -> None:
    protocol = {"kind": "asynchronous"}
    if order == "sequential":
        protocol = {"kind": "rounds", "order": "sequential"}
    plan = plan_of("fed_bcd", protocol=protocol, stop={"commits": 1})
    state = end_of(plan)
    rows, _ = rows_of(plan)
    worker, last = int(rows.worker[0, 0]), plan.problem.num_parties - 1
    start = plan.problem.start_server(key_of(plan.run.seed))
    assert (worker == last) == bool(np.any(np.asarray(state.server != start)))
    assert worker != last
