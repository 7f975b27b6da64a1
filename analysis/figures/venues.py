"""Formats of figures, and widths and fonts that conferences and journals print.

No Matplotlib: commands check the formats before a long study.

Widths are those of the text or of a column in the venue's own style files. Sans serif
letters are Matplotlib's own; serif ones are STIX, drawn after Times, which comes with
Matplotlib: figures are the same on every machine. Sizes are those of captions and
footnotes, so that letters of a figure that is not scaled are as large as the text.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from ...simulator.parts.errors import UserError, suggestion

if TYPE_CHECKING:
    from matplotlib.typing import RcKeyType

SERIF, SANS = "STIXGeneral", "DejaVu Sans"


FORMATS = ("png", "pdf", "svg")


def chosen_formats(names: str | Sequence[str]) -> tuple[str, ...]:
    """Returns formats of figures, each once.

    Raises:
        UserError: A format is unknown; the message lists the known ones.
    """
    chosen = tuple(dict.fromkeys((names,) if isinstance(names, str) else names))
    for name in chosen:
        if name not in FORMATS:
            raise UserError(
                f"format must be one of {', '.join(FORMATS)}, got {name!r}; "
                f"{suggestion(name, FORMATS)}"
            )
    return chosen


class Venue(NamedTuple):
    """How a venue prints a figure.

    Attributes:
        width: Width of the figure, inches.
        points: Size of letters on axes, points; ticks and legend are one smaller.
        font: Family of letters.
        aspect: Height over width.
    """

    width: float
    points: float
    font: str = SERIF
    aspect: float = 0.7

    def settings(self) -> "dict[RcKeyType, object]":
        """Returns Matplotlib's settings."""
        small = self.points - 1
        return {
            "axes.labelsize": self.points,
            "axes.linewidth": 0.6,
            "axes.titlesize": self.points,
            "figure.figsize": self.size(),
            "figure.titlesize": self.points,
            "font.family": [self.font],
            "font.size": self.points,
            "grid.linewidth": 0.4,
            "hatch.linewidth": 0.5,
            "legend.fontsize": small,
            "legend.handlelength": 1.6,
            "lines.linewidth": 1.2,
            "mathtext.fontset": "stix" if self.font == SERIF else "dejavusans",
            "xtick.labelsize": small,
            "xtick.major.width": 0.6,
            "ytick.labelsize": small,
            "ytick.major.width": 0.6,
        }

    def size(self) -> tuple[float, float]:
        """Returns width and height, inches."""
        return self.width, self.width * self.aspect


WIDE = 0.45
"""Height over width of a figure over both columns."""
VENUES = {
    # neurips_2024.sty, iclr2025_conference.sty: \textwidth 5.5 in, body 10 points.
    "neurips": Venue(5.5, 9, aspect=0.5),
    "iclr": Venue(5.5, 9, aspect=0.5),
    # icml2024.sty: \textwidth 6.75 in, \columnsep 0.25 in; body 10 points.
    "icml": Venue(3.25, 8),
    "icml-wide": Venue(6.75, 8, aspect=WIDE),
    # aistats2024.sty: as ICML.
    "aistats": Venue(3.25, 8),
    "aistats-wide": Venue(6.75, 8, aspect=WIDE),
    # IEEE, Preparation of papers for Transactions and Journals: 3.5 and 7.16 in.
    "ieee": Venue(3.5, 8),
    "ieee-wide": Venue(7.16, 8, aspect=WIDE),
    # acmart, sigconf: \columnwidth 3.33 in, \textwidth 7.0 in.
    "acm": Venue(3.33, 8),
    "acm-wide": Venue(7.0, 8, aspect=WIDE),
    # jmlr2e.sty: \textwidth 6.0 in.
    "jmlr": Venue(6.0, 9, aspect=0.5),
    # llncs.cls: \textwidth 12.2 cm.
    "lncs": Venue(12.2 / 2.54, 8, aspect=0.55),
    # Nature, final submission: 89 and 183 mm; sans serif of 5 to 7 points.
    "nature": Venue(89 / 25.4, 7, SANS),
    "nature-wide": Venue(183 / 25.4, 7, SANS, WIDE),
}
"""Venues by name; of two columns, `-wide` is over both."""
