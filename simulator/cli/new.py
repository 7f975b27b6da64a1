"""Files to start from: a study or a part of one's own, with its test."""

import keyword
import re
from pathlib import Path

from ..parts.errors import UserError, shown, suggestion

TEMPLATES = Path(__file__).parent / "templates"
NAME = "my_part"
"""Name that the part has in a template; its class is called likewise."""


def kinds() -> list[str]:
    """Returns the kinds of templates."""
    return sorted(path.name for path in TEMPLATES.iterdir() if path.is_dir())


def write(kind: str, name: str, folder: Path) -> list[Path]:
    """Writes the files of a template, with a name of one's own; returns their paths.

    Args:
        kind: Kind of the template, one of `kinds`.
        name: Name of the component or study, also of its files.
        folder: Folder of the files, which is made if need be.

    Raises:
        UserError: There is no such template, the name is none of Python's, a file is
            there already, or the folder cannot be written.
    """
    if kind not in kinds():
        raise UserError(
            f"KIND must be one of {', '.join(kinds())}, got {shown(kind)}; "
            f"{suggestion(kind, kinds())}"
        )
    if not name.isidentifier() or keyword.iskeyword(name) or name != name.lower():
        raise UserError(
            f"NAME must be letters a to z, digits and underscores, as in a module, got "
            f"{shown(name)}; take another"
        )
    made = {
        folder / path.name.replace(NAME, name): path.read_text(encoding="utf-8")
        for path in sorted((TEMPLATES / kind).glob("*.*"))
    }
    for path, text in made.items():
        made[path] = text.replace(NAME, name).replace(_class(NAME), _class(name))
    return _written(made, folder)


def copy(kind: str, name: str, folder: Path, source: str) -> Path:
    """Writes a study that starts from a shipped scenario; returns its path.

    Args:
        kind: Must be `study`.
        name: Name of the study, also that of its file.
        folder: Folder of the file, which is made if need be.
        source: Name of the shipped scenario, such as `quickstart`.

    Raises:
        UserError: There is no such scenario, the file is there already, or the folder
            cannot be written.
    """
    from ..scenario.shipped import SHIPPED, remedy, shipped

    if kind != "study":
        raise UserError(
            f"--from must be of a study, got {shown(kind)}; write stalesim new study"
        )
    if source not in shipped():
        raise UserError(
            f"--from must be a shipped scenario, got {shown(source)}; {remedy(source)}"
        )
    text = (SHIPPED / f"{source}.yaml").read_text(encoding="utf-8")
    own = re.sub(r"^name:.*$", f"name: {name}", text, count=1, flags=re.MULTILINE)
    (path,) = _written({folder / f"{name}.yaml": own}, folder)
    return path


def _written(made: dict[Path, str], folder: Path) -> list[Path]:
    for path in made:
        if path.exists():
            raise UserError(f"{path} must not exist; choose another name or --out")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for path, text in made.items():
            path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise UserError(
            f"{folder}: cannot be written: {error.strerror}; choose another by --out"
        ) from None
    return list(made)


def _class(name: str) -> str:
    return "".join(word.capitalize() for word in name.split("_"))
