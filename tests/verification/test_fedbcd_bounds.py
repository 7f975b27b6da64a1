"""The bounds of Theorem 2 that claims of scenarios have as numbers are its bounds."""

import math
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
from scipy.special import expit

from evidence.theory import fedbcd as theory
from stalesim.analysis.claims.slope import Below
from stalesim.simulator.learning import convex
from stalesim.simulator.scenario.reading import read
from stalesim.simulator.scenario.study import Run, expand
from stalesim.simulator.simulation import prepare

SCENARIOS = Path(__file__).parents[2] / "scenarios" / "fedbcd"


class Setting(NamedTuple):
    """What Theorem 2 asks of a run of linear parties, in NumPy."""

    x: np.ndarray
    y: np.ndarray
    parties: list[np.ndarray]
    local_steps: int
    batch: int
    iterations: int
    step_size: float
    l2: float


def _of(run: Run) -> Setting:
    plan = prepare(run)
    problem, tree = plan.problem, run.scenario.model_dump(mode="json")
    held = zip(np.asarray(problem.x, float), problem.num_features, strict=True)
    x = np.concatenate([part[:, :p] for part, p in held], axis=1)
    ends = np.cumsum(problem.num_features)
    parties = np.split(np.arange(x.shape[1]), ends[:-1])
    algorithm, rule = tree["algorithm"], tree["algorithm"]["step_size"]
    over = len(parties) if rule["by_parties"] else 1
    Q = algorithm["local_steps"]
    return Setting(
        x,
        np.asarray(problem.y, float),
        parties,
        Q,
        algorithm["batch"],
        tree["stop"]["rounds"] * Q,
        rule["value"] / math.sqrt(over * rule["horizon"]),
        tree["problem"]["l2"],
    )


def _variance(one: Setting, weights: np.ndarray) -> float:
    """Returns E |g_i - mean|^2 of the gradient of a single sample."""
    residual = expit(one.x @ weights) - one.y
    return float((residual[:, None] * one.x).var(axis=0).sum())


def _bound(one: Setting) -> float:
    of_parties = convex.smoothness_of_parties(one.x, one.parties, "sigmoid", one.l2)
    whole = convex.smoothness(one.x, "sigmoid", one.l2, bias=False)
    safe = theory.largest_steps(one.local_steps, of_parties, whole).safe
    assert one.step_size <= safe
    least = convex.minimum(one.x, one.y.astype(int), "sigmoid", 1, one.l2, bias=False)
    return theory.theorem2(
        one.iterations,
        local_steps=one.local_steps,
        step_size=one.step_size,
        of_parties=of_parties,
        gap=math.log(2) - least,  # zero start
        variance=_variance(one, np.zeros(one.x.shape[1])) / one.batch,
    )


@pytest.mark.parametrize("name", ["theory_rate", "theory_parties"])
def test_bounds_of_claims_are_those_of_theorem_2(name: str) -> None:
    scenario = read(SCENARIOS / f"{name}.yaml", ["replicates=2"])
    runs = {(run.variant, run.replicate): run for run in expand(scenario)}
    bounded = [claim for claim in scenario.claims if isinstance(claim, Below)]
    assert len(bounded) >= 3
    for claim in bounded:
        found = _of(runs[claim.below, 0])
        # T is that of the step size: the horizon of its own rule.
        horizon = runs[claim.below, 0].scenario.algorithm.step_size.horizon
        assert found.iterations == horizon
        assert claim.bound == pytest.approx(_bound(found), rel=1e-4)
    again = _of(runs[bounded[0].below, 1])
    first = _of(runs[bounded[0].below, 0])
    np.testing.assert_array_equal(again.x, first.x)  # one bound for all replicates
    np.testing.assert_array_equal(again.y, first.y)


def test_the_variance_at_zero_is_the_largest_on_the_way() -> None:
    scenario = read(SCENARIOS / "theory_rate.yaml", ["replicates=1"])
    (run,) = [run for run in expand(scenario) if run.variant == "linear-400"]
    one = _of(run)
    generator = np.random.default_rng(3)
    weights = np.zeros(one.x.shape[1])
    seen, norms = [], []
    for _ in range(one.iterations // one.local_steps):
        rows = generator.choice(len(one.y), one.batch, replace=False)
        x, y, begun = one.x[rows], one.y[rows], weights.copy()
        # Every party moves its own block, with what the others sent frozen.
        ways = []
        for held in one.parties:
            others = x @ begun - x[:, held] @ begun[held]
            own, way = begun[held].copy(), [begun[held].copy()]
            for _ in range(one.local_steps):
                error = expit(others + x[:, held] @ own) - y
                own -= one.step_size * (x[:, held].T @ error / one.batch + one.l2 * own)
                way.append(own.copy())
            ways.append(way)
        passed = [np.concatenate([way[j] for way in ways]) for j in range(len(ways[0]))]
        for theta in passed[:-1]:
            residual = expit(one.x @ theta) - one.y
            gradient = one.x.T @ residual / len(one.y) + one.l2 * theta
            seen.append(_variance(one, theta))
            norms.append(float(gradient @ gradient))
        weights = passed[-1]
    assert len(seen) == one.iterations
    assert seen[0] == max(seen) > 1.3 * min(seen)
    # All local iterations, which the claim's mean over exchanges is near to.
    assert 0.01 < np.mean(norms) < 0.1 < _bound(one)
