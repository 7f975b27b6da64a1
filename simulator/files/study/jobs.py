"""The tables `jobs` and `incidents`, of runs and of recorded timelines; and back.

The two differ in one thing, the count of messages. In a run, messages are traffic:
those that weigh anything, of downloads those that had arrived before the job began,
each as often as its protocol sends it for a job. In a recorded timeline they count the
client's own sendings and requests, because a replay has other sizes and another
protocol.
"""

from collections.abc import Callable, Iterator
from enum import IntEnum
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Int

from ..job_steps import JobSteps
from ..timeline import Columns, Incident, Incidents, Jobs, Outcome, some
from .columns import COLUMNS, inward
from .study import Study
from .writing import Categorical

if TYPE_CHECKING:
    import pyarrow as pa

KINDS = ("work", "refresh")
OUTCOMES = tuple(outcome.name for outcome in Outcome)
STEPS = "local_steps"
"""Column of jobs that have their own local steps."""
INCIDENTS = tuple(incident.name for incident in Incident)


MessageCounts = tuple[Int[np.ndarray, " J"], Int[np.ndarray, " J"]]
"""Messages of each job: from its client, repeats included, and to it."""


def traffic(
    jobs: Jobs,
    per_job: Int[np.ndarray, "K 2"],
    upload_bytes: int,
    download_bytes: int,
    *,
    by_round: bool = False,
) -> MessageCounts:
    """Counts the messages of a run's jobs that carry anything.

    Args:
        jobs: Jobs of a run.
        per_job: Uploads and downloads of a job of each client, by its protocol.
        upload_bytes: Bytes of one upload, >= 0.
        download_bytes: Bytes of one download, >= 0.
        by_round: Whether downloads are replies of a round, which come before its end;
            else they come before the job begins.
    """
    fetched = ~np.isnan(jobs.begun_time)
    if by_round:
        fetched = jobs.outcome != Outcome.IN_FLIGHT
    fetched &= jobs.refresh == 0
    up, down = per_job[jobs.client].T
    return jobs.uploads * up * (upload_bytes > 0), fetched * down * (download_bytes > 0)


def attempts(jobs: Jobs) -> MessageCounts:
    """Counts clients' sendings and requests, for a timeline to be replayed."""
    return jobs.uploads, (jobs.refresh == 0).astype(np.int32)


def job_columns(
    run: int,
    jobs: Jobs,
    counts: MessageCounts,
    upload_bytes: int,
    download_bytes: int,
    job_steps: JobSteps | None = None,
) -> dict[str, np.ndarray | Categorical]:
    """Returns rows of the table `jobs`.

    Args:
        run: Number of the run in its study.
        jobs: Jobs that have ended, or were under way at the end of the run.
        counts: Messages of these jobs.
        upload_bytes: Bytes of one upload.
        download_bytes: Bytes of one download.
        job_steps: Local steps of each job, where they change.
    """
    uploads, downloads = counts
    steps = {} if job_steps is None else {STEPS: job_steps.of(jobs.client, jobs.job)}
    return {
        "run": np.full(jobs.client.size, run, np.int32),
        "client": jobs.client,
        "job": jobs.job,
        "kind": Categorical(jobs.refresh, KINDS),
        "read_time": jobs.read_time,
        "begun_time": jobs.begun_time,
        "computed_time": jobs.computed_time,
        "sent_time": jobs.sent_time,
        "arrived_time": jobs.arrived_time,
        "applied_time": jobs.applied_time,
        "read_version": jobs.read_version,
        "commit": jobs.commit,
        "upload_bytes": uploads.astype(np.int64) * upload_bytes,
        "download_bytes": downloads.astype(np.int64) * download_bytes,
        "upload_messages": uploads.astype(np.int32),
        "download_messages": downloads.astype(np.int32),
        "outcome": Categorical(jobs.outcome, OUTCOMES),
        **steps,
    }


def incident_columns(
    run: int, incidents: Incidents
) -> dict[str, np.ndarray | Categorical]:
    """Returns rows of the table `incidents`."""
    return {
        "run": np.full(incidents.time.size, run, np.int32),
        "time": incidents.time,
        "client": incidents.client,
        "incident": Categorical(incidents.incident, INCIDENTS),
        "messages": incidents.messages,
    }


def arrays(study: Study, table: str, run: int | None) -> dict[str, np.ndarray]:
    """Returns the columns of a run's table as they were written; clients from 0.

    Raises:
        StudyError: There is no such table, or rows of it are missing or damaged.
    """
    return _plain(study.arrow(table, run), table)


def _plain(found: "pa.Table", table: str) -> dict[str, np.ndarray]:
    return {
        name: inward(found[name])
        if COLUMNS[table][name].numbered
        else found[name].to_numpy()
        for name in found.column_names
    }


def jobs_of(study: Study, run: int | None = None) -> Jobs:
    """Returns the jobs of a run, or of all, in the order in which they ended."""
    return _jobs(arrays(study, "jobs", run))


def job_pieces(study: Study, run: int | None = None) -> Iterator[tuple[int, Jobs]]:
    """Yields a run and some of its jobs, in order; each file is read once for all."""
    return _by_run(study, "jobs", run, _jobs)


def incident_pieces(study: Study) -> Iterator[tuple[int, Incidents]]:
    """Yields a run and some of its incidents, in order, likewise."""
    return _by_run(study, "incidents", None, _incidents)


def _by_run(
    study: Study,
    table: str,
    run: int | None,
    made: Callable[[dict[str, np.ndarray]], Columns],
) -> Iterator[tuple[int, Columns]]:
    for piece in study.pieces(table, run):
        columns = _plain(piece, table)
        found, runs = made(columns), columns["run"]
        for each in np.unique(runs).tolist():
            yield each, some(found, runs == each)


def _jobs(columns: dict[str, np.ndarray]) -> Jobs:
    columns["refresh"] = (columns["kind"] == "refresh").astype(np.int32)
    columns["outcome"] = numbers(columns["outcome"], Outcome)
    columns["uploads"] = columns["upload_messages"]
    return Jobs(**{name: columns[name] for name in Jobs._fields})


def job_steps_of(study: Study, run: int, num_clients: int) -> JobSteps | None:
    """Returns the local steps of a run's jobs; None where they did not change."""
    if STEPS not in study.arrow("jobs", run).column_names:
        return None
    columns = arrays(study, "jobs", run)
    if not np.isfinite(columns[STEPS]).any():  # of other runs of the study alone
        return None
    found = JobSteps(num_clients, int(columns[STEPS].max()))
    entries = (columns[name].astype(int).tolist() for name in ("client", "job", STEPS))
    for entry in zip(*entries, strict=True):
        found.put(*entry)
    return found


def incidents_of(study: Study, run: int | None = None) -> Incidents:
    """Returns the incidents of a run, or of all, in order."""
    return _incidents(arrays(study, "incidents", run))


def _incidents(columns: dict[str, np.ndarray]) -> Incidents:
    columns["incident"] = numbers(columns["incident"], Incident)
    return Incidents(**{name: columns[name] for name in Incidents._fields})


def numbers(words: np.ndarray, kind: type[IntEnum]) -> Int[np.ndarray, " n"]:
    """Returns the numbers of an enumeration's names."""
    number = {member.name: member.value for member in kind}
    return np.fromiter(map(number.__getitem__, words), np.int32, len(words))
