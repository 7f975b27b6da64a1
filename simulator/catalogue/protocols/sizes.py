"""Sizes of the buffer that follow staleness, or the noise of gradients."""

from abc import ABC, abstractmethod
from math import inf, isfinite, nan
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal

import numpy as np
from pydantic import Field

from ...parts.base import LocatedError
from ...parts.expressions import up
from ...problem.capabilities import DividesRows
from ...world.answers import Answers, Asking

if TYPE_CHECKING:
    from ...engine.algorithm import Algorithm

Count = Annotated[int, Field(ge=1)]


class Sizing(ABC):
    """The buffer's size during one run, in contributions."""

    @abstractmethod
    def arrived(self, staleness: int) -> None:
        """Takes up a contribution.

        Args:
            staleness: Commits since it was read.
        """

    @abstractmethod
    def next(self, size: int, answers: Answers | None) -> float:
        """Returns the size that is wanted now.

        Args:
            size: The size of the buffers so far.
            answers: The values that the rule has asked for.

        Returns:
            Any number, infinity included; NaN for no change.
        """


class BufferSize(Asking):
    """How many contributions the buffer has, by those before: its options."""

    most: Count
    """Largest size."""
    least: Count = 1
    """Smallest size."""
    every: Count = 10
    """Commits after which the size is set again."""

    @abstractmethod
    def make(self) -> Sizing:
        """Returns the size during one run."""

    def bounded(self, wanted: float, size: int) -> int:
        """Returns the size that is wanted, rounded up, within its bounds."""
        if wanted != wanted:
            return size
        whole = up(wanted) if isfinite(wanted) else self.most
        return min(max(whole, self.least), self.most)


class TargetStaleness(BufferSize):
    """So large that contributions are as stale as a target, on average.

    With C jobs always under way and Z contributions a commit, the mean staleness is
    (C - 1) / Z whatever the times: the product of size and staleness is known from the
    contributions since the last change, and the next size is this product over the
    target.

    Source: that identity is Little's law over commits (arXiv 2502.08206; for Z = 1
    Koloskova, Stich and Jaggi, Sharper Convergence Guarantees for Asynchronous SGD,
    2022); setting the size by it follows, and is from no paper that we know.
    """

    kind: Literal["staleness"] = "staleness"
    target: Annotated[float, Field(gt=0)]
    """Mean staleness, commits."""

    def make(self) -> Sizing:
        return _Watching(self.target)


class _Watching(Sizing):
    def __init__(self, target: float) -> None:
        self._target = target
        self._sum = self._number = 0

    def arrived(self, staleness: int) -> None:
        self._sum += staleness
        self._number += 1

    def next(self, size: int, answers: Answers | None) -> float:
        total, number = self._sum, self._number
        self._sum = self._number = 0
        return size * total / number / self._target if number else nan


GRADIENT = "gradient_norm_squared"


class NormTest(BufferSize):
    """As many gradients as make the variance of their mean less than its square.

    The mean of Z gradients g_i passes the test where

        (mean |g_i|^2 - |grad F|^2) / Z <= theta^2 |grad F|^2

    and Z is the smallest number that does. The g_i are the last contributions of all
    clients that have sent one, as the server gets them (clipped, compressed, with
    noise), and grad F is that of the last evaluation, whose metrics must have
    `gradient_norm_squared`. With theta = 1, Z is the simple noise scale in units of a
    contribution. Differences between clients, and since they read, count as noise.

    Source: Byrd, Chin, Nocedal and Wu, Sample Size Selection in Optimization Methods
    for Machine Learning (2012), section 3, with the gradient itself in place of the
    sample's, as Bollapragada, Byrd and Nocedal, Adaptive Sampling Strategies for
    Stochastic Optimization (2018), section 2, have it, and with sizes that may shrink;
    McCandlish et al., An Empirical Model of Large-Batch Training (2018), section 2.2.
    The papers were not at hand: the test is derived from its definition, and their
    sections are from memory.
    """

    kind: Literal["norm_test"] = "norm_test"
    asks: ClassVar[tuple[str, ...]] = ("metrics", "norms")
    theta: Annotated[float, Field(gt=0)] = 1.0
    """Largest error of a mean, relative to the gradient."""

    @property
    def needed_metrics(self) -> tuple[str, ...]:
        return (GRADIENT,)

    def make(self) -> Sizing:
        return _Testing(self.theta)

    def check_algorithm(self, algorithm: "Algorithm") -> None:
        steps, beyond = algorithm.steps_per_job, ()
        if isinstance(algorithm, DividesRows):
            beyond = algorithm.beyond_gradients
        if steps > 1 or beyond:
            what = ".".join(map(str, beyond)) or f"{steps} local steps"
            raise LocatedError(
                "protocol.size_by must not be norm_test if a contribution is more "
                f"than one gradient, got {what}; take staleness, or local_steps: 1",
            )


class _Testing(Sizing):
    def __init__(self, theta: float) -> None:
        self._theta = theta

    def arrived(self, staleness: int) -> None:
        """Takes up nothing: norms are asked for."""

    def next(self, size: int, answers: Answers | None) -> float:
        assert answers is not None
        norms = answers.norms[np.isfinite(answers.norms)]
        square = answers.metrics[GRADIENT]
        if not norms.size:
            return nan
        variance = max(float(np.mean(norms**2)) - square, 0.0)
        return variance / (self._theta**2 * square) if square > 0 else inf
