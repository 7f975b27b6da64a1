"""A study written for TensorBoard while another process runs it.

The study's folder is read every few seconds, and new values are logged. When a run has
ended, its tables are compared with the log, and the rest is added; so a board has the
same numbers as an export afterwards.
"""

import shutil
from collections.abc import Sequence
from pathlib import Path

from ....analysis.files import ROOM, written
from ....analysis.frames import Study
from ...files.study import load
from ...files.study.study import look_until_complete
from .records import Row, RunRecord, has_ended, opening, records, values
from .tensorboard import RunFiles, check_library

EVERY_S = 2.0
"""Real seconds between reads of the study."""
FOLDER = "track-tensorboard"
"""Name of the event files' folder in the study's folder."""


def follow(folder: str | Path) -> Path:
    """Writes TensorBoard's event files of a study until the study is complete.

    They are of all runs, also earlier ones. Nothing is uploaded.

    Returns:
        Folder of the event files, `FOLDER` in the study's folder, which is replaced.

    Raises:
        UserError: The library is not installed, there is no study, or the folder of the
            event files cannot be written.
    """
    study = load(folder)
    into = study.folder / FOLDER
    check_library()
    followed = _Followed(into)
    with written(into, "the tracker's folder", ROOM):
        if into.exists():
            shutil.rmtree(into)
        into.mkdir()
        try:
            look_until_complete(study, followed.take, EVERY_S)
        finally:
            followed.close()
    return into


class _Followed:
    """What TensorBoard has received of a study."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._open: dict[int, _FollowedRun] = {}
        self._over: set[int] = set()

    def take(self, study: Study) -> None:
        """Tells what is new."""
        entries = {run["run"]: run for run in study.manifest["runs"]}
        so_far = study.so_far()
        # A journal that goes while it is read takes the ends that it noted with it.
        for number in {*map(int, so_far["run"])} - self._over:
            rows = so_far.loc[so_far["run"] == number].drop(columns="run")
            run = self._run(opening(study, entries[number]), number)
            run.log(rows.to_dict("records"))
            run.files.flush()
        for number in [n for n in self._open if entries[n]["stop"] == "failed"]:
            self._open.pop(number).files.abandon()
        new = [
            n for n, run in entries.items() if has_ended(run) and n not in self._over
        ]
        if not new:
            return
        for number, record in zip(new, records(_of_runs(study, new)), strict=True):
            run = self._run(record, number)
            run.log(record.points.to_dict("records"))
            run.files.finish(record)
            del self._open[number]
            self._over.add(number)

    def _run(self, record: RunRecord, number: int) -> "_FollowedRun":
        if number not in self._open:
            self._open[number] = _FollowedRun(RunFiles(self._folder, record.name))
        return self._open[number]

    def close(self) -> None:
        """Ends the runs that have no results."""
        for run in self._open.values():
            run.files.abandon()


class _FollowedRun:
    """What TensorBoard has received of one run."""

    def __init__(self, files: RunFiles) -> None:
        self.files = files
        self._logged: dict[tuple[float, int], set[str]] = {}

    def log(self, rows: Sequence[Row]) -> None:
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
                self.files.log(row, new)
                known.update(new)


def _of_runs(study: Study, wanted: list[int]) -> Study:
    entries = [run for run in study.manifest["runs"] if run["run"] in {*wanted}]
    writers = {f"{run['task']:05d}" for run in entries if "task" in run} | {"all"}
    files = {
        table: {f: seal for f, seal in mine.items() if f.split("-")[1] in writers}
        for table, mine in study.files.items()
    }
    return Study(study.folder, {**study.manifest, "runs": entries}, files)
