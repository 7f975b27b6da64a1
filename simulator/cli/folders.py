"""Folders for the output of a command, where the user names none."""

import contextlib
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING

from ..parts.errors import UserError

if TYPE_CHECKING:
    from ..scenario.scenario import Scenario


def of_study(
    scenario: "Scenario", name: str | None = None, *, looked: bool = False
) -> tuple[Path, bool]:
    """Returns the folder of a study, and whether the study is there already.

    If the same study was started before, it is that folder; else a new one.

    Args:
        scenario: Scenario of the study, or of a search.
        name: Name of the folder; by default the scenario's.
        looked: Whether the study has interim analyses (--until-decided).
    """
    from ..studies import existing

    for folder in named(name or scenario.name):
        if not folder.exists():
            break
        if existing.is_there(scenario, folder, looked=looked):
            return folder, True
    return new(name or scenario.name), False


def named(name: str) -> Iterator[Path]:
    """Yields the possible folders of studies with a name, the default first."""
    yield Path("runs") / name
    for number in count(2):
        yield Path("runs") / f"{name}-{number}"


def new(name: str) -> Path:
    """Makes and returns a new folder for a study."""
    folders = named(name)
    folder = next(folders)
    while True:
        try:
            folder.mkdir(parents=True)
        except FileExistsError:
            folder = next(folders)
        except OSError as error:
            raise UserError(
                f"{folder}: cannot be made: {error.strerror}; choose a folder by --out"
            ) from None
        else:
            return folder


@contextlib.contextmanager
def chosen_or_new(chosen: Path | None, name: str) -> Iterator[Path]:
    """Yields the folder for a timeline: the chosen one, or a new one.

    Where nothing comes of it, the latter is removed.
    """
    folder = chosen or new(name)
    try:
        yield folder
    finally:
        if chosen is None and folder.exists() and not any(folder.iterdir()):
            folder.rmdir()
