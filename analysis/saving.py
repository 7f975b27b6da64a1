"""Writes figures as files."""

from pathlib import Path

from matplotlib.figure import Figure

from analysis import style
from simulator.trace import StudyError

DOTS_PER_INCH = 200


def save_figure(figure: Figure, path: Path) -> Path:
    """Writes a figure as PNG (200 dots per inch) and beside it as PDF.

    The same figure gives the same bytes.

    Args:
        figure: is laid out once, for both.
        path: of the PNG; its folder is made if needed.

    Raises:
        StudyError: it cannot be written.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with style.context():
            figure.savefig(path, dpi=DOTS_PER_INCH)
            figure.set_layout_engine("none")  # is laid out, which takes long
            without_date: dict = {"CreationDate": None}
            figure.savefig(path.with_suffix(".pdf"), metadata=without_date)
    except OSError as error:
        raise StudyError(
            f"{path}: the figure must be written, but {error.strerror or error}; make "
            f"room, or the folder writable"
        ) from error
    return path
