"""Deadlines of rounds that follow from arrivals."""

from abc import ABC, abstractmethod
from collections import deque
from math import inf
from typing import Annotated, Literal

from pydantic import Field

from ...parts.base import Part
from ...parts.expressions import up


class Watch(ABC):
    """Watches the rounds of one run; seconds count from a client's selection."""

    @abstractmethod
    def begin(self) -> float | None:
        """Begins a round; returns its seconds until the deadline, if it has one."""

    @abstractmethod
    def arrived(self, seconds: float) -> None:
        """Takes up a response in this round.

        Args:
            seconds: How long it took.
        """

    def late(self, seconds: float) -> None:  # noqa: B027 (some ignore it)
        """Takes up a response after its round.

        Args:
            seconds: How long it took; infinite where it was stopped.
        """


class Deadline(Part):
    """Length of rounds as a function of arrivals: its options."""

    @abstractmethod
    def make(self) -> Watch:
        """Returns the watch of one run."""


class RecentQuantile(Deadline):
    """So long that a share of the recent responses would have been in time.

    A client that was stopped counts as slower than all others, so that a deadline does
    not shrink because it cuts clients off. If the share was not reached, the next round
    has no deadline. The first has none either.
    """

    kind: Literal["quantile"] = "quantile"
    share: Annotated[float, Field(gt=0, le=1)]
    """Part of the responses."""
    recent: Annotated[int, Field(ge=1, le=1_000_000)] = 100
    """Responses that it is counted of, at most."""
    factor: Annotated[float, Field(gt=0)] = 1.0
    """By which the quantile is multiplied: a little above 1 where times are constant,
    since the clock rounds."""

    def make(self) -> Watch:
        return _Recent(self)


class _Recent(Watch):
    def __init__(self, config: RecentQuantile) -> None:
        self._config = config
        self._responses: deque[float] = deque(maxlen=config.recent)

    def begin(self) -> float | None:
        found = sorted(self._responses)
        if not found:
            return None
        quantile = found[up(self._config.share * len(found)) - 1]
        return None if quantile == inf else self._config.factor * quantile

    def arrived(self, seconds: float) -> None:
        self._responses.append(seconds)

    def late(self, seconds: float) -> None:
        self._responses.append(seconds)
