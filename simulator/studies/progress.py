"""How far a study is, as those report it who wait for it."""

from collections.abc import Callable
from typing import NamedTuple

from ..config.progress import StudyProgress

__all__ = ["Progress", "Stages", "StudyProgress", "TaskProgress", "silent"]


class TaskProgress(NamedTuple):
    """How far a task is.

    Attributes:
        fraction: Part of it that is done, in [0, 1].
        commits: Commits that were made in this session, of all of its runs.
    """

    fraction: float
    commits: int = 0


Progress = Callable[[StudyProgress], None]
"""Called a few times a second while a study is run."""


class Stages:
    """Tells of executions that follow each other as if they were one.

    Args:
        report: Called with how far the whole is.
        runs: Most runs of the whole, those that had ended before among them.
    """

    def __init__(self, report: Progress, runs: int) -> None:
        self._report, self._runs, self._commits = report, runs, 0

    def stage(self, begin: float, end: float, runs: int) -> Progress:
        """Returns what hears of one execution.

        Args:
            begin: Part of the whole that is done before it.
            end: Part that is done after it.
            runs: Runs of the study after it.
        """
        before = self._commits

        def report(now: StudyProgress) -> None:
            self._commits = before + now.commits
            whole = now._replace(
                fraction=min(1.0, begin + now.fraction * (end - begin)),
                ended=runs - now.runs + now.ended,
                runs=self._runs,
                commits=self._commits,
                at_most=True,
            )
            self._report(whole)

        return report


def silent(progress: StudyProgress) -> None:
    """Ignores the progress of a study."""
