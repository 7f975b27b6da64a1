"""Figures inside a page: each a picture of its own, so that nothing in them clashes."""

import base64
import io
from typing import NamedTuple

import matplotlib as mpl
from matplotlib.figure import Figure

from analysis.figures import style

MOST_BYTES = 600_000
"""Most bytes of a drawing; one with more lines than that is shown as dots."""
DOTS_PER_INCH = 200
PIXELS_PER_INCH = 110
SALT = "stalesim"
"""Salt of the names inside a drawing, which else are random."""


class Picture(NamedTuple):
    """A figure as a page shows it.

    Attributes:
        name: Name of the file that `stalesim plot` writes.
        caption: Caption in the report.
        source: Data URI.
        width: Width on a screen, pixels.
    """

    name: str
    caption: str
    source: str
    width: int


def picture(name: str, figure: Figure, caption: str) -> Picture:
    """Returns a figure as a drawing (SVG), or as dots (PNG) where that is smaller.

    The same figure gives the same picture.

    Args:
        name: Name of the figure among those of its study.
        figure: Figure that is laid out.
        caption: Caption in the report.
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
    return Picture(name, caption, source, width)


def data_uri(kind: str, content: bytes) -> str:
    """Returns content of a media type as an address that holds it."""
    return f"data:{kind};base64,{base64.b64encode(content).decode('ascii')}"
