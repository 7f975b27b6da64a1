"""Writes a study in one of the formats that other programs read."""

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from ....analysis.files import filled, written
from ....analysis.frames import Study
from ...files.study import StudyError
from . import tables
from .records import has_ended, records, values
from .tensorboard import RunFiles, check_library


def _write_tensorboard(study: Study, into: Path) -> None:
    check_library()
    for record in records(study):
        run = RunFiles(into, record.name)
        for row in record.points.to_dict("records"):
            run.log(row, values(row))
        run.finish(record)


TARGETS: dict[str, Callable[[Study, Path], None]] = {
    "csv": tables.write,
    "tensorboard": _write_tensorboard,
}
"""Each writes a study into a folder whose content is moved up when it is whole."""


class Exported(NamedTuple):
    """Result of an export.

    Attributes:
        folder: Folder that was written.
        num_runs: Number of runs whose results were written.
        left_out: Numbers of runs that have no results, by how they ended.
    """

    folder: Path
    num_runs: int
    left_out: dict[str, int]


def export(study: Study, target: str, folder: str | Path) -> Exported:
    """Writes the runs of a study that have ended; reaches no network.

    An export that is cut short leaves nothing that could be taken for a whole one, and
    can be repeated at once.

    Args:
        study: Study, finished or not.
        target: Key of `TARGETS`; `tensorboard` needs its extra to be installed.
        folder: New or empty folder.

    Returns:
        Where it was written, and how many runs were left out.

    Raises:
        StudyError: No run has ended, or the folder holds something or cannot be
            written, or there is no such target.
        UserError: The target's library is not installed.
    """
    if target not in TARGETS:
        raise StudyError(f"target must be one of {', '.join(TARGETS)}, got {target!r}")
    runs = study.manifest["runs"]
    left_out = Counter(str(run["stop"]) for run in runs if not has_ended(run))
    if left_out.total() == len(runs):
        raise StudyError(
            f"study {study.manifest['name']!r} must have a run that has ended to be "
            f"exported, but none has yet; wait if it is under way, else continue with "
            f"stalesim resume"
        )
    path = Path(folder)
    if path.exists() and not path.is_dir():
        raise StudyError(
            f"{path}: must be a new or empty folder, but is a file; choose another by "
            f"--out"
        )
    remedy = "make room or choose another folder by --out"
    with written(path, "the export", remedy), filled(path) as partial:
        TARGETS[target](study, partial)
    return Exported(path, len(runs) - left_out.total(), dict(left_out))
