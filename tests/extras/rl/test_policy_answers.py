"""Policy gradients of answers, token after token, against a twin; engines; refusals."""

from functools import cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from stalesim.simulator.config.errors import ScenarioError
from stalesim.simulator.extras.rl import world as rollouts
from stalesim.simulator.extras.rl.arithmetic import EQUALS
from stalesim.simulator.extras.rl.policy_gradient.kernel import (
    OF_ACTIONS,
    OF_ROWS,
    started,
)
from stalesim.simulator.extras.rl.world.options import RolloutStop
from stalesim.simulator.keys import key_of
from stalesim.simulator.learning.sampler import Sampler
from stalesim.simulator.simulation import Prepared
from tests.extras.rl import answers_twin
from tests.extras.rl import policy_gradient_twin as twin
from tests.extras.rl.test_policy_gradient import SEED, run_of
from tests.runs import execute

pytestmark = pytest.mark.costly

STEPS, GROUP, STEP, LENGTH, SUPERVISED = 10, 4, 1.0, 2, 100
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
        "generation": {"slots": 60, "group": GROUP},
        "trainer": {"samples": 20},
    },
    "algorithm": {"step_size": STEP, "supervised_steps": SUPERVISED},
    "stop": {"commits": STEPS},
}
CASES = (
    {"correction": "truncated", "advantage": "group", "cap": 1.1},
    {"correction": "clipped", "advantage": "leave_one_out", "epsilon": 0.1},
)


def twin_of(run: Prepared) -> tuple[twin.PolicyRun, answers_twin.Answers]:
    """Replays the run's world by the twin."""
    scenario, problem = run.scenario, run.problem
    algorithm = scenario.algorithm
    world = scenario.protocol.world(RolloutStop(steps=STEPS))
    record = rollouts.play(world, SEED)
    x, y = (np.asarray(rows).astype(int) for rows in (problem.x, problem.y))
    prompts = Sampler(SEED, [np.arange(len(y))], 1)
    key = jax.random.fold_in(key_of(SEED), OF_ACTIONS)

    def context(prompt: int) -> tuple[list[int], list[int]]:
        return divided(x, y, int(prompts.batch(0, prompt)[0]))

    @cache
    def uniform(prompt: int, member: int) -> np.ndarray:
        own = jax.random.fold_in(key, prompt * GROUP + member)
        return np.asarray(jax.random.uniform(own, (LENGTH,), jnp.float64))

    learner = twin.Learner(
        algorithm.correction, algorithm.advantage, algorithm.limit, STEP, 0.0
    )
    shape = (problem.model.num_outputs, x.shape[1])
    policy = answers_twin.Answers(problem.model.config, shape, context, uniform)
    start = started(problem, problem.start(key_of(SEED)), SUPERVISED, key_of(SEED))
    return twin.learned(record, learner, np.asarray(start), policy), policy


def divided(x: np.ndarray, y: np.ndarray, row: int) -> tuple[list[int], list[int]]:
    """Returns a row's prompt, which ends with =, and its answer."""
    whole = [*x[row], y[row, -1]]
    place = whole.index(EQUALS) + 1
    return whole[:place], whole[place:]


@pytest.fixture
def double() -> Any:
    with jax.enable_x64(True):
        yield


@pytest.mark.slow
@pytest.mark.usefixtures("double")
@pytest.mark.parametrize("algorithm", CASES, ids=lambda case: case["correction"])
def test_answers_are_like_their_twin(algorithm: dict[str, Any]) -> None:
    """Every version's exact reward to 1e-9, and what the table of commits says."""
    run = run_of(SUMS, {"algorithm": algorithm})
    memory, _ = execute([run])
    found, policy = twin_of(run)
    problem = run.problem
    x, y = (np.asarray(rows).astype(int) for rows in (problem.x_test, problem.y_test))
    pairs = [divided(x, y.reshape(x.shape), row) for row in range(len(x))]
    policy.context = lambda prompt: pairs[prompt]
    wanted = [
        np.mean([np.prod(policy.chances(w, n, pairs[n][1])) for n in range(len(x))])
        for w in found.policies
    ]
    got = memory.column("evaluations", "expected_reward")
    np.testing.assert_allclose(got, wanted, rtol=1e-9)
    assert np.ptp(got) > got[0] / 4
    for name in ("reward", "ratio_max"):
        of_twin = getattr(found, name)
        np.testing.assert_allclose(memory.column("commits", name), of_twin, rtol=1e-6)
    assert max(found.ratio_max) > 1.2
    limited = memory.column("commits", "limited_fraction")
    np.testing.assert_allclose(limited, found.limited, atol=1e-6)
    assert limited.max() > 0


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
