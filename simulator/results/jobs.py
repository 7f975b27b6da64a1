"""What became of a run's jobs, and what else happened to its clients."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from simulator.config.stop import Stop
from simulator.timeline import Chunk, Incident, Incidents, Jobs, Outcome
from simulator.timelines.base import RunTimeline
from simulator.trace import Words, Writer

OUTCOMES = tuple(outcome.name for outcome in Outcome)
INCIDENTS = tuple(incident.name for incident in Incident)
CHUNK = 65_536
"""Rows of a chunk of a timeline that is played once more."""


class JobTables:
    """Writes the tables of jobs and of incidents, and counts the jobs of each client.

    Args:
        run: number of the run in its study.
        played: the run's timeline.
        writer: of the study's tables.
        send: hears the client and the time at which each job's message was sent, NaN
            where none was.

    Attributes:
        started: jobs of each client.
        sent: of them, that sent their message.
    """

    def __init__(
        self,
        run: int,
        played: RunTimeline,
        writer: Writer,
        send: Callable[[np.ndarray, np.ndarray], None],
    ) -> None:
        self._run, self._played, self._writer, self._send = run, played, writer, send
        self.started = np.zeros(played.num_clients, np.int64)
        self.sent = np.zeros(played.num_clients, np.int64)
        self._per_job = played.protocol.messages_per_job(played.num_clients)
        self._jobs = self._incidents = 0  # written so far

    def state(self) -> dict[str, Any]:
        """Returns what the rest of a run adds to."""
        written = [self._jobs, self._incidents]
        return {"started": self.started, "sent": self.sent, "written": written}

    def restore(self, state: dict[str, Any]) -> None:
        """Takes up what `state` has returned."""
        self.started, self.sent = state["started"], state["sent"]
        self._jobs, self._incidents = state["written"]

    def add(self, chunk: Chunk) -> None:
        """Writes the jobs and incidents of a chunk."""
        self._add_jobs(chunk.jobs)
        self._add_incidents(chunk.incidents)

    def replay(self, stop: Stop) -> None:
        """Writes the jobs of a run that ended before its timeline did.

        Only the world can say which jobs were under way then, so it is played once more
        up to that instant.
        """
        skip, known = self._jobs, self._incidents
        for chunk in replace(self._played, stop=stop).chunks(CHUNK):
            size = chunk.jobs.client.size
            left = min(skip, size)
            skip -= left
            self._add_jobs(Jobs(*(column[left:] for column in chunk.jobs)))
            old = min(known, chunk.incidents.time.size)
            known -= old
            self._add_incidents(Incidents(*(c[old:] for c in chunk.incidents)))

    def _add_jobs(self, jobs: Jobs) -> None:
        self._jobs += jobs.client.size
        np.add.at(self.started, jobs.client, 1)
        np.add.at(self.sent, jobs.client[~np.isnan(jobs.sent_time)], 1)
        self._send(jobs.client, jobs.sent_time)
        workload = self._played.workload
        fetched = (jobs.outcome != Outcome.IN_FLIGHT) & (jobs.refresh == 0)
        up, down = self._per_job[jobs.client].T
        uploads = jobs.uploads * up * (workload.upload_bytes > 0)
        downloads = fetched * down * (workload.download_bytes > 0)
        columns: dict[str, Any] = {
            "run": np.full(jobs.client.size, self._run, np.int32),
            "client": jobs.client,
            "job": jobs.job,
            "kind": Words(jobs.refresh, ("work", "refresh")),
            "read_time": jobs.read_time,
            "begun_time": jobs.begun_time,
            "computed_time": jobs.computed_time,
            "sent_time": jobs.sent_time,
            "arrived_time": jobs.arrived_time,
            "applied_time": jobs.applied_time,
            "read_version": jobs.read_version,
            "commit": jobs.commit,
            "upload_bytes": uploads.astype(np.int64) * workload.upload_bytes,
            "download_bytes": downloads * workload.download_bytes,
            "upload_messages": uploads.astype(np.int32),
            "download_messages": downloads.astype(np.int32),
            "outcome": Words(jobs.outcome, OUTCOMES),
        }
        self._writer.append("jobs", columns)

    def _add_incidents(self, incidents: Incidents) -> None:
        self._incidents += incidents.time.size
        if incidents.time.size:
            columns = {
                "run": np.full(incidents.time.size, self._run, np.int32),
                "time": incidents.time,
                "client": incidents.client,
                "incident": Words(incidents.incident, INCIDENTS),
                "messages": incidents.messages,
            }
            self._writer.append("incidents", columns)
