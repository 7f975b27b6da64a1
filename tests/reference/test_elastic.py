"""Elastic averaging against a twin written from the paper's Algorithm 1, and limits."""

from typing import Any

import jax
import numpy as np
import pytest

from stalesim.simulator.scenario.scenario import Scenario
from stalesim.simulator.scenario.study import merge
from stalesim.simulator.timeline import NO_WORKER, Kind
from tests.reference.methods_support import BASE, SEED, STEP, K, d
from tests.runs import execute, prepared
from tests.support import everything

COMMITS, RATE, PERIOD = 30, 0.15, 3


def tree(protocol: str, **algorithm: Any) -> dict[str, Any]:
    changes = {"kind": "easgd", "moving_rate": RATE, "local_steps": PERIOD}
    changes |= {"step_size": STEP, "batch": 2}
    return merge(
        BASE,
        {
            "protocol": {"kind": protocol},
            "algorithm": changes | algorithm,
            "stop": {"commits": COMMITS},
        },
    )


def centres(run: Any, steps: int, rate: float) -> np.ndarray:
    """Returns the centre after each commit, client by client and step by step.

    Algorithm 1 has one counter per client: where the period divides it, x <- x_i, then
    x_i <- x_i - a (x - c), c <- c + a (x - c), and always x_i <- x_i - eta g(x).
    """
    x, y = (np.asarray(part, float) for part in (run.problem.x, run.problem.y))
    own = np.zeros((K, d))
    pending = np.zeros((K, d))
    centre, found = np.zeros(d), [np.zeros(d)]
    rows, _, _ = everything(run.timeline)
    assert (rows.kind == Kind.COMMIT).all()
    for workers, jobs in zip(rows.worker, rows.job, strict=True):
        pairs = zip(workers.tolist(), jobs.tolist(), strict=True)
        there = [(w, j) for w, j in pairs if w != NO_WORKER]
        for worker, job in there:
            batches = run.sampler.batch(worker, job).reshape(steps, -1)
            for number, batch in enumerate(batches):
                at = own[worker].copy()
                if number == 0:
                    own[worker] += pending[worker]
                residual = at * x[batch] - y[batch]
                gradient = (2 / d * residual * x[batch]).mean(axis=0) + 0.01 * at
                own[worker] -= STEP * gradient
        apart = {worker: own[worker] - centre for worker, _ in there}
        for worker, way in apart.items():
            pending[worker] = -rate * way
            centre = centre + rate * way
        found.append(centre)
    return np.array(found)


def objectives(run: Any, models: np.ndarray) -> np.ndarray:
    x, y = (np.asarray(part, float) for part in (run.problem.x, run.problem.y))
    residual = models[:, None, :] * x - y
    return (residual**2).mean(axis=(1, 2)) + 0.005 * (models**2).sum(axis=1)


MODES = (
    pytest.param("compiled"),
    pytest.param("stepwise", marks=pytest.mark.long),
    pytest.param("batched", marks=pytest.mark.long),
)


@pytest.mark.slow
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("protocol", ["asynchronous", "synchronous"])
def test_centres_are_those_of_the_twin(protocol: str, mode: str) -> None:
    numbers = (0, 1) if mode == "batched" else (0,)
    with jax.enable_x64(True):
        runs = [prepared(tree(protocol), seed=SEED + k, number=k) for k in numbers]
        memory, _ = execute(runs, mode)
    wanted = objectives(runs[0], centres(runs[0], PERIOD, RATE))
    got = memory.column("evaluations", "objective", 0)
    np.testing.assert_allclose(got, wanted, rtol=1e-9)


@pytest.mark.slow
def test_a_fixed_spring_ends_where_the_mean_of_all_ends() -> None:
    """Gradients H_i (x_i - o_i) of all samples in rounds have one fixed point.

    Each client has eta H_i (x_i - o_i) = a (c - x_i), and c is the mean of the x_i:
    both give c without an iteration.
    """
    changes: dict[str, Any] = {"batch": 6, "local_steps": 1}
    whole = merge(tree("synchronous", **changes), {"problem": {"data": {"noise": 0.0}}})
    whole = merge(
        whole, {"stop": {"commits": 3000}, "evaluate": {"every": {"commits": 3000}}}
    )
    with jax.enable_x64(True):
        run = prepared(whole, seed=SEED)
        memory, _ = execute([run])
    x, y = (np.asarray(part, float) for part in (run.problem.x, run.problem.y))
    parts = np.array_split(np.arange(len(x)), K)
    curve = np.array([(2 / d * x[p] ** 2).mean(axis=0) + 0.01 for p in parts])
    force = np.array([(2 / d * x[p] * y[p]).mean(axis=0) for p in parts])
    pull = STEP * curve / (STEP * curve + RATE)
    # x_i = (1 - pull) c + pull o_i, summed: sum pull_i (o_i - c) = 0.
    centre = (pull * force / curve).sum(axis=0) / pull.sum(axis=0)
    got = memory.column("evaluations", "objective", 0)[-1]
    np.testing.assert_allclose(got, objectives(run, centre[None])[0], rtol=1e-9)


def test_contributions_that_gather_are_refused() -> None:
    gathering = merge(tree("asynchronous"), {"protocol": {"warm_up": True}})
    with pytest.raises(ValueError, match="must not be easgd where"):
        Scenario.model_validate({"name": "no", **gathering})
