"""How far a study is, as those hear it who wait for it."""

from collections.abc import Callable
from typing import NamedTuple


class Heard(NamedTuple):
    """How far a task is.

    Attributes:
        fraction: Part of it that is done, in [0, 1].
        commits: Commits that were made in this session, of all of its runs.
    """

    fraction: float
    commits: int = 0


class AtWork(NamedTuple):
    """A task that is under way.

    Attributes:
        task: Its number among those of the study.
        fraction: Part of it that is done, in [0, 1].
        commits: Commits that were made in this session, of all of its runs.
    """

    task: int
    fraction: float
    commits: int


class Standing(NamedTuple):
    """How far what is left of a study is.

    Attributes:
        fraction: Part of it that is done, in [0, 1].
        ended: Runs that have ended, of those that were left.
        runs: Runs that were left.
        at: Label of a run under way; "" while none is known.
        commits: Commits that were made in this session.
        tasks: Tasks that are under way.
        failed: Runs among those that have ended which failed.
    """

    fraction: float
    ended: int
    runs: int
    at: str = ""
    commits: int = 0
    tasks: tuple[AtWork, ...] = ()
    failed: int = 0


Progress = Callable[[Standing], None]
"""Called a few times a second while a study is run."""


def unheard(standing: Standing) -> None:
    """Hears how far a study is, and does nothing."""
    del standing
