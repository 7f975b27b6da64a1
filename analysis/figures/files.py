"""Writes figures as files, and their captions: content, study and software."""

import re
import textwrap
from collections.abc import Callable, Iterable, Iterator, Sequence
from importlib.metadata import version
from pathlib import Path

import matplotlib as mpl
from matplotlib.figure import Figure

from ...simulator.parts.errors import counted
from ..files import ROOM, replaced, write_text, written
from ..frames import Study, data_sets
from . import style
from .venues import chosen_formats

DOTS_PER_INCH = 200
UNDATED = {".pdf": {"CreationDate": None}, ".svg": {"Date": None}}
"""Metadata without a time, so that the same figure gives the same bytes."""
ENGINES = ("figure.constrained_layout.use", "figure.autolayout")
"""Settings of Matplotlib that give a figure an engine of layout."""
COLUMNS = 88
SOFTWARE = ("stalesim", "python", "jax", "numpy")
"""Software of the study whose versions a caption contains."""


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
                undated = UNDATED.get(path.suffix)
                figure.savefig(new, dpi=DOTS_PER_INCH, metadata=undated)
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
            text = caption_text(study, name, figure, shows(name))
            write_text(where / f"{name}.txt", text, "the caption", ROOM)


def caption_text(study: Study, name: str, figure: Figure, shows: str) -> str:
    """Returns a caption that can be put below a figure, and where it is from.

    Args:
        study: Study that is drawn.
        name: Name of the figure's file, without an ending.
        figure: The drawn figure, whose label explains its marks.
        shows: Its content, in a sentence without a full stop.
    """
    said = str(figure.get_label() or "")
    sentences = [shows, *said.split("; ")] if said else [shows]
    caption = ". ".join(part[:1].upper() + part[1:] for part in sentences if part)
    lines = [textwrap.fill(f"{caption}.", COLUMNS), ""]
    if labels := axis_labels(figure):
        lines.append(f"axes: {'; '.join(labels)}")
    lines += [
        *_about(study),
        f"drawn by: stalesim {version('stalesim')}, figure {name}",
    ]
    return "\n".join(lines) + "\n"


def axis_labels(figure: Figure) -> list[str]:
    """Returns the labels of a figure's axes, each once and in one line."""
    axes = [(a.get_ylabel(), a.get_xlabel()) for a in figure.axes if a.get_visible()]
    labels = (" ".join(label.split()) for pair in axes for label in pair)
    return list(filter(None, dict.fromkeys(labels)))


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
        with mpl.rc_context(dict.fromkeys(ENGINES, False)):  # pyright: ignore[reportArgumentType]
            figure.set_layout_engine(None)


def _about(study: Study) -> list[str]:
    manifest = study.manifest
    runs = manifest["runs"]
    replicates = 1 + max((run["replicate"] for run in runs), default=0)
    incomplete = ", incomplete" if manifest.get("status") == "incomplete" else ""
    lines = [f"study: {manifest['name']} ({counted(len(runs), 'run')}{incomplete})"]
    if data := data_sets(manifest):
        lines.append(f"data: {', '.join(data)}")
    seed = (manifest.get("scenario") or {}).get("seed", 0)
    lines.append(f"replicates: {replicates}, with common random numbers; seed {seed}")
    if source := manifest.get("source"):
        lines.append(f"source: {source}")
    environment = manifest.get("environment") or {}
    known = [f"{name} {environment[name]}" for name in SOFTWARE if name in environment]
    if known:
        changed = ", with local changes" if manifest.get("dirty") else ""
        commit = str(manifest.get("commit") or "")[:12]
        at = f" (commit {commit}{changed})" if commit else ""
        lines.append(f"simulated by: {', '.join(known)}{at}")
    return lines
