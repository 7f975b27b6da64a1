"""A buffer as large as the noise of its gradients asks for: the norm test."""

from math import inf, nan
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from pydantic import Field

from ...config.base import LocatedError
from ...world.answers import Answers
from .base import BufferSize, Sizing

GRADIENT = "gradient_norm_squared"


class NormTest(BufferSize):
    """As many gradients as make the variance of their mean less than its square.

    The mean of Z gradients g_i passes the test where

        (mean |g_i|^2 - |grad F|^2) / Z <= theta^2 |grad F|^2

    and Z is the smallest number that does. The g_i are the last contributions of all
    clients that have sent one, as the server gets them (clipped, compressed, with
    noise), and grad F is that of the last evaluation, whose metrics must have
    `gradient_norm_squared`. With theta = 1, Z is the simple noise scale in
    units of a contribution. What differs between clients, and since they read, counts
    as noise.

    Source: Byrd, Chin, Nocedal and Wu, Sample Size Selection in Optimization Methods
    for Machine Learning (2012), section 3, with the gradient itself in the place of
    that of the sample, as Bollapragada, Byrd and Nocedal, Adaptive Sampling Strategies
    for Stochastic Optimization (2018), section 2, have it, and with sizes that may
    shrink; McCandlish et al., An Empirical Model of Large-Batch Training (2018),
    section 2.2. The papers were not at hand: the test is derived from its definition,
    and their sections are from memory.
    """

    kind: Literal["norm_test"] = "norm_test"
    asks: ClassVar[tuple[str, ...]] = ("metrics", "norms")
    theta: Annotated[float, Field(gt=0)] = 1.0
    """Largest error of a mean, relative to the gradient."""

    @property
    def needed_metrics(self) -> tuple[str, ...]:
        """The gradient's norm."""
        return (GRADIENT,)

    def make(self) -> Sizing:
        """Returns the size during one run."""
        return _Testing(self.theta)

    def check_algorithm(self, algorithm: Any) -> None:
        """Refuses contributions that are no gradients at one model."""
        if algorithm.steps_per_job > 1 or algorithm.beyond_gradients:
            what = ".".join(map(str, algorithm.beyond_gradients))
            what = what or f"{algorithm.steps_per_job} local steps"
            raise LocatedError(
                f"protocol.size_by must not be norm_test where a contribution is more "
                f"than one gradient, got {what}; take staleness, or local_steps: 1",
                ("protocol", "size_by"),
            )


class _Testing(Sizing):
    def __init__(self, theta: float) -> None:
        self._theta = theta

    def arrived(self, staleness: int) -> None:
        """Takes up nothing: norms are asked for."""

    def next(self, size: int, answers: Answers | None) -> float:
        del size
        assert answers is not None
        norms = answers.norms[np.isfinite(answers.norms)]
        square = answers.metrics[GRADIENT]
        if not norms.size:
            return nan
        variance = max(float(np.mean(norms**2)) - square, 0.0)
        return variance / (self._theta**2 * square) if square > 0 else inf
