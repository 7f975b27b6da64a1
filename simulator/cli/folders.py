"""Folders for what a command writes, where the user names none."""

import contextlib
from collections.abc import Iterator
from pathlib import Path

from simulator.config.errors import UserError


def new(name: str) -> Path:
    """Makes and returns a new folder for a study."""
    number, folder = 1, Path("runs") / name
    while True:
        try:
            folder.mkdir(parents=True)
        except FileExistsError:
            number += 1
            folder = Path("runs") / f"{name}-{number}"
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
