"""Elastic averaging: a fixed point in closed form; `test_methods` has the twin."""

from typing import Any

import jax
import numpy as np
import pytest

from stalesim.simulator.scenario.scenario import Scenario
from stalesim.simulator.scenario.study import merge
from tests.reference.methods_support import BASE, SEED, STEP, K, d
from tests.runs import execute, prepared

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


def objectives(run: Any, models: np.ndarray) -> np.ndarray:
    x, y = (np.asarray(part, float) for part in (run.problem.x, run.problem.y))
    residual = models[:, None, :] * x - y
    return (residual**2).mean(axis=(1, 2)) + 0.005 * (models**2).sum(axis=1)


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
