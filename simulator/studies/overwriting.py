"""Removal of a study, so that another one can be put into its folder."""

from pathlib import Path

from ..config.errors import StudyError
from ..config.text import shown
from ..trace import COLUMNS, DISK, Disk
from ..trace.disk import LOCK, PARTIAL, explained, locked
from ..trace.manifest import NAME
from ..trace.study import journal_session
from .paths import CHECKPOINTS, CLAIMS, DATA, LOCKS, TUNING
from .worker import TIMELINES

OURS = {LOCK, NAME, DATA, CHECKPOINTS, LOCKS, TIMELINES, TUNING, *COLUMNS}
"""Names of what is in the folder of a study while it is run."""
MADE = {"figures", "attack", "report.html", "capsule.zip"}
"""Names of what commands make of a study in its folder."""
BEGINNINGS = (CLAIMS, "export-", "track-")
"""Beginnings of the names of claims, and of what commands make for others."""


def clear(folder: Path, disk: Disk = DISK) -> None:
    """Removes the study in a folder, and what was made of it; nothing without one.

    The manifest goes last: what a kill leaves is still a study, to be overwritten.

    Raises:
        StudyError: there is anything else in the folder, which then stays as it is.
    """
    if not disk.names(folder):
        return
    others = [name for name in disk.names(folder) if not _is_ours(name)]
    if others or not disk.exists(folder / NAME):
        what = f"{shown(others[0])}, which is not of a study" if others else "none"
        raise StudyError(
            f"{folder}: must hold a study and nothing else to be overwritten, but "
            f"holds {what}; remove it, or choose another folder by --out"
        )
    with locked(folder), explained(folder):
        for name in sorted(disk.names(folder), key=lambda name: name == NAME):
            if name == LOCK:
                continue
            if (folder / name).is_dir() and not (folder / name).is_symlink():
                disk.remove_folder(folder / name)
            else:
                disk.remove(folder / name)


def _is_ours(name: str) -> bool:
    known = name in OURS | MADE or name.startswith(BEGINNINGS) or name.endswith(PARTIAL)
    return known or journal_session(name) is not None
