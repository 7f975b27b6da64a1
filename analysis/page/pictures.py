"""Figures inside a page: each a picture of its own, so that nothing in them clashes."""

import base64
import io
import re
from typing import NamedTuple

import matplotlib as mpl
from matplotlib.figure import Figure

from analysis.figures import style

MOST_BYTES = 600_000
"""Of a drawing; what has more lines than that is shown as dots."""
DOTS_PER_INCH = 200
PIXELS_PER_INCH = 110
SALT = "stalesim"
"""Of the names inside a drawing, which else are random."""

_FINAL = "Final values (of the last tenth of evaluations)"
_CAPTIONS = (
    ("^convergence-", "Mean over replicates with its 95 % interval"),
    ("^staleness-", "How stale what each client's work used was; line: mean or law"),
    ("^staleness$", "How stale contributions were, beside closed forms where known"),
    ("^time-to-target$", "Virtual time until the target; interval of the median"),
    ("^commits-over-", "Commits until the target over what is swept"),
    ("^gantt$", "Who does what when: the first jobs"),
    ("^comparison$", "What was measured beside closed forms where known"),
    ("-against-privacy$", f"{_FINAL} against what clients spent of their privacy"),
    ("-over-.*-and-", f"{_FINAL} over what is swept, means over replicates"),
    ("-over-", f"{_FINAL} over what is swept, with 95 % intervals"),
)
"""What figures show, by a pattern of their names."""


class Picture(NamedTuple):
    """A figure as a page shows it.

    Attributes:
        name: of the file that `stalesim plot` writes of it.
        caption: what it shows.
        source: data URI.
        width: pixels of a screen.
    """

    name: str
    caption: str
    source: str
    width: int


def picture(name: str, figure: Figure) -> Picture:
    """Returns a figure as a drawing (SVG), or as dots (PNG) where that is smaller.

    The same figure gives the same picture.

    Args:
        name: of the figure among those of its study.
        figure: is laid out.
    """
    file = io.BytesIO()
    undated: dict = {"Date": None, "Creator": None}
    with style.context(), mpl.rc_context({"svg.hashsalt": SALT}):
        figure.savefig(file, format="svg", metadata=undated)
    kind = "svg+xml"
    if len(file.getvalue()) > MOST_BYTES:
        kind, file = "png", io.BytesIO()
        with style.context():
            figure.savefig(file, format="png", dpi=DOTS_PER_INCH)
    source = data_uri(f"image/{kind}", file.getvalue())
    width = round(figure.get_figwidth() * PIXELS_PER_INCH)
    return Picture(name, _caption(name), source, width)


def data_uri(kind: str, content: bytes) -> str:
    """Returns content of a media type as an address that holds it."""
    return f"data:{kind};base64,{base64.b64encode(content).decode('ascii')}"


def _caption(name: str) -> str:
    found = (words for pattern, words in _CAPTIONS if re.search(pattern, name))
    return next(found, name)
