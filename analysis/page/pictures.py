"""Figures inside a page: separate pictures, so that nothing in them clashes."""

import base64
import io

import matplotlib as mpl
from matplotlib.figure import Figure
from matplotlib.text import Text

from ..figures import style
from ..figures.files import axis_labels, lay_out

MOST_BYTES = 600_000
"""Most bytes of a drawing; one with more lines than that is shown as dots."""
DOTS_PER_INCH = 200
PIXELS_PER_INCH = 110
SALT = "stalesim"
"""Salt of the names inside a drawing, which else are random."""


def picture(name: str, figure: Figure, caption: str) -> dict[str, str | int]:
    """Returns a figure as a drawing (SVG), or as dots (PNG) where that is smaller.

    The same figure gives the same picture.
    """
    file = io.BytesIO()
    undated: dict = {"Date": None, "Creator": None}
    with style.context(), mpl.rc_context({"svg.hashsalt": SALT}):
        lay_out(figure)
        figure.savefig(file, format="svg", metadata=undated)
    kind = "svg+xml"
    if len(file.getvalue()) > MOST_BYTES:
        kind, file = "png", io.BytesIO()
        with style.context():
            figure.savefig(file, format="png", dpi=DOTS_PER_INCH)
    source = data_uri(f"image/{kind}", file.getvalue())
    width = round(figure.get_figwidth() * PIXELS_PER_INCH)
    return {
        "name": name,
        "caption": caption,
        "alt": described(figure, caption),
        "source": source,
        "width": width,
    }


def described(figure: Figure, caption: str) -> str:
    """Returns the description of a figure: its caption, axes, groups and marks."""
    words = [caption.rstrip(".")]
    if labels := axis_labels(figure):
        words.append(f"axes: {', '.join(labels)}")
    texts = [text for legend in figure.legends for text in legend.get_texts()]
    visible = (axes for axes in figure.axes if axes.get_visible())
    texts += [text for a in visible for text in a.get_yticklabels() if _is_name(text)]
    if shown := dict.fromkeys(" ".join(text.get_text().split()) for text in texts):
        words.append(f"shown are {', '.join(shown)}")
    words += [str(figure.get_label() or "")]
    sentences = (" ".join(word.split()) for word in words if word)
    return ". ".join(each[:1].upper() + each[1:] for each in sentences) + "."


def _is_name(text: Text) -> bool:
    return any(
        letter.isalpha() for letter in text.get_text().replace("mathdefault", "")
    )


def data_uri(kind: str, content: bytes) -> str:
    """Returns content of a media type as an address that holds it."""
    return f"data:{kind};base64,{base64.b64encode(content).decode('ascii')}"
