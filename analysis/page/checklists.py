"""Checklists of conferences and journals, filled from a study as far as it tells.

What a study cannot know is left open, with the question that its author has to answer:
nothing is answered yes or no that was not measured or recorded.

STRESS-DES is that of the report (`method`).
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ...simulator.config.errors import UserError
from ...simulator.config.text import suggestion
from ...simulator.trace import StudyError, is_world
from ..files import write_text
from ..frames import Study
from . import method, neurips, runs
from .item import Section

OPEN = "[to be answered by the author]"
NAMES = ("neurips", "stress-des")


def write(study: Study, name: str, file: Path | None = None) -> Path:
    """Writes a checklist as Markdown.

    Args:
        study: Study with numerics, of which runs have ended.
        name: One of `NAMES`.
        file: Path; by default `checklist-NAME.md` in the study's folder.

    Returns:
        Path of the file.

    Raises:
        UserError: There is no such checklist.
        StudyError: The study is a timeline, damaged or empty, or the file cannot be
            written.
    """
    path = study.folder / f"checklist-{name}.md" if file is None else file
    text = filled(study, name)
    elsewhere = "choose another file by --out, in a folder that exists"
    write_text(path, text, "the checklist", elsewhere)
    return path


def filled(study: Study, name: str) -> str:
    """Returns a checklist as Markdown, as `write` writes it."""
    if name not in NAMES:
        raise UserError(
            f"--checklist must be one of {', '.join(NAMES)}, got {name!r}; "
            f"{suggestion(name, NAMES)}"
        )
    manifest = study.manifest
    runs.check(manifest, str(study.folder / "manifest.json"))
    if name == "stress-des":
        return _stress(manifest)
    if is_world(manifest):
        raise StudyError(
            f"{study.folder}: must be a study with numerics for the checklist of "
            f"NeurIPS, but is a timeline; take --checklist stress-des"
        )
    return neurips.filled(study, OPEN)


def _stress(manifest: dict[str, Any]) -> str:
    lines = [f"# STRESS-DES: {manifest['name']}", ""]
    for section in method.checklist(manifest):
        lines += list(_section(section))
    if not manifest.get("question"):
        lines += [f"Open: 1.1, what is the purpose of the model? {OPEN}", ""]
    lines += [f"Open: 6.1, where are scenario and program published? {OPEN}", ""]
    return "\n".join(lines)


def _section(section: Section) -> Iterator[str]:
    yield from (f"## {section.title}", "")
    for item in section.items:
        yield from (f"### {item.number} {item.title}", "")
        for text in item.text:
            yield from (str(text), "")
        for name, said in (*item.steps, *item.rows):
            yield f"- {name}: {' '.join(str(said).split())}"
        if item.steps or item.rows:
            yield ""
