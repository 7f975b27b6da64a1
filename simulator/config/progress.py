"""How far something is, in words, for a terminal and for a notebook."""

import datetime as dt
import time
from collections import deque
from typing import Protocol

from simulator.config.text import one_line, shortened

SPEED_S, LEAST_SPEED_S = 30.0, 1.0
"""Real seconds over which a speed is measured, at most and at least."""
LEAST_PART = 1e-3
"""Part of something from which on the rest can be estimated."""
LONGEST_LABEL = 40
"""Characters of the run that is under way."""


class StandingLike(Protocol):
    """How far a study is: a `studies.standing.Standing`."""

    @property
    def ended(self) -> int:
        """Runs that have ended."""
        ...

    @property
    def runs(self) -> int:
        """Runs in all."""
        ...

    @property
    def at(self) -> str:
        """Label of a run under way."""
        ...

    @property
    def commits(self) -> int:
        """Commits that were made."""
        ...


def in_words(now: StandingLike, speed: "Speed") -> str:
    """Returns how many runs have ended, one that is under way, and the speed.

    Args:
        now: How far a study is.
        speed: Speed so far, which takes note of it.
    """
    speed.hear(now.commits)
    return ", ".join(filter(None, (counted_runs(now), speed.words())))


def time_left(fraction: float, spent: float) -> str:
    """Returns how long the rest takes, in words; "" while it is not known.

    Args:
        fraction: Part that is done, in [0, 1].
        spent: Real seconds that it took.
    """
    if fraction < LEAST_PART:  # what was started and is being compiled
        return ""
    return f"about {dt.timedelta(seconds=round(spent * (1 / fraction - 1)))} left"


def counted_runs(now: StandingLike) -> str:
    """Returns how many runs have ended, and one that is under way; "" of one run."""
    if now.runs == 1:
        return ""
    at = f" (at {shortened(one_line(now.at), LONGEST_LABEL)})" if now.at else ""
    return f"{now.ended} of {now.runs} runs{at}"


class Speed:
    """Updates a second of real time, over the last half minute."""

    def __init__(self) -> None:
        self._heard: deque[tuple[float, int]] = deque()

    def hear(self, commits: int) -> None:
        """Takes how many commits were made so far."""
        now = time.monotonic()
        if not self._heard or now - self._heard[-1][0] >= LEAST_SPEED_S / 2:
            self._heard.append((now, commits))
        while len(self._heard) > 2 and now - self._heard[1][0] >= SPEED_S:
            self._heard.popleft()

    def words(self) -> str:
        """Returns the speed in words; "" while it is not known."""
        (begin, before), (end, after) = self._heard[0], self._heard[-1]
        spent = end - begin
        if after == before or spent < LEAST_SPEED_S:
            return ""
        speed = (after - before) / spent
        return f"{speed:,.0f} updates/s" if speed >= 100 else f"{speed:.3g} updates/s"
