"""Reads the tables and the manifest of a study from its folder."""

import contextlib
import re
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from ...parts.errors import (
    DamageError,
    StudyError,
    check_folder,
    counted,
    one_line,
    ranges,
    shortened,
    shown,
)
from ...parts.lazy import Late
from . import parts
from .columns import COLUMNS, LEFT_OUT, ORDERS
from .disk import DISK, Disk, Files, read_journal
from .manifest import Manifest, is_world, read_manifest

OPEN = ("incomplete", "failed")
"""Ends of runs that have no results."""
MOST_GROUPS = 12
"""Groups that are named."""
LONGEST = 60
"""Characters of a group's name."""
NEXT = "study.tidy(), study.plot(), study.claims(), study.table(NAME)"
NEXT_OF_WORLD = "study.table(NAME)"
"""What to do with it."""


def pairs(
    folder: Path, manifest: Manifest, tables: Iterable[str]
) -> list[tuple[str, str]]:
    """Returns pairs that describe a study: its content and its methods."""
    runs = manifest["runs"]
    stops = Counter(run["stop"] for run in runs)
    ended = len(runs) - sum(stops[stop] for stop in OPEN)
    failed = f", {stops['failed']} failed" if stops["failed"] else ""
    groups = Counter(run["label"] for run in runs)
    names = [shortened(one_line(label), LONGEST) for label in groups]
    more = f"; ... ({len(names)} in all)" if len(names) > MOST_GROUPS else ""
    replicates = ranges(groups.values())
    of_each = "replicate" if replicates == "1" else "replicates"
    return [
        ("study", one_line(manifest["name"])),
        ("folder", f"{one_line(str(folder))}{_passing(folder)}"),
        ("runs", f"{ended} of {counted(len(runs), 'run')} ended{failed}"),
        ("groups", f"{'; '.join(names[:MOST_GROUPS])}{more}"),
        ("of each", f"{replicates} {of_each}"),
        ("tables", ", ".join(tables)),
        ("next", NEXT_OF_WORLD if is_world(manifest) else NEXT),
    ]


def _passing(folder: Path) -> str:
    """Returns words on a folder that `simulate` has made; "" of others."""
    made = folder.name.startswith("stalesim-")
    mine = made and folder.parent == Path(tempfile.gettempdir())
    return " (removed with this object)" * mine


if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa
    from matplotlib.figure import Figure

    from .... import analysis
    from ....analysis.racing import Best
else:
    analysis = Late("stalesim.analysis")

LOCKS = ".locks"
"""Folder, in a study's folder, of its tasks' locks and remains, while it is run. A task
is done once in a session: a process that was replaced, but is still alive, would
otherwise remove files that another one has written since."""
SHARED: Final = "shared"
"""Entry of a manifest: the session in which any processes may take tasks."""
ATTEMPTS = 5
"""Reads in a row that may fail: while tables are joined, their files come and go."""


class Study:
    """A finished or interrupted study, read from its folder.

    Attributes:
        folder: Folder of the study.
        manifest: Scenario, environment, and the end of each run.
        files: Files of its tables, as far as their runs have ended.
    """

    def __init__(
        self,
        folder: Path,
        manifest: Manifest,
        files: Files,
        disk: Disk = DISK,
    ) -> None:
        self.folder, self.manifest, self.files = folder, manifest, files
        self._disk = disk

    def __repr__(self) -> str:
        told = pairs(self.folder, self.manifest, sorted(self.files))
        width = max(len(heading) for heading, _ in told) + 2
        return "\n".join(f"{heading + ':':{width}}{said}" for heading, said in told)

    def _repr_html_(self) -> str:
        """Returns the same for a notebook, in which no name is markup."""
        cell = "style='text-align: left'"
        rows = (
            f"<tr><th {cell}>{escape(heading)}</th><td {cell}>{escape(said)}</td></tr>"
            for heading, said in pairs(self.folder, self.manifest, sorted(self.files))
        )
        return f"<table>{''.join(rows)}</table>"

    @property
    def complete(self) -> bool:
        """Whether every run of the study has ended."""
        return self.manifest["status"] == "complete"

    def tidy(self) -> "pd.DataFrame":
        """Returns a row per evaluation, as `stalesim.tidy`.

        Example: `study.tidy().groupby("variant")["test_accuracy"].max()`
        """
        return analysis.tidy(self)

    def final_values(self, metric: str | None = None) -> "pd.DataFrame":
        """Returns a row per run, as `stalesim.final_values`.

        Example: `study.final_values("test_loss").groupby("group")["value"].mean()`
        """
        return analysis.final_values(self, metric)

    def plot(
        self, metric: str | None = None, against: str = "time", **options: Any
    ) -> "Figure":
        """Draws learning curves, as `stalesim.convergence`.

        Example: `study.plot("test_loss", "commits").savefig("loss.pdf")`
        """
        return analysis.convergence(self, metric, against, **options)

    def claims(self) -> "pd.DataFrame":
        """Returns a row per claim with its verdict, as `stalesim.claims.evaluate`.

        Example: `study.claims()[["says", "verdict", "measured"]]`
        """
        return analysis.claims.evaluate(self)

    def best(self) -> "Best":
        """Returns the best values that a search has found, as `stalesim.best`.

        Example: `study.best().parameters`
        """
        return analysis.best(self)

    def table(self, name: str, columns: list[str] | None = None) -> "pd.DataFrame":
        """Returns one table: the rows of all runs that have ended.

        Whole numbers that may be missing, such as the commit of a job, are pandas'
        `Int64` or `Int32`, with `<NA>` for none.

        Args:
            name: a key of `COLUMNS`.
            columns: Some of its columns, `run` among them; by default all.

        Raises:
            StudyError: there is no such table or column, or (`DamageError`) rows of it
                are missing or damaged.

        Example: `study.table("jobs", ["run", "client", "job", "commit"])`
        """
        import pyarrow as pa

        found = self.arrow(name, columns=columns)
        known = found.column_names
        keys = ORDERS.get(name, ("run", "time", "client", "job", "commit"))
        keys = [key for key in keys if key in known]
        order = np.lexsort([found.column(key).to_numpy() for key in reversed(keys)])
        if (order[1:] < order[:-1]).any():
            found = found.take(pa.array(order))
        plain = pa.schema(
            [
                field.with_type(pa.string())
                if pa.types.is_dictionary(field.type)
                else field
                for field in found.schema
            ]
        )
        frame = found.cast(plain).to_pandas()
        for column, of in COLUMNS[name].items():
            if of.none is not None and column in frame:
                numbers = frame[column].astype(of.dtype.capitalize())
                frame[column] = numbers.mask(numbers == of.none)
        return frame

    def arrow(
        self, name: str, run: int | None = None, columns: list[str] | None = None
    ) -> "pa.Table":
        """Returns one table as it was written, row after row.

        Args:
            name: a key of `COLUMNS`.
            run: Alone; by default all of the study.
            columns: Some of its columns, `run` among them; by default all.

        Raises:
            StudyError: there is no such table, or (`DamageError`) rows of it are
                missing or damaged.
        """
        try:
            return parts.joined(name, self.pieces(name, run, columns))
        except (KeyError, TypeError, ValueError):
            if columns is None:
                raise
            every = ", ".join(self.arrow(name, run).column_names)
            raise StudyError(
                f"columns must be a list of some of {every}, run among them, got "
                f"{shown(columns)}"
            ) from None

    def pieces(
        self, name: str, run: int | None = None, columns: list[str] | None = None
    ) -> "Iterator[pa.Table]":
        """Yields the rows of `arrow` a file at a time, for tables larger than memory.

        Rows that are missing are noticed after the last piece.
        """
        if name not in COLUMNS:
            raise StudyError(f"table must be one of {', '.join(COLUMNS)}, got {name!r}")
        if name in LEFT_OUT and is_summary(self.manifest):
            raise StudyError(
                f"{self.folder}: there is no table {name}, because the scenario has "
                "record: summary; repeat it with record: everything"
            )
        filters: parts.Filters | None = None if run is None else [("run", "=", run)]
        counts = np.zeros(len(self.manifest["runs"]), np.int64)
        for file, seal in parts.ordered(self.files.get(name, {})).items():
            path = self.folder / name / file
            found = parts.read(self._disk, path, seal, filters, columns)
            runs = found.column("run").to_numpy()
            counts += np.bincount(runs, minlength=counts.size)
            mine = self._of_ended(runs)
            yield found if mine is None else found.filter(mine)
        self._check_rows(name, counts, run)

    def so_far(self) -> "pd.DataFrame":
        """Returns the evaluations of runs that have not ended, as far as written.

        A run writes them once in `writing.PART_SECONDS`, before its end is noted.
        """
        table, known = "evaluations", self.files.get("evaluations", {})
        found = []
        for file in self._disk.names(self.folder / table):
            if not file.endswith(".parquet") or file in known:
                continue
            path = self.folder / table / file
            # It may be removed just now, or was torn by a loss of power.
            with contextlib.suppress(DamageError, OSError, ValueError):
                found.append(parts.read(self._disk, path, None))
        frame = parts.joined(table, found).to_pandas()
        runs = self.manifest["runs"]
        open_ = [run["run"] for run in runs if run["stop"] == "incomplete"]
        mine = frame.loc[frame["run"].isin(open_)]
        mine = mine.drop_duplicates(["run", "time", "commits"])
        return mine.sort_values(["run", "time"], kind="stable", ignore_index=True)

    def _of_ended(self, runs: np.ndarray) -> "pa.Array | None":
        """Returns a mask of the rows of runs that have ended; None if all are.

        Where the line that noted a run's end is damaged, its rows may be there. What
        was recorded of a timeline that was interrupted is given.
        """
        import pyarrow as pa

        if is_world(self.manifest):
            return None
        ended = [entry["run"] for entry in self.manifest["runs"] if "rows" in entry]
        known = np.isin(runs, ended)
        return None if known.all() else pa.array(known)

    def _check_rows(self, name: str, counts: np.ndarray, only: int | None) -> None:
        for entry in self.manifest["runs"]:
            number = entry["run"]
            if "rows" not in entry or only not in (None, number):
                continue
            expected = entry["rows"].get(name, 0)
            if (there := int(counts[number])) != expected:
                raise DamageError(
                    f"{self.folder}: table {name} must have {expected} rows of run "
                    f"{number} ({entry['label']}), but has {there}; restore it from a "
                    f"copy, or repeat the run by stalesim resume {self.folder}"
                )


def is_summary(manifest: Manifest) -> bool:
    """Returns whether statistics were kept in place of details (`LEFT_OUT`)."""
    return manifest.get("scenario", {}).get("record") == "summary"


def load(folder: str | Path, disk: Disk = DISK, *, quietly: bool = False) -> Study:
    """Reads a study.

    Args:
        folder: Folder that `stalesim run` wrote.
        disk: Disk of the folder.
        quietly: Whether damaged lines of a journal are not reported, as by who reads
            the folder every second.

    Raises:
        StudyError: it is not the folder of a study, or its manifest is damaged.

    Example:
        `study = stalesim.load("my-study")`
    """
    check_folder(folder)
    path = Path(folder)
    manifest = read_manifest(path, disk)
    session, files = manifest["session"], manifest["parts"]
    entries = {entry["run"]: entry for entry in manifest["runs"]}
    for place in (*_noted_apart(path, manifest, disk), journal_of(path, session)):
        of_one = quietly or place.parent != path  # a torn one counts as not written
        ends, files = read_journal(disk, place, files, quietly=of_one)
        for run, end in ends.items():
            entries[run].update(end)
    return Study(path, manifest, files, disk)


def look_until_complete(
    study: Study, look: Callable[[Study], None], every_s: float
) -> None:
    """Reads a study that another process runs, again and again.

    Args:
        study: Study as it is now.
        look: Called with the study, until two reads in a row find it complete: between
            two stages of a search it is complete for a moment.
        every_s: Real seconds between reads.

    Raises:
        StudyError: the first read fails, or `ATTEMPTS` of them in a row do.
    """
    was_complete, failures = False, ATTEMPTS - 1
    while True:
        try:
            look(study)
            if study.complete and was_complete:
                return
            was_complete, failures = study.complete, 0
        except StudyError:
            failures += 1
            if failures == ATTEMPTS:
                raise
        time.sleep(every_s)
        study = load(study.folder, quietly=True)


def _noted_apart(path: Path, manifest: Manifest, disk: Disk) -> list[Path]:
    """Returns what tasks have left that have no writer of the study in common."""
    if manifest.get(SHARED) != manifest["session"]:
        return []
    ending = done_by(manifest["session"])
    names = disk.names(path / LOCKS)
    return [path / LOCKS / name for name in names if name.endswith(ending)]


def done_by(session: int) -> str:
    """Returns the suffix of the names of results that the tasks of a session record."""
    return f"-{session}.done"


def journal_of(folder: Path, session: int) -> Path:
    """Returns the path of a session's journal, which lives as long as the session."""
    return folder / f"journal-{session}.log"


def journal_session(name: str) -> int | None:
    """Returns the session of which a file is the journal; None if it is none."""
    found = re.fullmatch(r"journal-([0-9]+)\.log", name)
    return None if found is None else int(found[1])
