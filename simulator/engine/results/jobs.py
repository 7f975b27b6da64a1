"""What became of a run's jobs, and what else happened to its clients."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from ...files.study import Writer
from ...files.study.jobs import incident_columns, job_columns, traffic
from ...files.timeline import Chunk, Incidents, Jobs
from ...parts.stop import Stop
from ...timelines.base import RunTimeline
from ...world.protocol_abilities import CountsMessages

CHUNK = 65_536
"""Rows of a chunk of a timeline that is played once more."""


class JobTables:
    """Writes the tables of jobs and of incidents, and counts the jobs of each client.

    Args:
        run: number of the run in its study.
        played: the run's timeline.
        writer: of the study's tables; None to count alone.
        send: hears the jobs, for the account of their messages.
        apply: hears the jobs.

    Attributes:
        started: jobs of each client.
        sent: of them, that sent their message.
    """

    def __init__(
        self,
        run: int,
        played: RunTimeline,
        writer: Writer | None,
        send: Callable[[Jobs], None],
        apply: Callable[[Jobs], None],
    ) -> None:
        self._run, self._played, self._writer, self._send = run, played, writer, send
        self._apply = apply
        self.started = np.zeros(played.num_clients, np.int64)
        self.sent = np.zeros(played.num_clients, np.int64)
        self._per_job = np.ones((played.num_clients, 2), np.int64)
        if isinstance(played.protocol, CountsMessages):
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
        self._send(jobs)
        self._apply(jobs)
        if self._writer is None:
            return
        workload = self._played.workload
        sizes = workload.upload_bytes, workload.download_bytes
        by_round = self._played.protocol.traits.batch_per_round
        counts = traffic(jobs, self._per_job, *sizes, by_round=by_round)
        given = self._played.job_steps
        self._writer.append("jobs", job_columns(self._run, jobs, counts, *sizes, given))

    def _add_incidents(self, incidents: Incidents) -> None:
        self._incidents += incidents.time.size
        if self._writer is not None:
            self._writer.append("incidents", incident_columns(self._run, incidents))
