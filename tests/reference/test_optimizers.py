"""Optimisers at the server, at clients, in gossip and at parties, against NumPy."""

from collections.abc import Callable
from typing import Any

import jax
import numpy as np
import pytest

from stalesim.simulator.simulation import Prepared, _program, _runner
from stalesim.simulator.timeline import NO_WORKER, Kind
from tests.reference import federated_twin, gossip_support
from tests.reference.gossip_support import ran
from tests.reference.optimizer_twin import Adam, Optimizer, Rate, Sgd, clipped, cosine
from tests.reference.test_federated import BASE, program_of
from tests.runs import prepared, rows_of
from tests.support import everything

ETA = 0.03
ADAM = {"kind": "adam", "learning_rate": ETA}
ADAMW = {
    "kind": "adamw",
    "learning_rate": ETA,
    "weight_decay": 0.3,
    "b1": 0.8,
    "b2": 0.95,
    "eps": 1e-6,
}
NEAR = {"rtol": 1e-7, "atol": 1e-9}
"""Adam divides by roots of squares: where a gradient is of the size of its epsilon,
1e-8, rounding of 1e-16 is 1e-8 of a step."""
THREE = {"protocol": {"kind": "t_synchronous", "t": 3}}
TOGETHER = {"protocol": {"kind": "synchronous"}}
BUFFERED = {"protocol": {"kind": "buffered", "size": 3}}
COSINE = {"schedule": "cosine_decay_schedule", "init_value": 0.05, "decay_steps": 30}


def adamw() -> Optimizer:
    return Adam(0.8, 0.95, 1e-6, 0.3)


def always(_: int) -> float:
    return ETA


def end_of(plan: Prepared, mode: str = "compiled") -> np.ndarray:
    """Returns the last model of a run."""
    (found,) = ran([plan], mode)
    return np.asarray(found.model)


def plan_of(*changes: dict[str, Any]) -> Prepared:
    """Prepares a run whose optimiser has the step size."""
    steps = {"algorithm": {"step_size": None}}
    with jax.enable_x64(True):
        return prepared(BASE, steps, *changes, seed=5)


def problem_of(plan: Prepared) -> tuple[federated_twin.Problem, np.ndarray]:
    """Returns the data as the twin takes them, and a model of zeros."""
    problem = plan.problem
    data = federated_twin.Problem(
        *(np.asarray(problem.x), np.asarray(problem.y), problem.loss),
        float(problem.l2),
    )
    return data, np.zeros((plan.shape.num_outputs, problem.x.shape[1]))


def program(plan: Prepared) -> list[federated_twin.Row]:
    with jax.enable_x64(True):
        shape = (plan.shape.num_outputs, plan.problem.x.shape[1])
        return program_of(plan, shape)


def at_server(
    plan: Prepared, optimizer: Optimizer, rate: Rate = always, bound: float = np.inf
) -> np.ndarray:
    """Plays commits whose mean gradient an optimiser at the server takes."""
    data, w = problem_of(plan)
    versions = [w]
    for row in program(plan):
        found = []
        for c in row.contributions:
            read = versions[c.read_version]
            found.append(federated_twin.mean_gradient(data, read, c.batches[0])[0])
        g = clipped(np.mean(found, axis=0), bound)
        made = len(versions) - 1
        versions.append(optimizer.step(versions[-1], g, rate(made)))
    return versions[-1]


@pytest.mark.parametrize("mode", ["stepwise", "compiled"])
@pytest.mark.parametrize("protocol", [{}, THREE])
def test_adam_at_the_server_agrees_with_the_twin(
    protocol: dict[str, Any], mode: str
) -> None:
    plan = plan_of(protocol, {"algorithm": {"optimizer": ADAM}})
    found = end_of(plan, mode)
    np.testing.assert_allclose(found, at_server(plan, Adam()), **NEAR)
    assert np.abs(found).max() > 0.1


def test_a_schedule_and_clipping_at_the_server_agree_with_the_twin() -> None:
    options = ADAMW | {"learning_rate": COSINE, "clip_norm": 0.5}
    plan = plan_of({"algorithm": {"optimizer": options}})
    rate = cosine(0.05, 30)
    expected = at_server(plan, adamw(), rate, 0.5)
    np.testing.assert_allclose(end_of(plan), expected, **NEAR)
    # Neither is without effect.
    for other in (at_server(plan, adamw(), rate), at_server(plan, adamw(), always)):
        assert np.abs(other - expected).max() > 1e-3


def test_momentum_at_the_server_agrees_with_the_twin() -> None:
    options = {"kind": "sgd", "learning_rate": ETA, "momentum": 0.7}
    plan = plan_of({"algorithm": {"optimizer": options}})
    np.testing.assert_allclose(end_of(plan), at_server(plan, Sgd(0.7)), **NEAR)


def at_clients(plan: Prepared, *, kept: bool, rate: Rate = always) -> np.ndarray:
    """Plays jobs of local AdamW steps; the server adds up the mean move.

    A buffer is applied when it is full, each move weighted by its staleness.
    """
    config = plan.run.scenario.algorithm
    data, w = problem_of(plan)
    versions, own, buffer = [w], {}, []
    jobs = job_numbers(plan)
    for row, numbers in zip(program(plan), jobs, strict=True):
        for c, job in zip(row.contributions, numbers, strict=True):
            if not kept or c.client not in own:
                own[c.client] = adamw()
            start = y = versions[c.read_version]
            for q, batch in enumerate(c.batches):
                g, _ = federated_twin.mean_gradient(data, y, batch)
                y = own[c.client].step(y, g, rate(job * len(c.batches) + q))
            staleness = len(versions) - 1 - c.read_version
            weight = (1 + staleness) ** -0.5 if config.kind == "fed_buff" else 1.0
            buffer.append(weight * (start - y))
        if row.kind == "commit":
            versions.append(versions[-1] - np.mean(buffer, axis=0))
            buffer = []
    return versions[-1]


def job_numbers(plan: Prepared) -> list[list[int]]:
    """Returns the number of each contribution's job, row by row."""
    rows, _ = rows_of(plan)
    present = rows.worker != NO_WORKER
    return [job[here].tolist() for job, here in zip(rows.job, present, strict=True)]


CLIENTS = {
    "asynchronous": {"algorithm": {"kind": "sgd"}},
    "federated averaging": {"algorithm": {"kind": "sgd"}, **TOGETHER},
    "FedBuff": {"algorithm": {"kind": "fed_buff", "batch": 7}, **BUFFERED},
}


@pytest.mark.parametrize("state", ["anew", "kept"])
@pytest.mark.parametrize("name", CLIENTS)
def test_adamw_at_clients_agrees_with_the_twin(name: str, state: str) -> None:
    options = {"local_steps": 3, "local_optimizer": ADAMW | {"state": state}}
    plan = plan_of(CLIENTS[name], {"algorithm": options})
    found = end_of(plan)
    np.testing.assert_allclose(found, at_clients(plan, kept=state == "kept"), **NEAR)
    other = at_clients(plan, kept=state != "kept")
    assert np.abs(found - other).max() > 1e-3


def test_a_clients_schedule_counts_its_own_local_steps() -> None:
    options = {"local_steps": 2, "local_optimizer": ADAMW | {"learning_rate": COSINE}}
    plan = plan_of({"algorithm": options})
    expected = at_clients(plan, kept=False, rate=cosine(0.05, 30))
    np.testing.assert_allclose(end_of(plan), expected, **NEAR)


@pytest.mark.parametrize(
    ("options", "make"),
    [
        (
            {"kind": "sgd", "learning_rate": ETA, "momentum": 0.6},
            lambda: Sgd(0.6),
        ),
        (ADAMW, adamw),
    ],
)
def test_each_worker_of_gossip_has_its_own_state(
    options: dict[str, Any], make: Callable[[], Optimizer]
) -> None:
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
    own = [make() for _ in range(K)]
    for work in rounds:
        models = [
            own[k].step(w, gradient(w, k, batch), ETA)
            for k, (batch, _) in enumerate(work)
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
    named = {"kind": "sgd", "learning_rate": ETA, "momentum": 0.6}
    method = {"algorithm": {"kind": "psgd", "batch": 8}}
    plan = gossip_support.plan_of(world, method, {"algorithm": direction})
    other = gossip_support.plan_of(
        *(world, method, {"algorithm": {"step_size": None, "optimizer": named}})
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
        VERTICAL,
        protocol,
        {"algorithm": {"kind": "vafl", "upload": "current", "batch": 16}},
        {"algorithm": {"optimizer": ADAMW}},
    )
    x, y, samples, rows = parties_of(plan)
    M, _, P = x.shape
    w, bias = np.zeros((M, P)), np.zeros(1)
    own, of_server = [adamw() for _ in range(M)], adamw()
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
            moved[m] = own[m].step(w[m], g, ETA)
            to_server.append(error.sum())
        bias = of_server.step(bias, np.array([np.mean(to_server)]), ETA)
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
        VERTICAL,
        {"protocol": {"kind": "rounds", "order": order}, "algorithm": method},
    )
    x, y, samples, rows = parties_of(plan)
    M, _, P = x.shape
    w, own = np.zeros((M, P)), [adamw() for _ in range(M)]
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
                moved[m] = own[m].step(moved[m], g, ETA)
        w = moved
    found = last_state(plan)
    np.testing.assert_allclose(np.asarray(found.weights)[:, 0], w, **NEAR)
    assert np.abs(w).max() > 0.1


def test_what_is_lost_leaves_a_kept_state_as_it_was() -> None:
    """A client goes on from its last job that was applied."""
    losses = {"clients": {"loss": {"chance": 0.3, "timeout": 1.0}}}
    options = {"local_steps": 2, "local_optimizer": ADAMW | {"state": "kept"}}
    plan = plan_of(losses, {"algorithm": options})
    _, jobs, _ = everything(plan.timeline)
    ended = {int(outcome) for outcome in jobs.outcome}
    assert len(ended) > 1
    np.testing.assert_allclose(end_of(plan), at_clients(plan, kept=True), **NEAR)
