"""Checklists of conferences and journals, filled from a study as far as it tells.

What a study cannot know is left open, with the question that its author has to answer:
nothing is answered yes or no that was not measured or recorded. A checklist is one
template, `templates/NAME.md.j2`, of the facts in `stated`.
"""

from pathlib import Path

from ...simulator.config.errors import UserError
from ...simulator.config.text import suggestion
from ...simulator.trace import StudyError, is_world
from ..files import write_text
from ..frames import Study
from . import method, runs, stated
from .writing import environment

OPEN = "[to be answered by the author]"
STRESS = "stress-des"
"""The only one that timelines have; its items are those of the report (`method`)."""
NAMES = ("neurips", STRESS, "mlrc", "tmlr")


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
    if name != STRESS and is_world(manifest):
        raise StudyError(
            f"{study.folder}: must be a study with numerics for the checklist {name}, "
            f"but is a timeline; take --checklist {STRESS}"
        )
    template = environment().overlay(autoescape=False).get_template(f"{name}.md.j2")
    return template.render(
        study=study, manifest=manifest, open=OPEN, stated=stated, method=method
    )
