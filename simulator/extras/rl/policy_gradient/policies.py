"""The actions of a policy: the class of a row, or an answer, token after token.

Each has `draw`, for one row by its own weights; `log_chance`, of a batch by the
trainer's; `right` actions; and `reward`.
"""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, DTypeLike, Float, Int, Key, Num
from typing_extensions import override

from ....problem.horizontal import HorizontalProblem
from ....problem.models.base import Classifier
from .part import CLIPPED

SMALL = 1e-6
"""Added to the standard deviation of a group's rewards."""


def log_policy(
    model: Classifier, weights: Float[Array, "..."], x: Float[Array, "S P"]
) -> Float[Array, "C _"]:
    """Returns the logarithms of the chances of all actions, of rows or their tokens.

    A single output is the log odds of the second of two actions.
    """
    logits = model.apply(weights, x)
    if len(logits) == 1:
        logits = jnp.concatenate([jnp.zeros_like(logits), logits])
    return jax.nn.log_softmax(logits, axis=0)


def drawn(
    log_chance: Float[Array, "C B"], uniform: Float[Array, " B"]
) -> Int[Array, " B"]:
    """Returns the action of each sample: how many cumulated chances are below u."""
    cumulated = jnp.cumsum(jnp.exp(log_chance), axis=0)
    below = (cumulated < uniform[None]).sum(axis=0, dtype=jnp.int32)
    return jnp.minimum(below, len(log_chance) - 1)


def taken(
    chances: Float[Array, "C B"], actions: Int[Array, " B"]
) -> Float[Array, " B"]:
    """Returns the entry of each sample's action."""
    return jnp.take_along_axis(chances, actions[None], axis=0)[0]


def advantages(kind: str, reward: Float[Array, " B"], group: int) -> Float[Array, " B"]:
    """Returns the advantage of each sample, of groups one after the other."""
    if kind == "reward":
        return reward
    of_group = reward.reshape(-1, group)
    mean = of_group.mean(axis=1, keepdims=True)
    if kind == "leave_one_out":
        found = (of_group - mean) * (group / (group - 1))
    else:
        # Over G - 1, as verl and others do by torch.std; the paper leaves it open.
        spread = of_group.std(axis=1, keepdims=True, ddof=1)
        found = (of_group - mean) / (spread + SMALL)
    return found.reshape(-1)


def weighted(
    correction: str,
    limit: Float[Array, ""],
    ratio: Float[Array, " B *L"],
    advantage: Float[Array, " B *one"],
) -> tuple[Float[Array, " B *L"], Bool[Array, " B *L"]]:
    """Returns w of samples, or tokens of answers, and whether it was limited.

    The ratio is to the samples' policies; of `decoupled` to the policy before the step.
    """
    limited = jnp.zeros(ratio.shape, bool)
    if correction == "none":
        return jnp.ones_like(ratio), limited
    if correction == "truncated":
        return jnp.minimum(ratio, limit), ratio > limit
    if correction in CLIPPED:
        limited = (advantage > 0) & (ratio > 1 + limit)
        limited |= (advantage < 0) & (ratio < 1 - limit)
        return jnp.where(limited, 0, ratio), limited
    return ratio, limited


class OfClasses:
    """An action is one of the classes, whose logits are the outputs of a model."""

    def __init__(self, model: Classifier) -> None:
        self._model = model

    def draw(
        self, weights: Float[Array, "..."], x: Float[Array, " P"], key: Key[Array, ""]
    ) -> tuple[Int[Array, ""], Float[Array, ""]]:
        """Returns an action, and the logarithm of its chance."""
        chances = log_policy(self._model, weights, x[None])
        action = drawn(chances, jax.random.uniform(key, (1,), x.dtype))
        return action[0], taken(chances, action)[0]

    def log_chance(
        self,
        weights: Float[Array, "..."],
        x: Float[Array, "B P"],
        actions: Int[Array, " B"],
    ) -> Float[Array, " B"]:
        """Returns the logarithm of each action's chance."""
        return taken(log_policy(self._model, weights, x), actions)

    def right(self, y: Num[Array, " B"]) -> Num[Array, " B"]:
        """Returns the right actions of some rows, given their labels."""
        return y

    def reward(
        self, actions: Int[Array, " B"], y: Num[Array, " B"], dtype: DTypeLike
    ) -> Float[Array, " B"]:
        """Returns 1 for each right action, else 0."""
        return (actions == y).astype(dtype)


class OfAnswers(OfClasses):
    """An action is an answer, whose tokens are drawn given all that stands before.

    Args:
        model: Model whose outputs are the logits of the token after each of a row.
        length: Tokens of an answer, L, which are a row's last labels.
    """

    def __init__(self, model: Classifier, length: int) -> None:
        super().__init__(model)
        self._length = length

    @override
    def draw(
        self, weights: Float[Array, "..."], x: Float[Array, " T"], key: Key[Array, ""]
    ) -> tuple[Int[Array, " L"], Float[Array, " L"]]:
        uniform = jax.random.uniform(key, (self._length,), x.dtype)
        first = x.size - self._length
        tokens, logs = [], []
        for place in range(self._length):
            chances = log_policy(self._model, weights, x[None])[:, first + place, None]
            token = drawn(chances, uniform[place, None])
            tokens.append(token[0])
            logs.append(taken(chances, token)[0])
            if first + place + 1 < x.size:
                x = x.at[first + place + 1].set(token[0].astype(x.dtype))
        return jnp.stack(tokens), jnp.stack(logs)

    @override
    def log_chance(
        self,
        weights: Float[Array, "..."],
        x: Float[Array, "B T"],
        actions: Int[Array, "B L"],
    ) -> Float[Array, "B L"]:
        first = x.shape[1] - self._length
        x = x.at[:, first + 1 :].set(actions[:, :-1].astype(x.dtype))
        chances = log_policy(self._model, weights, x)
        of_answers = chances.reshape(-1, *x.shape)[:, :, first:]
        found = taken(of_answers.reshape(len(chances), -1), actions.reshape(-1))
        return found.reshape(actions.shape)

    @override
    def right(self, y: Num[Array, "B T"]) -> Num[Array, "B L"]:
        return y[:, -self._length :]

    @override
    def reward(
        self, actions: Int[Array, "B L"], y: Num[Array, "B T"], dtype: DTypeLike
    ) -> Float[Array, " B"]:
        return (actions == self.right(y)).all(axis=1).astype(dtype)


def policy_of(problem: HorizontalProblem) -> OfClasses:
    """Returns the policy that a problem's model is."""
    if problem.answer:
        return OfAnswers(problem.model, problem.answer)
    return OfClasses(problem.model)
