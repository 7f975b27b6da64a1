"""How far something is, in words, for a terminal and for a notebook."""

import datetime as dt
import time
from collections import deque
from collections.abc import Callable
from typing import Protocol

from .text import one_line, shortened

SPEED_S, LEAST_SPEED_S = 30.0, 1.0
"""Real seconds over which a speed is measured, at most and at least."""
LEAST_PART, LEAST_S = 0.01, 5.0
"""Part of something, and real seconds, from which on the rest can be estimated."""
LONG_S, LEAST_OF_LONG = 60.0, 1e-3
"""Real seconds after which a smaller part is enough."""
LINE_EVERY_S = 30.0
"""Real seconds from one line on the progress to the next, where is no terminal."""
LONGEST_LABEL = 40
"""Characters of the run that is under way."""


class ProgressLike(Protocol):
    """How far a study is: a `studies.progress.StudyProgress`."""

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
    def failed(self) -> int:
        """Runs among those that have ended which failed."""
        ...

    @property
    def at_most(self) -> bool:
        """Whether there may be fewer runs."""
        ...

    @property
    def commits(self) -> int:
        """Commits that were made."""
        ...


def in_words(now: ProgressLike, speed: "Speed") -> str:
    """Returns how many runs have ended, one that is under way, and the speed.

    Args:
        now: How far a study is.
        speed: Speed so far, which takes note of it.
    """
    speed.add(now.commits)
    return ", ".join(filter(None, (counted_runs(now), speed.words())))


def counted_runs(now: ProgressLike) -> str:
    """Returns how many runs have ended and failed, and one under way; "" of one run."""
    if now.runs == 1:
        return ""
    at = f" (at {shortened(one_line(now.at), LONGEST_LABEL)})" if now.at else ""
    failed = f", {now.failed} failed" if now.failed else ""
    most = "at most " if now.at_most else ""
    return f"{now.ended} of {most}{now.runs} runs{failed}{at}"


class Speed:
    """Commits a second of real time, over the last half minute."""

    def __init__(self) -> None:
        self._heard: deque[tuple[float, int]] = deque()

    def add(self, commits: int) -> None:
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
        if after <= before or spent < LEAST_SPEED_S:
            return ""
        speed = (after - before) / spent
        number = f"{speed:,.0f}" if speed >= 100 else f"{speed:.3g}"
        return f"{number} commits/s in all"


class ProgressLines:
    """A line now and then, for a file or another program.

    Args:
        name: Name of what is under way.
        say: Writes a line.
    """

    def __init__(self, name: str, say: Callable[[str], object]) -> None:
        self._name, self._say = name, say
        self._last, self._left = time.monotonic(), TimeLeft()

    def show(self, fraction: float, counted: str) -> None:
        """Writes a line if the last one is long ago."""
        now = time.monotonic()
        left = self._left.words(fraction, now)
        if now - self._last < LINE_EVERY_S:
            return
        self._last = now
        words = f"{100 * fraction:.0f} %", counted, left
        self._say(f"{self._name}: {', '.join(filter(None, words))}")

    def end(self) -> None:
        """Does nothing: what comes next says that it has ended."""


class TimeLeft:
    """Time that the rest of something takes, from how fast it was since it began."""

    def __init__(self) -> None:
        self._first: tuple[float, float] | None = None
        self._end: tuple[float, float] | None = None  # at what part it was estimated

    def words(self, fraction: float, now: float) -> str:
        """Returns how long the rest takes, in words; "" while it is unknown.

        What is compiled before anything is done does not count. From one part to the
        next it counts down, and says nothing once that is over.

        Args:
            fraction: Part that is done, in [0, 1].
            now: Moment, real seconds.
        """
        if self._first is None:
            if fraction > 0:
                self._first = now, fraction
            return ""
        if self._end is not None and self._end[0] == fraction:
            return self._counted_down(now)
        since, before = self._first
        spent, done = now - since, fraction - before
        known = done >= LEAST_PART and spent >= LEAST_S
        if not (known or (spent >= LONG_S and done >= LEAST_OF_LONG)):
            return ""
        self._end = fraction, now + spent * (1 - fraction) / done
        return self._counted_down(now)

    def _counted_down(self, now: float) -> str:
        assert self._end is not None
        seconds = round(self._end[1] - now)
        return f"about {dt.timedelta(seconds=seconds)} left" if seconds >= 0 else ""
