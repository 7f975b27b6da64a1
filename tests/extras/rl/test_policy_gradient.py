"""Policy gradients of classes and answers against a twin, and by enumeration."""

from collections.abc import Callable, Iterator
from functools import cache
from itertools import product
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from stalesim.simulator.engine.simulation import Prepared, prepare
from stalesim.simulator.extras.rl import world as rollouts
from stalesim.simulator.extras.rl.arithmetic import EQUALS
from stalesim.simulator.extras.rl.policy_gradient import policies as estimate
from stalesim.simulator.extras.rl.policy_gradient.kernel import (
    OF_ACTIONS,
    OF_ROWS,
    started,
)
from stalesim.simulator.extras.rl.world.options import RolloutStop
from stalesim.simulator.files.timeline import NO_WORKER, Outcome
from stalesim.simulator.parts.errors import ScenarioError
from stalesim.simulator.problem.keys import key_of
from stalesim.simulator.problem.models.linear.network import LinearClassifier
from stalesim.simulator.problem.sampler import Sampler
from stalesim.simulator.scenario.scenario import Scenario
from stalesim.simulator.scenario.study import Run, merge
from tests.extras.rl import answers_twin
from tests.extras.rl import policy_gradient_twin as twin
from tests.runs import execute
from tests.support import everything

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


def drawn(
    run: Prepared, size: int
) -> tuple[Callable[[int], int], Callable[[int, int], np.ndarray]]:
    """Returns the row of each prompt, and the random numbers of each sample."""
    group = run.scenario.protocol.generation.group
    prompts = Sampler(SEED, [np.arange(len(run.problem.y))], 1)
    key = jax.random.fold_in(key_of(SEED), OF_ACTIONS)

    @cache
    def uniform(prompt: int, member: int) -> np.ndarray:
        own = jax.random.fold_in(key, prompt * group + member)
        return np.asarray(jax.random.uniform(own, (size,), jnp.float64))

    return lambda prompt: int(prompts.batch(0, prompt)[0]), uniform


def learned(
    run: Prepared, policy: Any, start: np.ndarray, step: float, l2: Any
) -> twin.PolicyRun:
    """Replays the run's world by the twin."""
    scenario, algorithm = run.scenario, run.scenario.algorithm
    world = scenario.protocol.world(RolloutStop(steps=scenario.stop.commits))
    names = algorithm.correction, algorithm.advantage, algorithm.limit
    learner = twin.Learner(*names, step, l2, scenario.protocol.trainer.optimizer_steps)
    return twin.learned(rollouts.play(world, SEED), learner, start, policy)


def bandit_of(run: Prepared) -> twin.PolicyRun:
    x, y = np.asarray(run.problem.x), np.asarray(run.problem.y)
    row, uniform = drawn(run, 1)
    start = np.zeros((3, x.shape[1]))
    decay = L2 * np.ones_like(start)
    decay[:, -1] = 0
    policy = twin.Bandit(
        context=lambda prompt: (x[row(prompt)], int(y[row(prompt)])),
        uniform=lambda prompt, member: float(uniform(prompt, member)[0]),
    )
    return learned(run, policy, start, STEP, decay)


def assert_as_twin(run: Prepared, found: twin.PolicyRun, wanted: list[Any]) -> None:
    """Every version's exact reward to 1e-9, and what the table of commits says."""
    memory, _ = execute([run])
    got = memory.column("evaluations", "expected_reward")
    np.testing.assert_allclose(got, wanted, rtol=1e-9)
    assert np.ptp(got) > min(0.1, got[0] / 4)
    for name in ("reward", "ratio_max"):
        of_twin = getattr(found, name)
        np.testing.assert_allclose(memory.column("commits", name), of_twin, rtol=1e-6)
    assert max(found.ratio_max) > 1.2
    limited = memory.column("commits", "limited_fraction")
    if run.scenario.algorithm.correction in ("truncated", "clipped", "decoupled"):
        np.testing.assert_allclose(limited, found.limited, atol=1e-6)
        assert limited.max() > 0
    else:
        assert not limited.any()


CASES = (
    {"correction": "none", "advantage": "reward"},
    {"correction": "importance", "advantage": "leave_one_out"},
    {"correction": "truncated", "advantage": "group", "cap": 1.1},
    {"correction": "clipped", "advantage": "leave_one_out", "epsilon": 0.1},
    {"correction": "decoupled", "advantage": "leave_one_out", "epsilon": 0.01},
)
PARTS: dict[str, Any] = {"protocol": {"trainer": {"optimizer_steps": 3}}}
"""Of two samples, so that no part is a group."""


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
    more = PARTS if algorithm["correction"] == "decoupled" else {}
    assert_bandit(run_of({"algorithm": algorithm}, more))


@pytest.mark.slow
@pytest.mark.usefixtures("double")
@pytest.mark.parametrize("dropped", ["masked", "withheld"])
def test_samples_that_are_too_old_count_in_their_group_alone(dropped: str) -> None:
    """By the outcomes of the world's record; of some groups a part is too old."""
    entries = {
        "generation": {"slots": 9},
        "queue": {"max_age": 2, "dropped": dropped},
        "trainer": {"step": {"law": "constant", "value": 0.15}},
    }
    algorithm = {"algorithm": {"correction": "importance"}}
    run = run_of({"protocol": entries}, algorithm)
    rows, jobs, _ = everything(run.timeline)
    here = rows.worker != NO_WORKER
    assert here.all() == (dropped == "masked")
    old = here & (rows.version[:, None] - rows.read_version > 2)
    of_groups = old.reshape(-1, GROUP)
    assert (of_groups.any(axis=1) & ~of_groups.all(axis=1)).sum() > 1
    assert (jobs.outcome == Outcome.APPLIED).sum() == here.sum()
    assert_bandit(run)


def assert_bandit(run: Prepared) -> None:
    found = bandit_of(run)
    x, y = np.asarray(run.problem.x_test), np.asarray(run.problem.y_test)
    wanted = [
        np.mean([twin.shares(policy @ x[n])[y[n]] for n in range(len(y))])
        for policy in found.policies
    ]
    assert_as_twin(run, found, wanted)


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
    for correction in ("none", "importance", "truncated", "clipped", "decoupled"):
        weight, _ = estimate.weighted(correction, jnp.asarray(1.0), jnp.ones(3), gain)
        assert weight.tolist() == [1, 1, 1]


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
            weight, _ = estimate.weighted(correction, jnp.asarray(limit), ratio, gain)
            chance = jnp.exp(theirs).prod() / len(CONTEXTS)
            total += chance * jnp.mean(weight * gain * mine)
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


# answers, token after token

LENGTH, SUPERVISED = 2, 100
"""Tokens of an answer; steps of the supervised start."""
SUMS: dict[str, Any] = {
    "problem": {
        "data": {"kind": "arithmetic", "largest": 5},
        "model": {
            "kind": "transformer",
            "layers": 1,
            "heads": 2,
            "width": 4,
            "expansion": 1,
        },
        "l2": 0,
    },
    "protocol": {
        "generation": {"slots": 60, "group": 4},
        "trainer": {"samples": 20},
    },
    "algorithm": {"step_size": 1.0, "supervised_steps": SUPERVISED},
    "stop": {"commits": 10},
}
ANSWERS = (
    {"correction": "truncated", "advantage": "group", "cap": 1.1},
    {"correction": "clipped", "advantage": "leave_one_out", "epsilon": 0.1},
)


def answers_of(run: Prepared) -> tuple[twin.PolicyRun, answers_twin.Answers]:
    """Replays the run's world by the twin."""
    problem = run.problem
    x, y = (np.asarray(rows).astype(int) for rows in (problem.x, problem.y))
    row, uniform = drawn(run, LENGTH)
    policy = answers_twin.Answers(
        *(problem.model.config, (problem.model.num_outputs, x.shape[1])),
        context=lambda prompt: divided(x, y, row(prompt)),
        uniform=uniform,
    )
    start = started(problem, problem.start(key_of(SEED)), SUPERVISED, key_of(SEED))
    return learned(run, policy, np.asarray(start), 1.0, 0.0), policy


def divided(x: np.ndarray, y: np.ndarray, row: int) -> tuple[list[int], list[int]]:
    """Returns a row's prompt, which ends with =, and its answer."""
    whole = [*x[row], y[row, -1]]
    place = whole.index(EQUALS) + 1
    return whole[:place], whole[place:]


@pytest.mark.slow
@pytest.mark.usefixtures("double")
@pytest.mark.parametrize("algorithm", ANSWERS, ids=lambda case: case["correction"])
def test_answers_are_like_their_twin(algorithm: dict[str, Any]) -> None:
    run = run_of(SUMS, {"algorithm": algorithm})
    found, policy = answers_of(run)
    problem = run.problem
    x, y = (np.asarray(rows).astype(int) for rows in (problem.x_test, problem.y_test))
    pairs = [divided(x, y.reshape(x.shape), row) for row in range(len(x))]
    policy.context = lambda prompt: pairs[prompt]
    wanted = [
        np.mean([np.prod(policy.chances(w, n, pairs[n][1])) for n in range(len(x))])
        for w in found.policies
    ]
    assert_as_twin(run, found, wanted)


@pytest.mark.slow
@pytest.mark.usefixtures("double")
def test_supervised_start_is_adam_on_right_answers() -> None:
    """Three steps by the formulas of Kingma and Ba (2015), algorithm 1."""
    problem = run_of(SUMS).problem
    key, count = key_of(SEED), 3
    x, y = (np.asarray(rows).astype(int) for rows in (problem.x, problem.y))
    policy = answers_twin.Answers(
        *(problem.model.config, (problem.model.num_outputs, x.shape[1])),
        context=lambda row: divided(x, y, row),
        uniform=lambda prompt, member: np.zeros(0),
    )
    weights = np.asarray(problem.start(key))
    first = second = np.zeros_like(weights)
    for number in range(count):
        own = jax.random.fold_in(jax.random.fold_in(key, OF_ROWS), number)
        rows = jax.random.randint(own, (64,), 0, len(x)).tolist()
        found = [policy.slopes(weights, row, divided(x, y, row)[1]) for row in rows]
        slope = -np.mean(found, axis=(0, 1))
        first = 0.9 * first + 0.1 * slope
        second = 0.999 * second + 0.001 * slope**2
        past = number + 1
        spread = np.sqrt(second / (1 - 0.999**past)) + 1e-8
        weights = weights - 0.003 * first / (1 - 0.9**past) / spread
    made = jax.jit(started, static_argnums=2)(problem, problem.start(key), count, key)
    np.testing.assert_allclose(made, weights, rtol=0, atol=1e-9)


@pytest.mark.long
@pytest.mark.usefixtures("double")
def test_engines_agree_on_answers() -> None:
    run = run_of(SUMS, {"stop": {"commits": 5}})
    found = [
        execute([run], mode)[0].column("evaluations", "expected_reward")
        for mode in ("stepwise", "compiled", "batched")
    ]
    assert np.ptp(found[0]) > 0
    for other in found[1:]:
        np.testing.assert_allclose(other, found[0], rtol=1e-9)


def test_a_text_has_no_answers() -> None:
    data = {"kind": "text", "block": 4}
    with pytest.raises(ScenarioError, match="must have a class or an answer") as error:
        run_of(SUMS, {"problem": {"data": data}})
    assert "\n" not in str(error.value)
