"""Writes a study in one of the formats that other programs read."""

from collections import Counter
from collections.abc import Callable
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from ....analysis.files import filled, written
from ....analysis.frames import Study
from ...files.study import StudyError
from . import tables
from .records import RunRecord, has_ended, records, values
from .tensorboard import TensorBoard
from .wandb import OfflineRuns


class RunBoard(Protocol):
    """One run of a study, as a tracker takes it."""

    def log(self, commits: int, time: float, measured: dict[str, float]) -> None:
        """Takes what was measured at a point of the run.

        Args:
            commits: Step.
            time: Virtual seconds.
            measured: Values by name.
        """
        ...

    def flush(self) -> None:
        """Lets what was taken so far be seen."""
        ...

    def finish(self, record: RunRecord) -> None:
        """Takes what is known at the end of the run alone.

        Args:
            record: The whole run; its points were logged.
        """
        ...

    def abandon(self) -> None:
        """Ends the run without results."""
        ...


class Board(Protocol):
    """A tracker's folder."""

    def start(self, record: RunRecord) -> RunBoard:
        """Starts a run.

        Args:
            record: The run, of which points and end need not be known yet.
        """
        ...

    def close(self) -> None:
        """Ends the use of the folder."""
        ...


BOARDS: dict[str, Callable[[Path, str], Board]] = {
    "tensorboard": TensorBoard,
    "wandb": OfflineRuns,
}
"""Trackers by name: each takes its folder and the study's name."""


def _write(open_board: Callable[[Path, str], Board], study: Study, into: Path) -> None:
    with closing(open_board(into, study.manifest["name"])) as board:
        for record in records(study):
            run = board.start(record)
            for row in record.points.to_dict("records"):
                log_row(run, row, values(row))
            run.finish(record)


def log_row(run: RunBoard, row: Any, measured: dict[str, float]) -> None:
    """Logs values at the point of a row of `RunRecord.points`."""
    run.log(int(row["commits"]), float(row["time"]), measured)


TARGETS: dict[str, Callable[[Study, Path], None]] = {
    "csv": tables.write,
    **{name: partial(_write, board) for name, board in BOARDS.items()},
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
        target: Key of `TARGETS`. All but `csv` need their extra to be installed.
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
