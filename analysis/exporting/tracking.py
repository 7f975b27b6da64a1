"""A study told to experiment trackers while it is run, by who runs it or next to it.

A thread reads the study's folder every few seconds and logs what is new. When a run has
ended, what its tables say is compared with what was logged, and the rest is added; so a
tracker has the same numbers as an export afterwards.
"""

import contextlib
import shutil
import threading
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, Self

from ...simulator.config.errors import StudyError, UserError
from ...simulator.config.text import one_line
from ...simulator.trace import StudyWarning, load
from ..frames import Study
from . import tensorboard, wandb
from .boards import Board, RunBoard, log_row
from .records import RunRecord, has_ended, opening, records, values

EVERY_S = 2.0
"""Real seconds from one look at the study to the next."""
PREFIX = "track-"
"""Beginning of the name of a tracker's folder in that of the study."""
CHECKS: dict[str, Callable[[], Any]] = {
    "tensorboard": tensorboard.check,
    "wandb": wandb.check,
}
BOARDS: dict[str, Callable[[Path, str], Board]] = {
    "tensorboard": tensorboard.TensorBoard,
    "wandb": wandb.OfflineRuns,
}
"""Trackers by name: each takes its folder and the study's name."""


class Tracker:
    """Tells experiment trackers of a study, as long as a `with` block is executed.

    Each writes into `FOLDER/track-NAME`, which is replaced: what has ended before is
    told again. Nothing is uploaded. What goes wrong with a tracker after its start is a
    warning, and the study continues.

        with stalesim.Tracker("my-study", "tensorboard"):
            stalesim.simulate(scenario, "my-study")

    Args:
        folder: Folder of the study; it need not be there yet.
        targets: Names of trackers: `tensorboard`, `wandb`.

    Raises:
        UserError: There is no such tracker, or its library is not installed.
    """

    def __init__(self, folder: str | Path, *targets: str) -> None:
        self.folders = {name: Path(folder) / f"{PREFIX}{name}" for name in targets}
        for name in targets:
            if name not in CHECKS:
                known = ", ".join(CHECKS)
                raise UserError(f"a tracker must be one of {known}, got {name!r}")
            CHECKS[name]()
        self._folder, self._over = Path(folder), threading.Event()
        self._tracks = [_Track(name, path) for name, path in self.folders.items()]
        self._thread = threading.Thread(target=self._follow, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._over.set()
        self._thread.join()

    def _follow(self) -> None:
        """Looks at the study until it is over, and once more; all in one thread."""
        while not self._over.wait(EVERY_S):
            self._tell()
        self._tell()
        for track in self._tracks:
            track.end()

    def _tell(self) -> None:
        try:
            study = load(self._folder, quietly=True)
        except StudyError:
            return  # it has not been started yet, or is refused where it is run
        for track in self._tracks:
            track.take(study)


class _Track:
    """What one tracker has received.

    Args:
        name: Name of the tracker.
        folder: Folder that it writes.
    """

    def __init__(self, name: str, folder: Path) -> None:
        self._name, self._folder = name, folder
        self._board: Board | None = None
        self._failed = False
        self._open: dict[int, _TrackedRun] = {}
        self._over: set[int] = set()

    def take(self, study: Study) -> None:
        """Tells what is new in a study; an error ends this tracker alone."""
        if self._failed:
            return
        try:
            self._take(study)
        except StudyError:
            pass  # files are being joined; the next look is at the joined ones
        except Exception as error:  # whatever another program's client raises
            self._give_up(study, error)

    def end(self) -> None:
        """Ends the runs that have no results, and the tracker."""
        with contextlib.suppress(Exception):
            for run in self._open.values():
                run.board.abandon()
        with contextlib.suppress(Exception):
            if self._board is not None:
                self._board.close()

    def _take(self, study: Study) -> None:
        if self._board is None:
            if self._folder.exists():
                shutil.rmtree(self._folder)  # of an earlier session, all told again
            self._folder.mkdir()
            self._board = BOARDS[self._name](self._folder, study.manifest["name"])
        entries = {run["run"]: run for run in study.manifest["runs"]}
        so_far = study.so_far()
        # A journal that goes while it is read takes the ends that it noted with it.
        for number in {*map(int, so_far["run"])} - self._over:
            rows = so_far.loc[so_far["run"] == number].drop(columns="run")
            run = self._run(opening(study, entries[number]), number)
            run.log(rows.to_dict("records"))
            run.board.flush()
        for number in [n for n in self._open if entries[n]["stop"] == "failed"]:
            self._open.pop(number).board.abandon()
        new = [
            n for n, run in entries.items() if has_ended(run) and n not in self._over
        ]
        if new:
            of_new = _of_runs(study, new)
            for number, record in zip(new, records(of_new), strict=True):
                run = self._run(record, number)
                run.log(record.points.to_dict("records"))
                run.board.finish(record)
                del self._open[number]
                self._over.add(number)

    def _run(self, record: RunRecord, number: int) -> "_TrackedRun":
        if number not in self._open:
            assert self._board is not None
            self._open[number] = _TrackedRun(self._board.start(record))
        return self._open[number]

    def _give_up(self, study: Study, error: Exception) -> None:
        self._failed = True
        self.end()
        self._open, self._board = {}, None
        why = getattr(error, "strerror", None) or f"{type(error).__name__}: {error}"
        warnings.warn(
            f"{self._folder}: must be written to track the study, but "
            f"{one_line(str(why))[:200]}; the study continues; "
            f"stalesim export {study.folder} "
            f"--to {self._name} writes all of it afterwards",
            StudyWarning,
            stacklevel=2,
        )


class _TrackedRun:
    """What a tracker has received of one run.

    Args:
        board: The run as the tracker takes it.
    """

    def __init__(self, board: RunBoard) -> None:
        self.board = board
        self._logged: dict[tuple[float, int], set[str]] = {}

    def log(self, rows: list[dict[Any, Any]]) -> None:
        """Logs what was not logged before.

        Args:
            rows: Evaluations by column. What a message has cost in privacy is known
                later than the evaluations that it precedes.
        """
        for row in rows:
            point = float(row["time"]), int(row["commits"])
            known = self._logged.setdefault(point, set())
            new = {k: v for k, v in values(row).items() if k not in known}
            if new:
                log_row(self.board, row, new)
                known.update(new)


def _of_runs(study: Study, wanted: list[int]) -> Study:
    """Returns some runs of a study, with those files alone that may hold their rows."""
    entries = [run for run in study.manifest["runs"] if run["run"] in {*wanted}]
    writers = {f"{run['task']:05d}" for run in entries if "task" in run} | {"all"}
    files = {
        table: {file: seal for file, seal in mine.items() if _writer(file) in writers}
        for table, mine in study.files.items()
    }
    return Study(study.folder, {**study.manifest, "runs": entries}, files)


def _writer(file: str) -> str:
    """Returns the name of the writer of a table's file, from that of the file."""
    return file.split("-")[1]
