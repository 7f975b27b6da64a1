"""A deadline at a quantile of recent responses."""

from collections import deque
from math import inf
from typing import Annotated, Literal

from pydantic import Field

from ...config.expressions import up
from .base import Deadline, Watch


class RecentQuantile(Deadline):
    """So long that a share of the recent responses would have been in time.

    A client that was stopped counts as slower than all others, so that a deadline does
    not shrink for want of what it has cut off; where the share was not reached, the
    next round has no deadline. Nor has the first.
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
        """Returns what watches one run."""
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
