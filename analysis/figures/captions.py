"""Captions in files next to figures: what is drawn, of what, and by which versions."""

import textwrap
from importlib.metadata import version
from pathlib import Path

from matplotlib.figure import Figure

from ...simulator.config.text import counted
from ..files import ROOM, write_text
from ..frames import Study, data_sets

COLUMNS = 88
SOFTWARE = ("stalesim", "python", "jax", "numpy")
"""Software whose versions a caption says, of that which the study was run with."""


def caption_text(study: Study, name: str, figure: Figure, shows: str) -> str:
    """Returns a caption that can be put below a figure, and where it is from.

    Args:
        study: Study that is drawn.
        name: Name of the figure's file, without an ending.
        figure: Figure as it was drawn, whose label says what its marks are.
        shows: What it shows, in a sentence without a full stop.
    """
    said = str(figure.get_label() or "")
    sentences = [shows, *said.split("; ")] if said else [shows]
    caption = ". ".join(part[:1].upper() + part[1:] for part in sentences if part)
    lines = [textwrap.fill(f"{caption}.", COLUMNS), ""]
    axes = [(a.get_ylabel(), a.get_xlabel()) for a in figure.axes if a.get_visible()]
    labels = dict.fromkeys(" ".join(label.split()) for pair in axes for label in pair)
    if shown := [label for label in labels if label]:
        lines.append(f"axes: {'; '.join(shown)}")
    lines += [
        *_about(study),
        f"drawn by: stalesim {version('stalesim')}, figure {name}",
    ]
    return "\n".join(lines) + "\n"


def write(text: str, stem: Path) -> Path:
    """Writes a caption next to the figure of the same name.

    Raises:
        StudyError: It cannot be written.
    """
    path = stem.with_name(f"{stem.name}.txt")
    write_text(path, text, "the caption", ROOM)
    return path


def _about(study: Study) -> list[str]:
    """Returns lines on a study: its data, replicates, seeds and versions."""
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
