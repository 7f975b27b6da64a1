"""Step sizes of VAFL's theorems, and the constants that they need.

Source: VAFL, Theorems 1-4 and 7-10, by their proofs (V-21).
"""

import math
from collections.abc import Callable, Sequence
from typing import Annotated, Literal

from pydantic import Field

from ....engine.step_rules import OrData, Positive, Schedule, StepRule, Steps, constant
from ....parts.errors import ScenarioError
from ....problem.constants import Constants, measured


class _Theory(StepRule):
    """Common base of the rules of step sizes by VAFL's theorems.

    `smoothness` L and `strong_convexity` are numbers, or `data`: computed from the
    training data and `problem.l2`.
    """

    smoothness: Annotated[Positive | Literal["data"], OrData] = "data"
    """L of the objective's gradient, or `data`: computed from the training data."""
    t: Annotated[int, Field(ge=1)] = 1
    """Contributions per commit: 1 is Theorems 1-4, more is Theorems 7-10."""

    def _smoothness(self, constants: Constants) -> float:
        return _known("smoothness", self.smoothness, constants.smoothness)


class _Nonconvex(_Theory):
    """Steps that stay; a client's is the server's divided by t.

    Source: VAFL, Theorems 1 and 3, and eta_0 = t eta_m in 7 and 9.
    """

    horizon: Annotated[int, Field(ge=1)]
    """K: commits that the run will make."""
    c_eta: Positive = 1.0
    """Factor of the theorem's step size."""

    def of_clients(self, schedule: Schedule | Steps) -> Schedule:
        assert isinstance(schedule, Schedule)
        return schedule._replace(scale=schedule.scale / self.t)

    def _step(self, longest: float, constants: Constants) -> Schedule:
        fastest = 1 / (4 * longest * self._smoothness(constants))
        return constant(min(fastest, self.c_eta / math.sqrt(self.horizon)))


class _StronglyConvex(_Theory):
    """Steps that fall like one over the commits."""

    strong_convexity: Annotated[Positive | Literal["data"], OrData] = "data"
    """mu of the objective, or `data`: the regulariser's coefficient."""
    activation: tuple[Positive, ...]
    """q_m: probability that a commit includes client m."""

    def _numbers(self, constants: Constants) -> tuple[float, float]:
        """Returns L and mu, once the activations are known to be probabilities."""
        smoothness = self._smoothness(constants)
        convexity = _known(
            "strong_convexity", self.strong_convexity, constants.strong_convexity
        )
        if not self.activation or max(self.activation) > 1:
            raise ScenarioError(
                f"activation must be probabilities, got {self.activation}; "
                "give for each client the share of commits that include it"
            )
        return smoothness, convexity


class BoundedNonconvexStep(_Nonconvex):
    """min(1 / (4 (1 + D) L), c_eta / sqrt(K)); a client's is divided by t.

    Source: VAFL, Theorems 1 and 7.
    """

    kind: Literal["bounded_nonconvex"] = "bounded_nonconvex"
    staleness_bound: Annotated[int, Field(ge=0)]
    """D: largest staleness, in commits."""

    def make(self, constants: Constants) -> Schedule:
        return self._step(1.0 + self.staleness_bound, constants)


class BoundedStronglyConvexStep(_StronglyConvex):
    """4 / (mu q_min (k + K_0)) by the appendix' proof (V-21).

    Source: VAFL, Theorems 2 and 8.
    """

    kind: Literal["bounded_strongly_convex"] = "bounded_strongly_convex"
    staleness_bound: Annotated[int, Field(ge=0)]
    """D: largest staleness, in commits."""

    def make(self, constants: Constants) -> Schedule:
        smoothness, convexity = self._numbers(constants)
        rate, bound = convexity * min(self.activation), self.staleness_bound
        # Theorem 8 prints half of the second term of Theorem 2.
        delay = (2 if self.t == 1 else 1) * rate * bound
        offset = 4 * (4 * (bound + 1) * smoothness + delay) / (self.t * rate)
        return Schedule(4 / rate, offset, 1.0)


class StochasticNonconvexStep(_Nonconvex):
    """min(1 / (4 (1 + max sqrt(c_m)) L), c_eta / sqrt(K)); a client's divided by t.

    Source: VAFL, Theorems 3 and 9; the maximum by the appendix' proof (V-21).
    """

    kind: Literal["stochastic_nonconvex"] = "stochastic_nonconvex"
    delay_second_moments: tuple[Positive, ...]
    """c_m: second moments of the embeddings' ages, commits squared."""

    def make(self, constants: Constants) -> Schedule:
        longest = 1.0 + _root_of_largest(self.delay_second_moments)
        return self._step(longest, constants)


class StochasticStronglyConvexStep(_StronglyConvex):
    """2 / (nu (k + K_0)).

    Source: VAFL, Theorems 4 and 10.
    """

    kind: Literal["stochastic_strongly_convex"] = "stochastic_strongly_convex"
    delay_second_moments: tuple[Positive, ...]
    """c_m: second moments of the embeddings' ages, commits squared."""

    def make(self, constants: Constants) -> Schedule:
        smoothness, convexity = self._numbers(constants)
        moments = self.delay_second_moments
        if len(moments) != len(self.activation):
            raise ScenarioError(
                "delay_second_moments must have as many entries as activation "
                f"({len(self.activation)}), got {len(moments)}; give one per client"
            )
        inverse_step = 4 * (1 + _root_of_largest(moments)) * smoothness
        # Assumption 5 has one rho for all clients; geometric ages, the slowest decides.
        refresh = min(geometric_refresh(moment) for moment in moments)
        rate = min(
            min(refresh * moment * inverse_step / (20 + moment), convexity * q / 2)
            for moment, q in zip(moments, self.activation, strict=True)
        )
        return Schedule(2 / rate, inverse_step / (self.t * rate), 1.0)


def geometric_refresh(second_moment: float) -> float:
    """Computes the success probability of the geometric law with a second moment.

    The inverse of (2 - r) / r^2; Assumption 5's rho is one minus it.

    Args:
        second_moment: c_m, commits squared, >= 1.

    Returns:
        Probability that a commit refreshes the embedding, in (0, 1].
    """
    return 4 / (1 + math.sqrt(1 + 8 * second_moment))


def _root_of_largest(moments: Sequence[float]) -> float:
    if not moments or min(moments) < 1:
        raise ScenarioError(
            f"delay_second_moments must be >= 1, got {moments}; "
            "an embedding is at least one commit old"
        )
    return math.sqrt(max(moments))


def _known(
    name: str, asked: float | str, constant: float | Callable[[], float] | None
) -> float:
    computed = measured(constant) if asked == "data" else None
    value = computed if asked == "data" else float(asked)
    if value is None or not 0 < value < math.inf:
        raise ScenarioError(
            f"step_size.{name} must be a number > 0 for this problem, got {asked!r} "
            f"(computed: {value}); write the number, or set problem.l2"
        )
    return value
