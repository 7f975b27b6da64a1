"""Folders for what a command writes, where the user names none."""

from pathlib import Path

from simulator.scenario.errors import UserError


def new(name: str) -> Path:
    """Makes and returns a folder for a study that nobody else has."""
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


def new_or_chosen(chosen: Path | None, name: str) -> Path:
    """Returns the folder for a timeline: the chosen one if empty, else a fresh one."""
    if chosen is None:
        return new(name)
    if chosen.exists() and (not chosen.is_dir() or any(chosen.iterdir())):
        raise UserError(
            f"--out must be a new or empty folder, got {chosen}; choose another"
        )
    return chosen
