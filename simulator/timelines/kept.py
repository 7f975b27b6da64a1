"""What is kept of a run's timeline: all of it, or statistics alone."""

import numpy as np

from ..files.job_steps import JobSteps
from ..files.study import Categorical, Writer
from ..files.study.jobs import attempts, incident_columns, job_columns
from ..files.summary import Summary
from ..files.timeline import KINDS, NO_WORKER, Chunk, Rows

DID = ("run", "client", "num_jobs", "num_applied", "staleness_mean", "staleness_max")
"""Columns of the table `clients`, next to names; jobs contain the rest."""


class WholeRecord:
    """Every row, job and incident.

    Args:
        run: Number of the run.
        summary: Activity of each client, over all of the run.
        sizes: Bytes of an upload and of a download.
        names: Columns of the table `clients` that name each client.
        writer: Writer of the tables.
        job_steps: Local steps of each job, where they change.
    """

    def __init__(
        self,
        run: int,
        summary: Summary,
        sizes: tuple[int, int],
        names: dict[str, Categorical],
        writer: Writer,
        job_steps: JobSteps | None = None,
    ) -> None:
        self._run, self._summary, self._job_steps = run, summary, job_steps
        self._sizes, self._names = sizes, names
        self._writer, self._written = writer, 0

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
        """Nothing: written rows stay."""
        return

    def finish(self, virtual_s: float) -> dict[str, object]:
        """Writes the activity of each client."""
        told = self._summary.clients(self._run, virtual_s)
        did = {name: told[name] for name in DID}
        self._writer.append("clients", did | self._names)
        return {}


class Statistics:
    """Statistics alone."""

    def __init__(
        self, run: int, summary: Summary, names: dict[str, Categorical], writer: Writer
    ) -> None:
        self._run, self._summary = run, summary
        self._names, self._writer = names, writer

    def add(self, chunk: Chunk) -> None:
        """Counts the rows of the next chunk."""
        self._summary.add(chunk)

    def again(self) -> "Statistics | None":
        """Returns statistics that have the end of the start, if it was found late."""
        summary = self._summary.again()
        return summary and Statistics(self._run, summary, self._names, self._writer)

    def finish(self, virtual_s: float) -> dict[str, object]:
        """Writes the counts."""
        run, summary = self._run, self._summary
        summary.finish(virtual_s)
        self._writer.append("clients", summary.clients(run, virtual_s) | self._names)
        self._writer.append("ages", summary.ages(run))
        return {"summary": summary.entry()}


Tables = WholeRecord | Statistics
"""The kept part of a run's timeline."""


def row_columns(
    run: int, rows: Rows, first: int
) -> dict[str, np.ndarray | Categorical]:
    """Returns a row per worker of each row, and one row where no worker takes part."""
    present = rows.worker != NO_WORKER
    present[:, 0] = True
    row, place = np.nonzero(present)
    columns: dict[str, np.ndarray | Categorical] = {
        "run": np.full(row.size, run, np.int32),
        "row": first + row,
        "place": place.astype(np.int32),
    }
    for name, values in rows._asdict().items():
        columns[name] = values[row, place] if values.ndim == 2 else values[row]
    columns["kind"] = Categorical(rows.kind[row], KINDS)
    return columns
