"""The tables `jobs` and `incidents`, of runs and of recorded timelines alike.

The two differ in one thing, what counts as a message. In a run, messages are traffic:
those that weigh anything, of downloads those that were received, each as often as its
protocol sends it for a job. In a recorded timeline they say how often the client itself
sent and asked, for a replay gives them other weights and another protocol.
"""

from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Int

from ..timeline import Incident, Incidents, Jobs, Outcome
from .writing import Categorical

KINDS = ("work", "refresh")
OUTCOMES = tuple(outcome.name for outcome in Outcome)
INCIDENTS = tuple(incident.name for incident in Incident)


class MessageCounts(NamedTuple):
    """Messages of some jobs.

    Attributes:
        uploads: Messages from the client, repeats included, for each job.
        downloads: Messages to the client, for each job.
    """

    uploads: Int[np.ndarray, " J"]
    downloads: Int[np.ndarray, " J"]


def traffic(
    jobs: Jobs,
    per_job: Int[np.ndarray, "K 2"],
    upload_bytes: int,
    download_bytes: int,
) -> MessageCounts:
    """Counts the messages of a run's jobs that carry anything.

    Args:
        jobs: Jobs of a run.
        per_job: Uploads and downloads of a job of each client, by its protocol.
        upload_bytes: Bytes of one upload, >= 0.
        download_bytes: Bytes of one download, >= 0.
    """
    fetched = (jobs.outcome != Outcome.IN_FLIGHT) & (jobs.refresh == 0)
    up, down = per_job[jobs.client].T
    return MessageCounts(
        jobs.uploads * up * (upload_bytes > 0), fetched * down * (download_bytes > 0)
    )


def attempts(jobs: Jobs) -> MessageCounts:
    """Counts how often clients sent and asked, for a timeline to be replayed."""
    return MessageCounts(jobs.uploads, (jobs.refresh == 0).astype(np.int32))


def job_columns(
    run: int, jobs: Jobs, counts: MessageCounts, upload_bytes: int, download_bytes: int
) -> dict[str, Any]:
    """Returns rows of the table `jobs`.

    Args:
        run: Number of the run in its study.
        jobs: Jobs that have ended, or were under way at the end of the run.
        counts: Messages of these jobs.
        upload_bytes: Bytes of one upload.
        download_bytes: Bytes of one download.
    """
    uploads, downloads = counts
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
    }


def incident_columns(run: int, incidents: Incidents) -> dict[str, Any]:
    """Returns rows of the table `incidents`.

    Args:
        run: Number of the run in its study.
        incidents: Incidents of the run.
    """
    return {
        "run": np.full(incidents.time.size, run, np.int32),
        "time": incidents.time,
        "client": incidents.client,
        "incident": Categorical(incidents.incident, INCIDENTS),
        "messages": incidents.messages,
    }
