"""A slow twin of policy gradients: sample after sample, from the played world's record.

Written from the formulas of REINFORCE, PPO (eq. 7), IMPALA (section 4.1), GRPO and
AReaL (section 5.2); no JAX. Policies are linear in a context here, and transformers in
`answers_twin`.
"""

import statistics
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from stalesim.simulator.extras.rl.world import Rollouts, SampleOutcome


@dataclass
class Learner:
    """What a trainer does with samples.

    Attributes:
        correction: `none`, `importance`, `truncated`, `clipped` or `decoupled`.
        advantage: `reward`, `leave_one_out` or `group`.
        limit: The cap, or the clipping's distance.
        step: Step size.
        l2: Coefficient of each weight's regulariser.
        parts: Steps of the optimiser on a batch.
    """

    correction: str
    advantage: str
    limit: float
    step: float
    l2: float | np.ndarray
    parts: int = 1


@dataclass
class PolicyRun:
    """Policies after each step, the start among them, and the batches' numbers."""

    policies: list[np.ndarray]
    reward: list[float] = field(default_factory=list)
    ratio_max: list[float] = field(default_factory=list)
    limited: list[float] = field(default_factory=list)


def shares(logits: np.ndarray) -> np.ndarray:
    """Returns the chances that logits are of."""
    grown = np.exp(logits - logits.max())
    return grown / grown.sum()


def picked(chances: np.ndarray, uniform: float) -> int:
    """Returns the first of the choices whose cumulated chance reaches a number."""
    cumulated, choice = 0.0, -1
    for choice, chance in enumerate(chances):  # noqa: B007
        cumulated += chance
        if cumulated >= uniform:
            break
    return choice


@dataclass
class Bandit:
    """One token, a class, by logits that are linear in the context.

    Attributes:
        context: Context and right action of a prompt, by its number.
        uniform: Random number of a sample, by its prompt and place in the group.
    """

    context: Callable[[int], tuple[np.ndarray, int]]
    uniform: Callable[[int, int], float]

    def sample(
        self, weights: np.ndarray, prompt: int, member: int
    ) -> tuple[list[int], float]:
        x, right = self.context(prompt)
        action = picked(shares(weights @ x), self.uniform(prompt, member))
        return [action], float(action == right)

    def chances(
        self, weights: np.ndarray, prompt: int, tokens: list[int]
    ) -> list[float]:
        x, _ = self.context(prompt)
        return [shares(weights @ x)[tokens[0]]]

    def slopes(
        self, weights: np.ndarray, prompt: int, tokens: list[int]
    ) -> list[np.ndarray]:
        x, _ = self.context(prompt)
        now = shares(weights @ x)
        return [np.outer(np.eye(len(now))[tokens[0]] - now, x)]


def weight_of(learner: Learner, ratio: float, advantage: float) -> float:
    """Returns what multiplies a sample's A grad log pi, by its definition."""
    if learner.correction == "none":
        return 1.0
    if learner.correction == "importance":
        return ratio
    if learner.correction == "truncated":
        return learner.limit if ratio > learner.limit else ratio
    # PPO ascends min(r A, clip(r) A): it is flat where the clipped one is the smaller.
    # AReaL's ratio is to the proximal policy; `decoupled` multiplies by its own weight.
    clipped = min(max(ratio, 1 - learner.limit), 1 + learner.limit)
    return ratio if ratio * advantage <= clipped * advantage else 0.0


def advantages_of(kind: str, rewards: list[float]) -> list[float]:
    """Returns the advantages of one group."""
    if kind == "reward":
        return rewards
    if kind == "group":
        spread = statistics.stdev(rewards)  # of torch.std, over G - 1
        return [(r - np.mean(rewards)) / (spread + 1e-6) for r in rewards]
    found = []
    for place, reward in enumerate(rewards):
        others = rewards[:place] + rewards[place + 1 :]
        found.append(reward - sum(others) / len(others))
    return found


def learned(
    record: Rollouts, learner: Learner, start: np.ndarray, policy: Any
) -> PolicyRun:
    """Trains along a record.

    Args:
        record: The played world.
        learner: What is done with samples.
        start: Weights at the start.
        policy: What is decided of a prompt, token after token: `sample` returns the
            tokens that weights draw, and their reward; `chances` that of each token,
            given those before it; `slopes` the gradients of their logarithms.
    """
    samples, run = record.samples, PolicyRun([start.copy()])
    ended = int(np.isfinite(record.steps["end_time"]).sum())
    for step in range(1, ended + 1):
        here = samples["step"] == step
        proximal = weights = run.policies[-1]
        batch, rewards = [], []
        for group in np.unique(samples["group"][here]):
            drawn, of_group = [], []
            for row in np.flatnonzero(here & (samples["group"] == group)):
                prompt, member = int(samples["prompt"][row]), samples["member"][row]
                old = run.policies[samples["start_version"][row]]
                tokens, reward = policy.sample(old, prompt, int(member))
                then = policy.chances(old, prompt, tokens)
                trains = samples["outcome"][row] == SampleOutcome.TRAINED
                drawn.append((prompt, tokens, then, trains))
                of_group.append(reward)
            rewards += of_group
            gains = advantages_of(learner.advantage, of_group)
            batch += zip(drawn, gains, strict=True)
        ratios, limited = [], []
        for part in np.array_split(np.arange(len(batch)), learner.parts):
            ascent = np.zeros_like(weights)
            size = sum(batch[place][0][3] for place in part)
            for place in part:
                (prompt, tokens, then, trains), advantage = batch[place]
                now = policy.chances(weights, prompt, tokens)
                anchor = policy.chances(proximal, prompt, tokens)
                counts = []
                for mine, theirs, recent in zip(now, then, anchor, strict=True):
                    ratios.append(mine / theirs)
                    if learner.correction == "decoupled":
                        inner = weight_of(learner, mine / recent, advantage)
                        limited.append(inner != mine / recent)
                        counts.append(inner * recent / theirs)
                        continue
                    counts.append(weight_of(learner, mine / theirs, advantage))
                    limited.append(counts[-1] not in (mine / theirs, 1.0))
                if advantage and trains:
                    slopes = policy.slopes(weights, prompt, tokens)
                    for count, slope in zip(counts, slopes, strict=True):
                        ascent += count * advantage * slope / (size * len(tokens))
            weights = weights + learner.step * (ascent - learner.l2 * weights)
        run.policies.append(weights)
        run.reward.append(float(np.mean(rewards)))
        run.ratio_max.append(max(ratios))
        run.limited.append(float(np.mean(limited)))
    return run
