"""The timeline of contributions that are on their way after their job is done."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf
from typing import Any

from ....files.timeline import NO_SLOT, Outcome
from ....world.recorders.recorder import NEVER, Reading, Recorder
from ....world.world import World


@dataclass
class DoneJob:
    """A job that is done, and on its way to the pivot.

    Attributes:
        client: Number of its client, from 0.
        read: What it had read.
        computed: Time of its end, in the clock's unit.
        sent: Time at which it left its client, or `NEVER`.
        uploads: Messages that count for it: each counts for its first job.
    """

    client: int
    read: Reading
    computed: Any
    sent: Any = NEVER
    uploads: int = 0


class TreeRecorder(Recorder):
    """The timeline of one run in which jobs that are done are under way.

    Only what was taken at the current version is applied, so that no other version
    needs a register: what reads an older one names none.
    """

    def __init__(self, world: World, width: int) -> None:
        super().__init__(world, width)
        self._done: dict[tuple[int, int], DoneJob] = {}

    def begin(self, client: int, version: int) -> int:
        """Begins a client's next job, at the current version or an older one.

        Returns:
            The job's number.
        """
        time = self._now
        if version == self.version:
            job = self.read(client)
        else:
            job = self.new_job(client)
            self._set(client, Reading(job, time, version, NO_SLOT))
        self._timing[client] = (time, inf, inf, inf, 0)
        return job

    def finish(self, client: int) -> DoneJob:
        """Ends a client's job; what comes of it is on its way."""
        read = self.current(client)
        if read.read_slot != NO_SLOT:
            self._readers[read.read_slot] -= 1  # it is the current one, and stays
        self._read_time[client] = self._timing[client] = None
        done = DoneJob(client, read, self._now)
        self._done[client, read.job] = done
        return done

    def apply(self, arrived: Sequence[DoneJob], round_: int, *, commits: bool) -> None:
        """Takes contributions that have come to the pivot, the last one as a commit."""
        for number, done in enumerate(arrived):
            before, timing = self._take_up(done, self._now)
            if commits and number == len(arrived) - 1:
                self.commit((done.client,), round_)
            else:
                self.contribute(done.client, round_)
            self._set(done.client, before)
            self._timing[done.client] = timing
        if commits:
            self._forget()

    def reject(self, dropped: Sequence[DoneJob], arrived: Any = NEVER) -> None:
        """Drops contributions that come too late to count.

        Args:
            dropped: They.
            arrived: Time of their arrival at the pivot, if they came so far.
        """
        for done in dropped:
            done.read = done.read._replace(read_slot=NO_SLOT)
            before, timing = self._take_up(done, arrived)
            self.lose(done.client, Outcome.REJECTED)
            self._set(done.client, before)
            self._timing[done.client] = timing

    def _take_up(self, done: DoneJob, arrived: Any) -> tuple[Reading, Any]:
        """Makes what is done its client's current job.

        Returns:
            What the one has read that the client is at, and its timing.
        """
        before = self.current(done.client), self._timing[done.client]
        del self._done[done.client, done.read.job]
        self._set(done.client, done.read)
        if done.read.read_slot != NO_SLOT:
            self._readers[done.read.read_slot] += 1
        times = (done.read.read_time, done.computed, done.sent, arrived)
        self._timing[done.client] = (*times, done.uploads)
        return before

    def _forget(self) -> None:
        """Frees what jobs under way have read, of which nothing can come any more."""
        for client, time in enumerate(self._read_time):
            slot = self._read_slot[client]
            if time is not None and slot != NO_SLOT:
                self._read_slot[client] = NO_SLOT
                self._readers[slot] -= 1
                if not self._readers[slot]:
                    self._free.append(slot)

    def _leave(self, worker: int) -> None:
        if self._read_slot[worker] == NO_SLOT:
            self._read_time[worker] = self._timing[worker] = None
        else:
            super()._leave(worker)

    def _add_unfinished(self) -> None:
        for done in self._done.values():
            read = done.read
            moments = (read.read_time, read.read_time, done.computed, done.sent)
            job = done.client, read.job, read.read_version
            times = (*moments, NEVER, NEVER)
            self._add_job(*job, times, Outcome.IN_FLIGHT, done.uploads)
        super()._add_unfinished()
