"""Writes figures as files."""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib.figure import Figure

from ..files import ROOM, replaced, written
from ..frames import Study
from . import captions, style
from .venues import chosen_formats

DOTS_PER_INCH = 200
ENGINES = ("figure.constrained_layout.use", "figure.autolayout")
"""Settings of Matplotlib that give a figure an engine of layout."""


def save_figure(
    figure: Figure, stem: Path, forms: str | Sequence[str] = "png"
) -> list[Path]:
    """Writes a figure as PNG (200 dots per inch), PDF or SVG, or as several of them.

    The same figure gives the same bytes.

    Args:
        figure: Figure, which is laid out once for all formats.
        stem: File without a format's suffix; its folder is created if missing.
        forms: One or more of `venues.FORMATS`.

    Returns:
        Paths of the files, in the order of the formats.

    Raises:
        UserError: There is no such format.
        StudyError: It cannot be written.
    """
    paths = [stem.with_name(f"{stem.name}.{form}") for form in chosen_formats(forms)]
    with written(stem, "the figure", ROOM), style.context():
        stem.parent.mkdir(parents=True, exist_ok=True)
        lay_out(figure)
        for path in paths:
            with replaced(path) as new:
                figure.savefig(new, dpi=DOTS_PER_INCH, metadata=_undated(path))
    return paths


def save_all(
    study: Study,
    figures: Iterable[tuple[str, Figure]],
    shows: Callable[[str], str],
    folder: str | Path,
    forms: str | Sequence[str] = "png",
    styles: Sequence[str | Path] = (),
) -> Iterator[Path]:
    """Saves figures into `folder/figures`, and next to each its caption, as text.

    Args:
        study: Study that is drawn.
        figures: Names of files with their figures, drawn one at a time.
        shows: Returns what a figure shows, by its name.
        folder: Parent of the folder `figures`, which is created if missing.
        forms: Formats of the files, as in `figures.save`.
        styles: Matplotlib styles, as in `figures.save`.

    Yields:
        Paths of the figures, as they are written.

    Raises:
        StudyError: A figure cannot be written.
        UserError: There is no such format or style.
    """
    forms, where = chosen_formats(forms), Path(folder) / "figures"
    with style.using(*styles):
        for name, figure in figures:
            yield from save_figure(figure, where / name, forms)
            text = captions.caption_text(study, name, figure, shows(name))
            captions.write(text, where / name)


def plain(name: str) -> str:
    """Returns a user's name as any file system takes it; empty if nothing is left."""
    return re.sub(r"[^\w.]+", "-", name, flags=re.ASCII).strip("-.")[:80]


def lay_out(figure: Figure) -> None:
    """Places all of a figure, for good: saving it does not do it again.

    Matplotlib would go through all of the drawing first, for each format, to the same
    end.
    """
    engine = figure.get_layout_engine()
    if engine is not None:
        figure.set_dpi(DOTS_PER_INCH)  # letters are as wide as they will be drawn
        engine.execute(figure)
        # Without any engine; for one that does nothing all is drawn once more.
        none: Any = dict.fromkeys(ENGINES, False)
        with mpl.rc_context(none):
            figure.set_layout_engine(None)


def _undated(path: Path) -> dict:
    """Returns metadata in which a format's date, if it has one, is left out."""
    return {".pdf": {"CreationDate": None}, ".svg": {"Date": None}}.get(path.suffix, {})
