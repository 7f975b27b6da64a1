"""A slow twin of policy gradients: sample after sample, from the played world's record.

Written from the formulas of REINFORCE, PPO (eq. 7), IMPALA (section 4.1) and GRPO, for
a policy whose logits are linear in the context; no JAX.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from simulator.rollouts import Fate, Rollouts


@dataclass
class Learner:
    """What a trainer does with samples.

    Attributes:
        correction: `none`, `importance`, `truncated` or `clipped`.
        advantage: `reward`, `leave_one_out` or `group`.
        limit: The cap, or the clipping's distance.
        step: Step size.
        l2: Coefficient of the regulariser of all but the last column.
    """

    correction: str
    advantage: str
    limit: float
    step: float
    l2: float


@dataclass
class PolicyRun:
    """Policies after each step, the start among them, and the batches' numbers."""

    policies: list[np.ndarray]
    reward: list[float] = field(default_factory=list)
    ratio_max: list[float] = field(default_factory=list)
    limited: list[float] = field(default_factory=list)


def chances(policy: np.ndarray, context: np.ndarray) -> np.ndarray:
    """Returns the chance of each action."""
    logits = policy @ context
    grown = np.exp(logits - logits.max())
    return grown / grown.sum()


def weight_of(learner: Learner, ratio: float, advantage: float) -> float:
    """Returns what multiplies a sample's A grad log pi, by its definition."""
    if learner.correction == "none":
        return 1.0
    if learner.correction == "importance":
        return ratio
    if learner.correction == "truncated":
        return learner.limit if ratio > learner.limit else ratio
    # PPO ascends min(r A, clip(r) A): it is flat where the clipped one is the smaller.
    clipped = min(max(ratio, 1 - learner.limit), 1 + learner.limit)
    return ratio if ratio * advantage <= clipped * advantage else 0.0


def advantages_of(kind: str, rewards: list[float]) -> list[float]:
    """Returns the advantages of one group."""
    if kind == "reward":
        return rewards
    if kind == "group":
        spread = np.sqrt(np.mean([(r - np.mean(rewards)) ** 2 for r in rewards]))
        return [(r - np.mean(rewards)) / (spread + 1e-6) for r in rewards]
    found = []
    for place, reward in enumerate(rewards):
        others = rewards[:place] + rewards[place + 1 :]
        found.append(reward - sum(others) / len(others))
    return found


def learned(
    record: Rollouts,
    learner: Learner,
    start: np.ndarray,
    context: Callable[[int], tuple[np.ndarray, int]],
    uniform: Callable[[int, int], float],
) -> PolicyRun:
    """Trains along a record.

    Args:
        record: The played world.
        learner: What is done with samples.
        start: Policy at the start, `[actions, columns]`.
        context: Context and right action of a prompt, by its number.
        uniform: Random number of a sample, by its prompt and place in the group.
    """
    samples, run = record.samples, PolicyRun([start.copy()])
    ended = int(np.isfinite(record.steps["end_time"]).sum())
    for step in range(1, ended + 1):
        here = samples["step"] == step
        assert (samples["outcome"][here] == Fate.TRAINED).all()
        policy = run.policies[-1]
        ascent, ratios, limited = np.zeros_like(policy), [], []
        rewards, size = [], int(here.sum())
        for group in np.unique(samples["group"][here]):
            members = np.flatnonzero(here & (samples["group"] == group))
            drawn, of_group = [], []
            for row in members:
                prompt, member = samples["prompt"][row], samples["member"][row]
                x, right = context(int(prompt))
                old = run.policies[samples["start_version"][row]]
                mu = chances(old, x)
                cumulated, action = 0.0, -1
                for action, chance in enumerate(mu):  # noqa: B007
                    cumulated += chance
                    if cumulated >= uniform(int(prompt), int(member)):
                        break
                drawn.append((x, action, mu[action]))
                of_group.append(float(action == right))
            rewards += of_group
            for (x, action, chance), advantage in zip(
                drawn, advantages_of(learner.advantage, of_group), strict=True
            ):
                now = chances(policy, x)
                ratio = now[action] / chance
                weight = weight_of(learner, ratio, advantage)
                chosen = np.eye(len(now))[action]
                slope = np.outer(chosen - now, x)  # of log pi(action | x)
                ascent += weight * advantage * slope / size
                ratios.append(ratio)
                limited.append(weight not in (ratio, 1.0))
        decay = learner.l2 * policy
        decay[:, -1] = 0
        run.policies.append(policy + learner.step * (ascent - decay))
        run.reward.append(float(np.mean(rewards)))
        run.ratio_max.append(max(ratios))
        run.limited.append(float(np.mean(limited)))
    return run
