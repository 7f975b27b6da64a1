"""The tables of a timeline: the whole record of it, or statistics alone."""

from typing import Any

import numpy as np

from ..files.job_steps import JobSteps
from ..files.study import Categorical, Writer
from ..files.study.jobs import attempts, incident_columns, job_columns
from ..files.timeline import KINDS, NO_WORKER, Chunk, Rows
from .summary import Summary

DID = ("run", "client", "num_jobs", "num_applied", "staleness_mean", "staleness_max")
"""Columns of the table `clients`, next to names; jobs say the rest."""


class WholeRecord:
    """Every row, job and incident.

    Args:
        entry: Entry of the run in the manifest.
        sizes: Bytes of an upload and of a download.
        names: Columns of the table `clients` that name each client.
        writer: Writer of the tables.
        job_steps: Local steps of each job, where they change.
    """

    def __init__(
        self,
        entry: dict[str, Any],
        sizes: tuple[int, int],
        names: dict[str, Categorical],
        writer: Writer,
        job_steps: JobSteps | None = None,
    ) -> None:
        self._job_steps = job_steps
        self._run, self._sizes, self._names = entry["run"], sizes, names
        self._writer, self._written = writer, 0
        at_once = entry["commits_at_once"]
        self._summary = Summary(entry["num_clients"], 1, at_once, start_s=0.0)

    def add(self, chunk: Chunk) -> None:
        """Writes the next chunk."""
        rows, run, write = chunk.rows, self._run, self._writer.append
        self._summary.add(chunk)
        write("rows", row_columns(run, rows, self._written))
        sent, own = attempts(chunk.jobs), self._job_steps
        write("jobs", job_columns(run, chunk.jobs, sent, *self._sizes, own))
        write("incidents", incident_columns(run, chunk.incidents))
        self._written += rows.time.size

    def again(self) -> None:
        """Nothing: what is written is written."""
        return

    def finish(self, virtual_s: float) -> dict[str, Any]:
        """Writes what each client did."""
        told = self._summary.clients(self._run, virtual_s)
        did = {name: told[name] for name in DID}
        self._writer.append("clients", did | self._names)
        return {}


class Statistics:
    """Statistics alone.

    Args:
        entry: Entry of the run in the manifest.
        names: Columns of the table `clients` that name each client.
        writer: Writer of the tables.
        start_s: End of the start, where it is known.
    """

    def __init__(
        self,
        entry: dict[str, Any],
        names: dict[str, Categorical],
        writer: Writer,
        start_s: float | None = None,
    ) -> None:
        self._entry, self._names, self._writer = entry, names, writer
        self._summary = Summary(
            entry["num_clients"],
            entry["in_flight"],
            entry["commits_at_once"],
            names.get("client_group"),
            start_s,
        )

    def add(self, chunk: Chunk) -> None:
        """Counts what is in the next chunk."""
        self._summary.add(chunk)

    def again(self) -> "Statistics | None":
        """Returns statistics that know the end of the start, if it came out late."""
        if not self._summary.misplaced:
            return None
        return Statistics(self._entry, self._names, self._writer, self._summary.over)

    def finish(self, virtual_s: float) -> dict[str, Any]:
        """Writes what was counted."""
        run, summary = self._entry["run"], self._summary
        summary.finish(virtual_s)
        self._writer.append("clients", summary.clients(run, virtual_s) | self._names)
        self._writer.append("ages", summary.ages(run))
        return {"summary": summary.entry()}


Tables = WholeRecord | Statistics
"""What is kept of a run's timeline."""


def row_columns(
    run: int, rows: Rows, first: int
) -> dict[str, np.ndarray | Categorical]:
    """Returns a row per worker of each row, and one row where no worker takes part."""
    present = rows.worker != NO_WORKER
    present[:, 0] = True
    row, place = np.nonzero(present)
    columns: dict[str, Any] = {
        "run": np.full(row.size, run, np.int32),
        "row": first + row,
        "place": place.astype(np.int32),
    }
    for name, values in rows._asdict().items():
        columns[name] = values[row, place] if values.ndim == 2 else values[row]
    columns["kind"] = Categorical(columns["kind"], KINDS)
    return columns
