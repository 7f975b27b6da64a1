"""Optimisers of workers in gossip and of parties, against NumPy.

Those of a server and of its clients are in `test_methods`.
"""

from typing import Any

import jax
import numpy as np
import pytest

from stalesim.simulator.engine.simulation import Prepared, _program, _runner
from stalesim.simulator.files.timeline import NO_WORKER, Kind
from tests.reference import gossip_support
from tests.reference.gossip_support import ran
from tests.reference.server_twin import Optimizer
from tests.runs import prepared, rows_of

ETA = 0.03
ADAMW = {"kind": "adamw", "learning_rate": ETA, "weight_decay": 0.3}
ADAMW |= {"b1": 0.8, "b2": 0.95, "eps": 1e-6}
MOMENTUM = {"kind": "sgd", "learning_rate": ETA, "momentum": 0.6}
NEAR = {"rtol": 1e-7, "atol": 1e-9}
"""Adam divides by roots of squares: where a gradient is of the size of its epsilon,
rounding grows."""
THREE = {"protocol": {"kind": "t_synchronous", "t": 3}}
TOGETHER = {"protocol": {"kind": "synchronous"}}


class Stepping:
    """A worker's optimiser, with its state."""

    def __init__(self, options: dict[str, Any]) -> None:
        self._rule, self._made = Optimizer(options), 0

    def step(self, w: np.ndarray, g: np.ndarray) -> np.ndarray:
        way = self._rule(g, w, self._made)
        self._made += 1
        return w - way


def end_of(plan: Prepared) -> np.ndarray:
    """Returns the last model of a run."""
    (found,) = ran([plan])
    return np.asarray(found.model)


def plan_of(*changes: dict[str, Any]) -> Prepared:
    """Prepares a run of parties whose optimiser has the step size."""
    usual = {
        "engine": {"precision": "float64", "chunk": 32},
        "stop": {"commits": 40},
        "evaluate": {"every": {"commits": 40}, "metrics": ["objective"]},
        "algorithm": {"step_size": None},
    }
    with jax.enable_x64(True):
        return prepared(VERTICAL, usual, *changes, seed=5)


@pytest.mark.parametrize("options", [MOMENTUM, ADAMW], ids=lambda o: o["kind"])
def test_each_worker_of_gossip_has_its_own_state(options: dict[str, Any]) -> None:
    """In rounds with everyone: gradients at one model, own steps, then the mean."""
    plan = gossip_support.plan_of(
        gossip_support.gossip(average="all"),
        {"algorithm": {"kind": "psgd", "batch": 8, "step_size": None}},
        {"algorithm": {"optimizer": options}},
        gossip_support.ROUNDS,
    )
    _, rounds = gossip_support.rounds_of(plan)
    gradient = gossip_support.gradient_of(plan)
    w, K = gossip_support.world_of(plan)
    own = [Stepping(options) for _ in range(K)]
    for work in rounds:
        models = [
            own[k].step(w, gradient(w, k, batch)) for k, (batch, _) in enumerate(work)
        ]
        w = np.mean(models, axis=0)
    np.testing.assert_allclose(end_of(plan).ravel(), w, **NEAR)
    assert np.abs(w).max() > 0.05


@pytest.mark.parametrize("order", ["average_then_step", "during"])
def test_momentum_in_pairs_agrees_with_the_twin(order: str) -> None:
    """The optimiser by its name makes the step that the direction made."""
    world = gossip_support.gossip(order=order, **gossip_support.GRAPHS["bipartite"])
    steps = {"kind": "piecewise", "values": [ETA, ETA], "epochs": [1]}
    direction = {"optimizer": {"kind": "momentum", "decay": 0.6}, "step_size": steps}
    method = {"algorithm": {"kind": "psgd", "batch": 8}}
    plan = gossip_support.plan_of(world, method, {"algorithm": direction})
    other = gossip_support.plan_of(
        *(world, method, {"algorithm": {"step_size": None, "optimizer": MOMENTUM}})
    )
    rows, expected = gossip_support.twin_of(plan)
    assert rows.time.size > 20
    (found,) = ran([other])
    theta = expected.theta[-1]
    np.testing.assert_allclose(found.model.ravel(), theta, *gossip_support.NEAR)


VERTICAL = {
    "problem": {
        "data": {"kind": "breast_cancer", "scale": "standard"},
        "partition": {"kind": "vertical", "parties": 4},
        "l2": 0.01,
    },
    "clients": {"compute": {"law": "expon", "scale": "m"}},
}


def parties_of(plan: Prepared) -> tuple[np.ndarray, np.ndarray, list[np.ndarray], Any]:
    """Returns features `[M, N, P]`, labels, the batches of rows, and the rows."""
    rows, samples = rows_of(plan)
    x, y = np.asarray(plan.problem.x), np.asarray(plan.problem.y)
    return x, y, list(samples), rows


def last_state(plan: Prepared) -> Any:
    """Executes a run of parties; returns its last state."""
    with jax.enable_x64(True):
        runner = _runner([plan], _program([plan], "compiled"))
        for _ in runner.records():
            pass
        return runner._carry.state


def slopes(z: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Derivatives of a batch's mean logistic loss by its log odds."""
    return (1 / (1 + np.exp(-z)) - y) / len(y)


@pytest.mark.parametrize("protocol", [{}, THREE, TOGETHER])
def test_each_party_of_vafl_has_its_own_state(protocol: dict[str, Any]) -> None:
    """With nothing stale, parties step on their blocks of one logistic regression."""
    plan = plan_of(
        protocol,
        {"algorithm": {"kind": "vafl", "upload": "current", "batch": 16}},
        {"algorithm": {"optimizer": ADAMW}},
    )
    x, y, samples, rows = parties_of(plan)
    M, _, P = x.shape
    w, bias = np.zeros((M, P)), np.zeros(1)
    own, of_server = [Stepping(ADAMW) for _ in range(M)], Stepping(ADAMW)
    for row in range(rows.time.size):
        present = rows.worker[row][rows.worker[row] != NO_WORKER]
        if plan.coordinated:
            present = np.arange(M)
        moved, to_server = w.copy(), []
        for column, m in enumerate(present):
            batch = samples[row][0 if plan.coordinated else column]
            z = sum(x[k, batch] @ w[k] for k in range(M)) + bias
            error = slopes(z, y[batch])
            g = error @ x[m, batch] + 0.01 * w[m]
            moved[m] = own[m].step(w[m], g)
            to_server.append(error.sum())
        bias = of_server.step(bias, np.array([np.mean(to_server)]))
        w = moved
    found = last_state(plan)
    np.testing.assert_allclose(np.asarray(found.weights)[:, 0], w, **NEAR)
    np.testing.assert_allclose(np.asarray(found.server), bias, **NEAR)
    assert np.abs(w).max() > 0.1


@pytest.mark.parametrize("order", ["parallel", "sequential"])
def test_each_party_of_fedbcd_has_its_own_state(order: str) -> None:
    """Local steps of AdamW with what the others sent frozen; states go on."""
    method = {"kind": "fed_bcd", "batch": 16, "local_steps": 3, "optimizer": ADAMW}
    plan = plan_of(
        {"protocol": {"kind": "rounds", "order": order}, "algorithm": method},
    )
    x, y, samples, rows = parties_of(plan)
    M, _, P = x.shape
    w, own = np.zeros((M, P)), [Stepping(ADAMW) for _ in range(M)]
    for row in range(rows.time.size):
        assert rows.kind[row] == Kind.COMMIT
        batch = samples[row][0]
        sent = np.array([x[k, batch] @ w[k] for k in range(M)])
        moved = w.copy()
        for m in rows.worker[row][rows.worker[row] != NO_WORKER]:
            others = sent.sum(axis=0) - sent[m]
            for _ in range(3):
                error = slopes(others + x[m, batch] @ moved[m], y[batch])
                g = error @ x[m, batch] + 0.01 * moved[m]
                moved[m] = own[m].step(moved[m], g)
        w = moved
    found = last_state(plan)
    np.testing.assert_allclose(np.asarray(found.weights)[:, 0], w, **NEAR)
    assert np.abs(w).max() > 0.1
