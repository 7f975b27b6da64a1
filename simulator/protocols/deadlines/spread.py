"""A deadline by the median and the spread of a round's first responses."""

from statistics import median
from typing import Annotated, Literal

from pydantic import Field

from .base import Deadline, Watch


class MedianSpread(Deadline):
    """After a quorum: its median and some median absolute deviations from it.

    The quorum is never cut; where the deadline is over by then, the round ends with it.
    """

    kind: Literal["spread"] = "spread"
    quorum: Annotated[int, Field(ge=2)]
    """Responses of a round that it is counted of."""
    deviations: Annotated[float, Field(ge=0)] = 3.0
    """k of median + k MAD."""

    def make(self) -> Watch:
        """Returns what watches one run."""
        return _First(self)


class _First(Watch):
    def __init__(self, config: MedianSpread) -> None:
        self._config = config
        self._responses: list[float] = []

    def begin(self) -> None:
        self._responses = []

    def arrived(self, seconds: float) -> float | None:
        self._responses.append(seconds)
        if len(self._responses) != self._config.quorum:
            return None
        middle = median(self._responses)
        spread = median(abs(each - middle) for each in self._responses)
        return middle + self._config.deviations * spread
