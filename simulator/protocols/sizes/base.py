"""What a rule of the buffer's size knows of a run, and what it decides."""

from abc import ABC, abstractmethod
from math import isfinite
from typing import Annotated, Any

from pydantic import Field

from ...config.expressions import up
from ...world.answers import Answers, Asking

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
            size: That of the buffers so far.
            answers: What the rule has asked for.

        Returns:
            Any number, perhaps infinite; NaN for no change.
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

    def check_algorithm(self, algorithm: Any) -> None:
        """Refuses algorithms that lack what it asks for.

        Raises:
            LocatedError: saying where, what and what to do.
        """
        del algorithm

    def bounded(self, wanted: float, size: int) -> int:
        """Returns the size that is wanted, rounded up, within its bounds."""
        if wanted != wanted:
            return size
        whole = up(wanted) if isfinite(wanted) else self.most
        return min(max(whole, self.least), self.most)
