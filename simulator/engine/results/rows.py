"""What the rows of a record say: the tables of commits and of probes."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from jaxtyping import Int

from ...files.study import Categorical, Writer
from ...files.timeline import (
    KINDS,
    NO_COMMIT,
    NO_WORKER,
    Jobs,
    Rows,
    effects,
    staleness,
)
from ..records import Record


class CommitTable:
    """Writes the table of a run's rows, with the diagnostics of each.

    A COMMIT says how many contributions it applies and how stale they are. Of those
    that had gathered before only the jobs say which commit has applied them, and these
    come with the end of a chunk: rows wait for that as soon as anything has gathered.
    A record may end in the middle of a later chunk, whose rows wait for its own end.

    Args:
        run: Number of the run in its study.
        writer: Writer of the study's tables; None to write nothing.
        at_once: As of `timeline.staleness`.
    """

    def __init__(self, run: int, writer: Writer | None, at_once: int = 1) -> None:
        self._run, self._writer, self._at_once = run, writer, at_once
        self._gathers = False
        self._rows: list[dict[str, np.ndarray]] = []
        self._commits, self._ages = np.zeros((2, 0), np.int64)
        self._last = 0  # commit that is written

    def state(self) -> dict[str, Any]:
        """Returns what the rest of a run adds to."""
        return {
            "gathers": self._gathers,
            "rows": self._rows,
            "applied": [self._commits, self._ages],
            "last": self._last,
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Takes up what `state` has returned."""
        self._gathers, self._rows = state["gathers"], state["rows"]
        self._commits, self._ages = state["applied"]
        self._last = state["last"]

    def add(self, record: Record) -> None:
        """Takes up the rows of a record."""
        if self._writer is None:
            return
        effect = effects(record.rows.kind)
        gathers = effect.contributes & ~effect.commits
        self._gathers = self._gathers or bool(gathers.any())
        self._rows.append(_columns(self._run, record, self._at_once))
        if not self._gathers:
            self.write()

    def apply(self, jobs: Jobs) -> None:
        """Takes up the jobs of a chunk, some of which were applied.

        Its last job may be one of the next chunk's first row.
        """
        if self._writer is None:
            return
        own = (jobs.commit != NO_COMMIT) & (jobs.refresh == 0)
        own &= jobs.commit > self._last
        commit = jobs.commit[own]
        age = staleness(commit - 1, jobs.read_version[own], self._at_once)
        self._commits = np.concatenate([self._commits, commit])
        self._ages = np.concatenate([self._ages, age])

    def write(self, rows: Rows | None = None) -> None:
        """Writes rows that have waited.

        Args:
            rows: Rows of the chunk whose jobs have just come; None if all have.
        """
        waiting, self._rows = self._rows, []
        last = NO_COMMIT if rows is None else _commits(rows).max(initial=0)
        for columns in waiting:
            due = int(np.searchsorted(columns["commit"], last, "right"))
            if due:
                self._write({name: values[:due] for name, values in columns.items()})
            if due < columns["commit"].size:
                rest = {name: values[due:] for name, values in columns.items()}
                self._rows.append(rest)

    def _write(self, columns: dict[str, np.ndarray]) -> None:
        if self._gathers:
            self._summarise(columns)
        kind = Categorical(columns["kind"], KINDS)
        assert self._writer is not None
        self._writer.append("commits", columns | {"kind": kind})
        self._last = int(columns["commit"].max())
        later = self._commits > self._last
        self._commits, self._ages = self._commits[later], self._ages[later]

    def _summarise(self, columns: dict[str, np.ndarray]) -> None:
        """Puts into each COMMIT what all of its contributions come to."""
        made = effects(columns["kind"]).commits
        commit = columns["commit"][made]
        mine = np.isin(self._commits, commit)
        place, ages = np.searchsorted(commit, self._commits[mine]), self._ages[mine]
        count = np.bincount(place, minlength=commit.size)
        total = np.bincount(place, ages, minlength=commit.size)
        largest = np.zeros(commit.size, np.int64)
        np.maximum.at(largest, place, ages)
        columns["num_contributions"][made] = count
        columns["staleness_mean"][made] = total / np.maximum(count, 1)
        columns["staleness_max"][made] = largest


def _commits(rows: Rows) -> Int[np.ndarray, " T"]:
    """Returns the version after each row."""
    return rows.version + effects(rows.kind).commits


def _columns(run: int, record: Record, at_once: int) -> dict[str, np.ndarray]:
    """Returns the columns of a record's rows, each by itself."""
    rows, infos = record.rows, record.infos
    present = rows.worker != NO_WORKER
    effect = effects(rows.kind)
    present[effect.first_sender > 0, 1:] = False  # the one that it serves
    count = present.sum(axis=1)
    alone = (count == 1) | effect.pairs | effect.one_way
    age = staleness(rows.version[:, None], rows.read_version, at_once)
    age = np.where(present, age, 0)
    mean = age.sum(axis=1) / np.maximum(count, 1)
    columns = {
        "run": np.full(rows.time.size, run, np.int32),
        "commit": _commits(rows),
        "time": rows.time,
        "kind": rows.kind,
        "round": rows.round,
        "num_contributions": np.where(effect.contributes, count, 0).astype(np.int32),
        "client": np.where(
            alone, np.where(effect.one_way, rows.node, rows.worker[:, 0]), NO_WORKER
        ),
        "staleness_mean": mean.astype(np.float32),
        "staleness_max": age.max(axis=1).astype(np.int32),
    }
    for name, values in infos.items():
        if "/" not in name:
            columns[name] = values.astype(np.float32)
    if "workers/noise_std" in infos:
        held = infos["workers/noise_std"].shape[1]
        mask = present[:, :held]
        mean = np.where(mask, infos["workers/noise_std"], 0).sum(axis=1) / count
        columns["noise_std"] = mean.astype(np.float32)
    return columns


def probes(run: int, record: Record) -> Iterator[dict[str, np.ndarray]]:
    """Yields the table of what was saved of a record's rows, row after row."""
    for row, samples, values in record.probes:
        workers = record.rows.worker[row]
        present = workers != NO_WORKER
        count = int(present.sum())
        own = np.broadcast_to(samples, (workers.size, samples.shape[-1]))[present]
        columns = {
            "run": np.full(count, run, np.int32),
            "commit": np.full(count, record.rows.version[row] + 1),
            "time": np.full(count, record.rows.time[row]),
            "client": workers[present],
            "job": record.rows.job[row][present],
            "samples": own,
        }
        for name, value in values.items():
            columns[name] = value[present].reshape(count, -1).astype(np.float32)
        yield columns
