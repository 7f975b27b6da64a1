"""VAFL's kernel with networks at parties and server, against the twin and itself.

Both compute in float64; a run of 20 commits adds some 1e4 terms of order one, in
another order: 1e-9 relative, as of all twins (docs/design.md, "How it is checked").
"""

from itertools import combinations
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from stalesim.simulator.algorithms.optimizers.arrays import arrays_of
from stalesim.simulator.algorithms.vafl import smoothed
from stalesim.simulator.algorithms.vafl.noise import AT_START, draw, inside
from stalesim.simulator.engine.execute import Program
from stalesim.simulator.engine.runner import Runner
from stalesim.simulator.models.flat import split
from stalesim.simulator.models.party import hidden_shapes
from stalesim.simulator.simulation import (
    Prepared,
    _program,
    _row_stream,
    _runner,
    key_of,
)
from stalesim.simulator.timeline import NO_WORKER
from tests.reference import vafl_deep_twin
from tests.runs import prepared, rows_of
from tests.support import SGD

BASE = {
    "engine": {"precision": "float64"},
    "stop": {"commits": 20},
    "problem": {
        "data": {"kind": "digits", "scale": "unit", "limit": 60},
        "partition": {"kind": "vertical", "parties": 4},
        "model": {"kind": "dense", "hidden": [7]},
        "server": {"width": 5, "combine": "concat", "hidden": [6]},
        "l2": 0.01,
    },
    "algorithm": {
        "kind": "vafl",
        "batch": 8,
        "step_size": 0.2,
        "server_step_size": 0.05,
        "upload": "batch",
    },
}
NOISY = {"std": 0.3, "hidden": {"uniform": [0.2]}}
OWN_SERVER = {
    "build": "tests.own_models:server",
    # Without the options of the network whose place it takes.
    "combine": None,
    "hidden": None,
}
CASES: dict[str, dict[str, Any]] = {
    "async": {},
    "async all": {"algorithm": {"upload": "all"}},
    "nothing stale": {"algorithm": {"upload": "current"}},
    "nothing stale, t-sync": {
        "algorithm": {"upload": "current"},
        "protocol": {"kind": "t_synchronous", "t": 2},
    },
    "t-sync": {"protocol": {"kind": "t_synchronous", "t": 2}},
    "sync": {"protocol": {"kind": "synchronous"}},
    "weighted views": {
        "problem": {"server": {"combine": "weighted_sum", "views": 2}},
        "protocol": {"kind": "t_synchronous", "t": 3},
    },
    "sum": {"problem": {"server": {"combine": "sum"}}},
    "narrow parties": {"problem": {"partition": {"parties": 3}}},
    "own server": {"problem": {"server": OWN_SERVER}},
    "own server of views, t-sync": {
        "problem": {"server": {**OWN_SERVER, "views": 2}},
        "protocol": {"kind": "t_synchronous", "t": 2},
    },
    "own server, sync": {
        "problem": {"server": OWN_SERVER},
        "protocol": {"kind": "synchronous"},
    },
    "noise": {"algorithm": {"perturbation": NOISY}},
    "noise all": {"algorithm": {"perturbation": NOISY, "upload": "all"}},
    "noise sync": {
        "algorithm": {"perturbation": NOISY},
        "protocol": {"kind": "synchronous"},
    },
    "noise views": {
        "algorithm": {"perturbation": {"std": 0.1, "hidden": {"std": 0.1}}},
        "problem": {"server": {"combine": "weighted_sum", "views": 2}},
    },
}


@pytest.fixture(autouse=True)
def _double():
    with jax.enable_x64(True):
        yield


def plan_of(name: str) -> Prepared:
    return prepared(SGD, BASE, CASES[name])


def end_of(plan: Prepared, *, stepwise: bool = False) -> tuple[Any, np.ndarray]:
    """Executes a run; returns its last state and the losses of its commits."""
    program = Program(plan.kernel, plan.problem, stepwise=stepwise)
    runner = Runner(program, [_row_stream(plan, 20)], [plan], 20)
    losses = np.concatenate([record.infos["loss"] for record in runner.records()])
    return runner._carry.state, losses


def parties_of(plan: Prepared, weights: Any) -> list[vafl_deep_twin.Party]:
    """Returns each party's arrays, without the columns that it does not hold."""
    network = plan.problem.embedding.network
    views = plan.problem.embedding.views
    found = []
    for flat, held in zip(weights, plan.problem.num_features, strict=True):
        W1, b1, W2, b2 = (np.array(a) for a in split(flat, network.shapes))
        assert (W1[:, held // views :] == 0).all()
        found.append(vafl_deep_twin.Party(W1[:, : held // views], b1, W2, b2))
    return found


def server_of(plan: Prepared, flat: Any) -> vafl_deep_twin.Server:
    arrays = [
        np.array(a) for a in split(flat, arrays_of(plan.problem.server, ()).shapes)
    ]
    factors = arrays.pop(0) if len(arrays) == 5 else None
    return vafl_deep_twin.Server(factors, *arrays)


def noise_of(plan: Prepared, key: Any = None) -> vafl_deep_twin.Noise | None:
    """Gives the twin the kernel's own numbers, one sample at a time."""
    noise = plan.kernel.noise
    key = key_of(plan.run.seed) if key is None else key
    if noise is None:
        return None
    embedding, drawn = plan.problem.embedding, {}

    def of(party: int, job: int, sample: int) -> tuple[np.ndarray, np.ndarray]:
        if (party, job) not in drawn:
            ids = jnp.arange(plan.problem.num_samples)
            at = key, jnp.int32(party), jnp.int32(job)
            (hidden,) = inside(
                key, noise.hidden, *at[1:], ids, hidden_shapes(embedding)
            )
            last = noise.fixed * draw(*at, ids, embedding.num_outputs)
            drawn[party, job] = np.asarray(hidden), np.asarray(last)
        hidden, last = drawn[party, job]
        return hidden[..., sample], last[:, sample].reshape(embedding.views, -1)

    assert AT_START == -1  # the twin's number of the first upload
    return of


def twin_of(plan: Prepared) -> vafl_deep_twin.Twin:
    """Plays the same rows, samples and noise."""
    problem, config = plan.problem, plan.run.scenario.algorithm
    config_of_server = plan.run.scenario.problem.server
    key = key_of(plan.run.seed)
    held = problem.num_features
    x = [np.asarray(problem.x[m])[:, :p] for m, p in enumerate(held)]
    twin = vafl_deep_twin.Twin(
        x,
        np.asarray(problem.y),
        parties_of(plan, problem.start(key)),
        server_of(plan, problem.start_server(key)),
        views=problem.embedding.views,
        adds=(not config_of_server.build and config_of_server.combine != "concat"),
        noise=noise_of(plan),
        step_size=0.2,
        server_step_size=0.05,
        l2=0.01,
    )
    rows, samples = rows_of(plan)
    for row in range(rows.time.size):
        workers = [int(w) for w in rows.worker[row] if w != NO_WORKER]
        jobs = [int(j) for j in rows.job[row][: len(workers)]]
        if plan.kernel.coordinated:
            twin.coordinated(jobs[0], samples[row, 0])
            continue
        ids = [samples[row, min(i, samples.shape[1] - 1)] for i in range(len(workers))]
        commit = vafl_deep_twin.Commit(tuple(workers), tuple(jobs), tuple(ids))
        every, current = config.upload != "batch", config.upload == "current"
        twin.commit(commit, upload_all=every, current=current)
    return twin


def close(found: Any, expected: Any) -> None:
    for one, other in zip(found, expected, strict=True):
        if other is not None:
            np.testing.assert_allclose(one, other, 1e-9, 1e-12)


@pytest.mark.long
@pytest.mark.parametrize("name", CASES)
def test_the_kernel_is_the_twin(name: str) -> None:
    plan = plan_of(name)
    twin = twin_of(plan)
    for stepwise in (True, False):
        state, losses = end_of(plan, stepwise=stepwise)
        np.testing.assert_allclose(losses, twin.losses, 1e-9)
        close(server_of(plan, state.server), twin.server)
        for mine, theirs in zip(
            parties_of(plan, state.weights), twin.parties, strict=True
        ):
            close(mine, theirs)
    start = server_of(plan, plan.problem.start_server(key_of(plan.run.seed)))
    assert np.abs(twin.server.A1 - start.A1).max() > 1e-3


@pytest.mark.long
@pytest.mark.parametrize("mode", ["shared", "batched"])
def test_runs_in_one_batch_are_the_twins(mode: str) -> None:
    """Two step sizes on one timeline, or two seeds; each has a twin of its own."""
    noisy = CASES["noise"]
    plans = [
        prepared(SGD, BASE, noisy, {"algorithm": {"server_step_size": step}})
        if mode == "shared"
        else prepared(SGD, BASE, noisy, seed=number, number=number)
        for number, step in enumerate((0.05, 0.02))
    ]
    runner = _runner(plans, _program(plans, mode))
    list(runner.records())
    state = runner._carry.state
    for number, plan in enumerate(plans[:1] if mode == "shared" else plans):
        twin = twin_of(plan)
        close(server_of(plan, state.server[number]), twin.server)
        for mine, theirs in zip(
            parties_of(plan, state.weights[number]), twin.parties, strict=True
        ):
            close(mine, theirs)


@pytest.mark.parametrize("name", ["noise", "noise views"])
def test_the_smoothed_gradient_is_the_twins_mean_over_pairs(name: str) -> None:
    """Of the whole objective at draws of the noise, which evaluations share."""
    plan = plan_of(name)
    problem, key = plan.problem, key_of(plan.run.seed)
    weights, server = problem.start(key), problem.start_server(key)
    own = jax.random.fold_in(key, smoothed.EVALUATIONS)
    found = smoothed.gradient_norm_squared(
        problem, (weights, server), plan.kernel.noise, key
    )
    twin = twin_of(plan)
    twin.noise = noise_of(plan, own)
    twin.parties, twin.server = parties_of(plan, weights), server_of(plan, server)
    gradients = [
        np.concatenate([block.reshape(-1) for block in whole_gradient(twin, turn)])
        for turn in range(smoothed.DRAWS)
    ]
    expected = np.mean([a @ b for a, b in combinations(gradients, 2)])
    np.testing.assert_allclose(found, expected, 1e-9)


def whole_gradient(twin: vafl_deep_twin.Twin, job: int) -> list[np.ndarray]:
    """Returns the gradient of all blocks, of all samples with the noise of a job."""
    M, N = len(twin.parties), len(twin.y)
    of_parties: list[Any] = [None] * M
    of_server = None
    for n in range(N):
        h = np.stack([twin.embed(m, job, n) for m in range(M)])
        _, to_h, slope = twin.head(h, int(twin.y[n]))
        of_server = vafl_deep_twin._added(of_server, slope, 1 / N)
        for m in range(M):
            pulled = twin.pull(m, job, n, to_h[m])
            of_parties[m] = vafl_deep_twin._added(of_parties[m], pulled, 1 / N)
    regularised = [
        slope + twin.l2 * w
        for m in range(M)
        for slope, w in zip(of_parties[m], twin.parties[m], strict=True)
    ]
    assert of_server is not None
    return regularised + [slope for slope in of_server if slope is not None]
