"""What a protocol does where nothing feeds back on who acts when.

A protocol whose clients' times depend on none of the others' names one of these rules;
its timeline is then made by arrays (`simulator.timelines.arrays`), else it is played.
"""

from typing import NamedTuple


class Arrivals(NamedTuple):
    """Each client continues as soon as its contribution has arrived.

    Attributes:
        size: Contributions that one version applies.
        window: Virtual seconds after which it applies those that are there; None where
            their number counts.
        bound: Largest staleness of a contribution that is applied, commits, if any.
    """

    size: int = 1
    window: float | None = None
    bound: int | None = None


class LockStep(NamedTuple):
    """All clients begin together, and a version applies the contributions of all."""


class Turns(NamedTuple):
    """One client after the other makes a step, always in the same order.

    Attributes:
        reads_first: Whether a client reads its next version before its own update is
            in it.
        rounds_are_commits: Whether each commit is a round; else each turn of all is.
    """

    reads_first: bool = False
    rounds_are_commits: bool = False


Rule = Arrivals | LockStep | Turns
