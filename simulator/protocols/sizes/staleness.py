"""A buffer as large as keeps the staleness at a target."""

from math import nan
from typing import Annotated, Literal

from pydantic import Field

from ...world.answers import Answers
from .base import BufferSize, Sizing


class TargetStaleness(BufferSize):
    """So large that contributions are as stale as a target, on average.

    With C jobs always under way and Z contributions a commit, the mean staleness is
    (C - 1) / Z whatever the times: the product of size and staleness is known from the
    contributions since the last change, and the next size is this product over the
    target.

    Source: that identity is Little's law over commits (arXiv 2502.08206; for Z = 1
    Koloskova, Stich and Jaggi, Sharper Convergence Guarantees for Asynchronous SGD,
    2022); to set the size by it follows from it, and is from no paper that we know.
    """

    kind: Literal["staleness"] = "staleness"
    target: Annotated[float, Field(gt=0)]
    """Mean staleness, commits."""

    def make(self) -> Sizing:
        """Returns the size during one run."""
        return _Watching(self.target)


class _Watching(Sizing):
    def __init__(self, target: float) -> None:
        self._target = target
        self._sum = self._number = 0

    def arrived(self, staleness: int) -> None:
        self._sum += staleness
        self._number += 1

    def next(self, size: int, answers: Answers | None) -> float:
        del answers
        total, number = self._sum, self._number
        self._sum = self._number = 0
        return size * total / number / self._target if number else nan
