"""How far a study is, as those hear it who wait for it."""

from collections.abc import Callable
from typing import NamedTuple


class Standing(NamedTuple):
    """How far what is left of a study is.

    Attributes:
        fraction: Part of it that is done, in [0, 1].
        ended: Runs that have ended, of those that were left.
        runs: Runs that were left.
        at: Label of a run under way; "" while none is known.
    """

    fraction: float
    ended: int
    runs: int
    at: str = ""


Progress = Callable[[Standing], None]
"""Called a few times a second while a study is run."""


def unheard(standing: Standing) -> None:
    """Hears how far a study is, and does nothing."""
    del standing
