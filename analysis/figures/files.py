"""Writes figures as files."""

from pathlib import Path

from matplotlib.figure import Figure

from analysis.figures import style
from analysis.files import replaced
from simulator.config.errors import UserError
from simulator.config.text import suggestion
from simulator.trace import StudyError

DOTS_PER_INCH = 200
FORMATS = ("png", "pdf", "svg")


def check_format(name: str) -> None:
    """Refuses a name that is no format of figures.

    Raises:
        UserError: The format is not known; the message names those that are.
    """
    if name not in FORMATS:
        raise UserError(
            f"format must be one of {', '.join(FORMATS)}, got {name!r}; "
            f"{suggestion(name, FORMATS)}"
        )


def save_figure(figure: Figure, path: Path) -> Path:
    """Writes a figure as PDF, as SVG, or as PNG (200 dots per inch) and PDF.

    The same figure gives the same bytes.

    Args:
        figure: Figure, laid out once for all formats.
        path: File with the format's suffix; its folder is created if missing.

    Raises:
        UserError: There is no such format.
        StudyError: It cannot be written.
    """
    check_format(path.suffix[1:])
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with style.context():
            with replaced(path) as new:
                figure.savefig(new, dpi=DOTS_PER_INCH, metadata=_without_date(path))
            if path.suffix == ".png":
                figure.set_layout_engine("none")  # is laid out, which takes long
                twin = path.with_suffix(".pdf")
                with replaced(twin) as new:
                    figure.savefig(new, metadata=_without_date(twin))
    except OSError as error:
        raise StudyError(
            f"{path}: the figure must be written, but {error.strerror or error}; make "
            f"room, or the folder writable"
        ) from error
    return path


def _without_date(path: Path) -> dict:
    """Returns metadata in which a format's date, if it has one, is left out."""
    return {".pdf": {"CreationDate": None}, ".svg": {"Date": None}}.get(path.suffix, {})
