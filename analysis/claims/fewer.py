"""Claims that one variant stops at its target after fewer commits than another."""

from typing import TYPE_CHECKING, ClassVar

from ...simulator.claims.base import OfPair
from .numbers import Frame
from .speed import ratio_to_target
from .verdict import Judged

if TYPE_CHECKING:
    from .measured import Measured

TO_STOP = "commits to the target"


class Fewer(OfPair):
    """Stops at the target of its runs after fewer commits than `than`."""

    named: ClassVar[str] = "fewer"
    words: ClassVar[str] = " in fewer commits than "

    fewer: str
    """Variant with fewer commits."""
    by_at_least: float = 1.0
    """Smallest ratio of the larger number of commits to the smaller one."""

    @property
    def counted(self) -> str:
        """Commits."""
        return "commits"

    def quantities(self) -> dict[str, Frame]:
        """Returns the commits until runs stopped at their target."""
        from ..targets import commits_to_stop

        return {TO_STOP: commits_to_stop}

    def judge(self, measured: "Measured", one: str, other: str) -> Judged:
        """Judges the ratio of commits until runs stopped at their target.

        The median of the ratios counts, against `by_at_least`, as that of `faster`.
        """
        sides = [measured.of(TO_STOP, group) for group in (one, other)]
        words = "times fewer commits"
        return ratio_to_target(
            one, other, sides, " to the target", words, self.by_at_least
        )
