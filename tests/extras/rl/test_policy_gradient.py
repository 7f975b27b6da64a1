"""Policy gradients under staleness against a twin, and by enumeration of a bandit."""

from collections.abc import Iterator
from functools import cache
from itertools import product
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from stalesim.simulator.extras.rl import world as rollouts
from stalesim.simulator.extras.rl.policy_gradient import estimate
from stalesim.simulator.extras.rl.policy_gradient.kernel import OF_ACTIONS
from stalesim.simulator.extras.rl.world.options import RolloutStop
from stalesim.simulator.keys import key_of
from stalesim.simulator.learning.sampler import Sampler
from stalesim.simulator.models.linear.network import LinearClassifier
from stalesim.simulator.scenario.scenario import Scenario
from stalesim.simulator.scenario.study import Run, merge
from stalesim.simulator.simulation import Prepared, prepare
from tests.extras.rl import policy_gradient_twin as twin
from tests.runs import execute

pytestmark = pytest.mark.costly

SEED, STEPS, GROUP, STEP, L2 = 7, 25, 3, 0.4, 0.01
TREE: dict[str, Any] = {
    "name": "policies",
    "problem": {
        "data": {"kind": "digits", "classes": [1, 4, 7]},
        "partition": {"kind": "iid", "clients": 1},
        "l2": L2,
    },
    "protocol": {
        "kind": "rollouts",
        "generation": {
            "slots": 18,
            "tokens": {"law": "expon", "scale": 50},
            "seconds_per_token": 0.02,
            "group": GROUP,
        },
        "trainer": {"samples": 6, "step": {"law": "constant", "value": 0.3}},
        "weights": {"seconds": {"law": "constant", "value": 0.1}},
    },
    "algorithm": {"kind": "policy_gradient", "step_size": STEP},
    "stop": {"commits": STEPS},
    "evaluate": {"every": {"commits": 1}, "metrics": ["expected_reward"]},
    "engine": {"precision": "float64", "chunk": 16},
}


def run_of(*changes: dict[str, Any]) -> Prepared:
    tree = TREE
    for change in changes:
        tree = merge(tree, change)
    return prepare(Run(0, "base", {}, 0, SEED, Scenario.model_validate(tree)))


def twin_of(run: Prepared) -> twin.PolicyRun:
    """Replays the run's world by the twin."""
    scenario, problem = run.scenario, run.problem
    algorithm = scenario.algorithm
    world = scenario.protocol.world(RolloutStop(steps=STEPS))
    record = rollouts.play(world, SEED)
    x, y = np.asarray(problem.x), np.asarray(problem.y)
    prompts = Sampler(SEED, [np.arange(len(y))], 1)
    key = jax.random.fold_in(key_of(SEED), OF_ACTIONS)

    def context(prompt: int) -> tuple[np.ndarray, int]:
        row = prompts.batch(0, prompt)[0]
        return x[row], int(y[row])

    @cache
    def uniform(prompt: int, member: int) -> float:
        own = jax.random.fold_in(key, prompt * GROUP + member)
        return float(jax.random.uniform(own, (1,), jnp.float64)[0])

    start = np.zeros((3, x.shape[1]))
    decay = L2 * np.ones_like(start)
    decay[:, -1] = 0
    learner = twin.Learner(
        algorithm.correction, algorithm.advantage, algorithm.limit, STEP, decay
    )
    return twin.learned(record, learner, start, twin.Bandit(context, uniform))


CASES = (
    {"correction": "none", "advantage": "reward"},
    {"correction": "importance", "advantage": "leave_one_out"},
    {"correction": "truncated", "advantage": "group", "cap": 1.1},
    {"correction": "clipped", "advantage": "leave_one_out", "epsilon": 0.1},
)


@pytest.fixture
def double() -> Iterator[None]:
    with jax.enable_x64(True):
        yield


def test_a_groups_deviation_is_over_one_less_than_its_samples() -> None:
    """Rewards 1, 0, 0, 0 have the mean 1/4 and, over three, the variance 1/4."""
    found = estimate.advantages("group", jnp.array([1.0, 0, 0, 0]), 4)
    np.testing.assert_allclose(found, [1.5, -0.5, -0.5, -0.5], rtol=1e-5)


@pytest.mark.slow
@pytest.mark.usefixtures("double")
@pytest.mark.parametrize("algorithm", CASES, ids=lambda case: case["correction"])
def test_kernel_is_like_its_twin(algorithm: dict[str, Any]) -> None:
    """Every version's exact reward to 1e-9, and what the table of commits says."""
    run = run_of({"algorithm": algorithm})
    memory, _ = execute([run])
    found = twin_of(run)
    x, y = np.asarray(run.problem.x_test), np.asarray(run.problem.y_test)
    places = range(len(y))
    wanted = [
        np.mean([twin.shares(policy @ x[place])[y[place]] for place in places])
        for policy in found.policies
    ]
    got = memory.column("evaluations", "expected_reward")
    np.testing.assert_allclose(got, wanted, rtol=1e-9)
    assert np.ptp(got) > 0.1
    for name in ("reward", "ratio_max"):
        of_twin = getattr(found, name)
        np.testing.assert_allclose(memory.column("commits", name), of_twin, rtol=1e-6)
    assert max(found.ratio_max) > 1.2
    limited = memory.column("commits", "limited_fraction")
    if algorithm["correction"] in ("truncated", "clipped"):
        np.testing.assert_allclose(limited, found.limited, atol=1e-6)
        assert limited.max() > 0
    else:
        assert not limited.any()


@pytest.mark.usefixtures("double")
def test_without_staleness_all_corrections_are_none() -> None:
    """Ratios are 1 in a synchronous world, where all weights are 1 by definition."""
    level = {"protocol": {"generation": {"max_async_level": 0}}}
    few = {"stop": {"commits": 12}, "evaluate": {"every": {"commits": 12}}}
    memory, _ = execute([run_of(level, few, {"algorithm": {"correction": "clipped"}})])
    assert not memory.column("commits", "staleness_max").any()
    np.testing.assert_allclose(memory.column("commits", "ratio_max"), 1, atol=1e-6)
    np.testing.assert_allclose(
        memory.column("commits", "effective_fraction"), 1, atol=1e-6
    )
    gain = jnp.asarray([-1.0, 0.0, 2.0])
    for correction in ("none", "importance", "truncated", "clipped"):
        found = estimate.weighted(correction, jnp.asarray(1.0), jnp.ones(3), gain)
        assert found.weight.tolist() == [1, 1, 1]


MODEL = LinearClassifier(num_outputs=3, num_features=1)
CONTEXTS = np.array([[0.3, 1.0], [-1.2, 1.0]])
RIGHT = np.array([2, 0])


def policies() -> tuple[np.ndarray, np.ndarray]:
    draw = np.random.default_rng(5)
    return draw.normal(size=(3, 2)), draw.normal(size=(3, 2))


def expected(
    correction: str, advantage: str, limit: float = 1.0
) -> tuple[np.ndarray, np.ndarray]:
    """Returns the mean of the estimate over all groups of two, and the true gradient.

    Groups are weighted by the chance that the older policy draws them.
    """
    now, old = policies()
    behaviour = estimate.log_policy(MODEL, jnp.asarray(old), jnp.asarray(CONTEXTS))

    def own(weights: Any) -> Any:
        return estimate.log_policy(MODEL, weights, jnp.asarray(CONTEXTS))

    def estimates(weights: Any) -> Any:
        total = jnp.zeros(())
        for place, pair in product(range(2), product(range(3), repeat=2)):
            actions = jnp.asarray(pair)
            mine, theirs = own(weights)[actions, place], behaviour[actions, place]
            reward = (actions == RIGHT[place]).astype(mine.dtype)
            gain = estimate.advantages(advantage, reward, 2)
            ratio = jax.lax.stop_gradient(jnp.exp(mine - theirs))
            found = estimate.weighted(correction, jnp.asarray(limit), ratio, gain)
            chance = jnp.exp(theirs).prod() / len(CONTEXTS)
            total += chance * jnp.mean(found.weight * gain * mine)
        return total

    def reward(weights: Any) -> Any:
        return jnp.exp(own(weights))[RIGHT, np.arange(2)].mean()

    at = jnp.asarray(now)
    return np.asarray(jax.grad(estimates)(at)), np.asarray(jax.grad(reward)(at))


@pytest.mark.usefixtures("double")
@pytest.mark.parametrize("advantage", ["reward", "leave_one_out"])
def test_importance_weights_make_the_estimate_unbiased(advantage: str) -> None:
    """The exact mean over all actions of the older policy; without weights it is off.

    E_mu[r A grad log pi] = sum_a pi(a) R(a) grad log pi(a), the gradient of E_pi[R]; a
    baseline of the others' rewards is independent of the action, and grad sums to 0.
    """
    found, wanted = expected("importance", advantage)
    np.testing.assert_allclose(found, wanted, atol=1e-14)
    biased, _ = expected("none", advantage)
    assert np.abs(biased - wanted).max() > 0.01


@pytest.mark.usefixtures("double")
@pytest.mark.parametrize("correction", ["truncated", "clipped"])
def test_without_a_limit_both_are_importance_weights(correction: str) -> None:
    found, wanted = expected(correction, "leave_one_out", np.inf)
    np.testing.assert_array_equal(found, expected("importance", "leave_one_out")[0])
    biased, _ = expected(correction, "leave_one_out", 0.1)
    assert np.abs(biased - wanted).max() > 0.01


@pytest.mark.usefixtures("double")
def test_actions_are_drawn_by_their_chances() -> None:
    """u on a fine grid gives each action its share, but for one point of the grid."""
    log_chance = jnp.log(jnp.asarray([0.2, 0.5, 0.3]))
    grid = (np.arange(1000) + 0.5) / 1000
    found = estimate.drawn(jnp.tile(log_chance[:, None], (1, 1000)), jnp.asarray(grid))
    assert np.abs(np.bincount(found) - [200, 500, 300]).max() <= 1
    assert int(estimate.drawn(log_chance[:, None], jnp.ones(1) * 2)[0]) == 2
