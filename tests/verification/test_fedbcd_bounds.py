"""The bounds of Theorem 2 that claims of scenarios have as numbers are its bounds."""

import math
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

from evidence.theory import fedbcd as theory
from stalesim.analysis.claims.slope import Below
from stalesim.simulator.engine.simulation import prepare
from stalesim.simulator.problem import convex
from stalesim.simulator.scenario.reading import read
from stalesim.simulator.scenario.study import Run, expand
from tests.verification.pooled import Pooled, of_parties

SCENARIOS = Path(__file__).parents[2] / "scenarios" / "fedbcd"


class Setting(NamedTuple):
    """What Theorem 2 asks of a run of linear parties."""

    pooled: Pooled
    parties: list[np.ndarray]
    local_steps: int
    batch: int
    iterations: int
    step_size: float


def _of(run: Run) -> Setting:
    tree = run.scenario.model_dump(mode="json")
    pooled, parties = of_parties(prepare(run).problem, tree["problem"]["l2"])
    algorithm, rule = tree["algorithm"], tree["algorithm"]["step_size"]
    over = len(parties) if rule["by_parties"] else 1
    Q = algorithm["local_steps"]
    step_size = rule["value"] / math.sqrt(over * rule["horizon"])
    iterations = tree["stop"]["rounds"] * Q
    return Setting(pooled, parties, Q, algorithm["batch"], iterations, step_size)


def _bound(one: Setting) -> float:
    pooled, x = one.pooled, one.pooled.x
    args = "sigmoid", pooled.l2
    blocks = convex.smoothness_of_parties(x, one.parties, *args)
    whole = convex.smoothness(x, *args, bias=False)
    assert one.step_size <= theory.largest_steps(one.local_steps, blocks, whole).safe
    labels = pooled.y.astype(int)
    least = convex.minimum(x, labels, "sigmoid", 1, pooled.l2, bias=False)
    return theory.theorem2(
        one.iterations,
        local_steps=one.local_steps,
        step_size=one.step_size,
        of_parties=blocks,
        gap=math.log(2) - least,  # zero start
        variance=pooled.variance(np.zeros(x.shape[1])) / one.batch,
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
    # One bound for all replicates.
    first, again = (_of(runs[bounded[0].below, k]).pooled for k in (0, 1))
    np.testing.assert_array_equal(again.x, first.x)
    np.testing.assert_array_equal(again.y, first.y)


def test_the_variance_at_zero_is_the_largest_on_the_way() -> None:
    scenario = read(SCENARIOS / "theory_rate.yaml", ["replicates=1"])
    (run,) = [run for run in expand(scenario) if run.variant == "linear-400"]
    one = _of(run)
    pooled, generator = one.pooled, np.random.default_rng(3)
    weights = np.zeros(pooled.x.shape[1])
    seen, norms = [], []
    for _ in range(one.iterations // one.local_steps):
        rows = generator.choice(len(pooled.y), one.batch, replace=False)
        batch = Pooled(pooled.x[rows], pooled.y[rows], pooled.l2)
        passed = [weights]
        for _ in range(one.local_steps):
            new = passed[-1].copy()
            # Every party moves its own block, with what the others sent frozen.
            for held in one.parties:
                mixed = weights.copy()
                mixed[held] = new[held]
                new[held] -= one.step_size * batch.gradient(mixed)[held]
            passed.append(new)
        for theta in passed[:-1]:
            seen.append(pooled.variance(theta))
            norms.append(np.sum(pooled.gradient(theta) ** 2))
        weights = passed[-1]
    assert len(seen) == one.iterations
    assert seen[0] == max(seen) > 1.3 * min(seen)
    # All local iterations, which the claim's mean over exchanges is near to.
    assert 0.01 < np.mean(norms) < 0.1 < _bound(one)
