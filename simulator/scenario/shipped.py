"""The scenarios that are installed with the package, as files."""

from pathlib import Path

from ..parts.errors import nearest

SHIPPED = Path(__file__).resolve().parents[2] / "scenarios"
"""Folder of the scenarios that are installed with the package."""


def shipped() -> list[str]:
    """Returns the names of the scenarios that are installed with the package."""
    paths = (path.relative_to(SHIPPED) for path in SHIPPED.rglob("*.yaml"))
    return sorted(path.with_suffix("").as_posix() for path in paths)


def file_of(path: str | Path) -> Path:
    """Returns the file of a scenario, by its path or by its name here."""
    file = Path(path)
    if not file.exists() and file.as_posix() in shipped():
        return SHIPPED / f"{file}.yaml"
    return file


def remedy(name: str) -> str:
    """Returns which shipped scenario is meant by a name, or where they are listed."""
    near = nearest(name, shipped())
    return f"did you mean {near!r}?" if near else "see stalesim list scenarios"
