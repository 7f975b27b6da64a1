"""Progress, in numbers and in words."""

import datetime as dt
import time
from typing import NamedTuple

from .errors import one_line, shortened

MEASURED_S = 300.0
"""Real seconds over which speed is measured, at most."""
EVERY_S = 0.2
"""Real seconds from one measurement to the next: each looks at hundreds before it."""
LEAST_PART = 0.01
"""Part of something from which on the time left can be estimated."""
LONGEST_LABEL = 40
"""Characters of the run that is under way."""


class StudyProgress(NamedTuple):
    """How far a study is.

    Attributes:
        fraction: Fraction of the rest that this session has done, in [0, 1].
        ended: Runs that have ended, those of earlier sessions among them.
        runs: Runs of the study.
        at: Label of a run under way; "" while none is known.
        commits: Commits that were made in this session.
        failed: Failed runs among those that have ended.
        at_most: Whether there may be fewer runs, as some may prove needless.
    """

    fraction: float
    ended: int
    runs: int
    at: str = ""
    commits: int = 0
    failed: int = 0
    at_most: bool = False

    def counted(self) -> str:
        """Returns how many runs have ended and failed, and one that is running.

        Of one run there is nothing to count.
        """
        if self.runs == 1:
            return ""
        at = f" (at {shortened(one_line(self.at), LONGEST_LABEL)})" if self.at else ""
        failed = f", {self.failed} failed" if self.failed else ""
        return f"{self.ended} of {self.bound}{self.runs} runs{failed}{at}"

    @property
    def bound(self) -> str:
        """Words before what there may be less of."""
        return "at most " if self.at_most else ""


class Speed:
    """Speed and time left of something, from how fast it was in the last minutes."""

    def __init__(self) -> None:
        from rich.progress import Progress

        self._measured = Progress(
            disable=True,  # it measures, and draws nothing
            speed_estimate_period=MEASURED_S,
            get_time=time.monotonic,
        )
        self._part = self._measured.add_task("", total=1.0)
        self._commits = self._measured.add_task("", total=None)
        self._at, self._words = -EVERY_S, ""

    def words(self, now: StudyProgress) -> str:
        """Returns runs, speed and remaining time as text, as far as they are known.

        Compilation before the first result does not count. Between measurements the
        words stay as they are, until the end.
        """
        if now.fraction < 1 and time.monotonic() - self._at < EVERY_S:
            return self._words
        self._at, self._words = time.monotonic(), self._measure(now)
        return self._words

    def _measure(self, now: StudyProgress) -> str:
        self._measured.update(self._part, completed=now.fraction)
        self._measured.update(self._commits, completed=now.commits)
        part, commits = self._measured.tasks
        said = [now.counted()]
        if commits.speed:
            digits = ",.0f" if commits.speed >= 100 else ".3g"
            said.append(f"{commits.speed:{digits}} commits/s in all")
        if LEAST_PART <= now.fraction < 1 and part.time_remaining is not None:
            left = dt.timedelta(seconds=part.time_remaining)
            said.append(f"{now.bound}about {left} left")
        return ", ".join(filter(None, said))
