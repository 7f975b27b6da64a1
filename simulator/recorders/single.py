"""Writes the commonest timeline, of single jobs applied on arrival, at less cost.

A general row is 22 numbers, a row here 7; the rest follows from them when a chunk is
handed over. That is a third of the time of a plain asynchronous world.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..timeline import NO_SLOT, NO_WORKER, SERVER, Jobs, Rows
from .recorder import Recorder

_ROW = 7  # worker, job, read_version, read_slot, read time, time, write_slot


class SingleRecorder(Recorder):
    """The timeline of a run in which every row applies one job at its arrival."""

    def commit(self, time: float, workers: Sequence[int], round_: int = 0) -> None:
        (worker,) = workers
        slot, current, readers = self._read_slot[worker], self._slot, self._readers
        self._rows += (
            worker,
            self._job[worker],
            self._read_version[worker],
            slot,
            self._read_time[worker],
            time,
            NO_SLOT,
        )  # pyright: ignore[reportOperatorIssue]
        self._read_time[worker] = None
        readers[slot] -= 1
        if not readers[slot] and slot != current:
            self._free.append(slot)
        if current != NO_SLOT and not readers[current]:
            self._free.append(current)
        self._slot = NO_SLOT
        self.version += 1
        self.num_rows += 1
        self.num_contributions += 1

    def _set_write_slot(self, slot: int) -> None:
        if self._rows:
            self._rows[-1] = slot

    def take(
        self, seconds: Callable[[Any], np.ndarray], *, final: bool = False
    ) -> tuple[Rows, Jobs]:
        # The last row may still get a register, when a client reads its version.
        keep = 0 if final or not self.num_rows else self._kept
        self._kept = 1
        take = self.num_rows - keep
        # Whole numbers below 2**53 are exact in float64, ticks among them.
        table = np.array(self._rows[: take * _ROW], np.float64).reshape(-1, _ROW)
        self._rows = self._rows[take * _ROW :]
        first = self.version - self.num_rows
        self.num_rows = keep
        whole = table[:, [0, 1, 3, 6]].astype(np.int32)
        worker, job, read_slot, write_slot = whole.T
        read_version = table[:, 2].astype(np.int64)
        read_time, time = seconds(table[:, 4]), seconds(table[:, 5])
        version = np.arange(first, first + take)
        zeros = np.zeros(take, np.int32)
        rows = Rows(
            time=time,
            kind=zeros,
            node=np.full(take, SERVER, np.int32),
            worker=worker[:, None],
            job=job[:, None],
            version=version,
            read_version=read_version[:, None],
            read_slot=read_slot[:, None],
            write_slot=write_slot,
            peer=np.full(take, NO_WORKER, np.int32),
            round=zeros,
        )
        applied = Jobs(
            client=worker,
            job=job,
            refresh=zeros,
            read_time=read_time,
            begun_time=read_time,
            computed_time=time,
            sent_time=time,
            arrived_time=time,
            applied_time=time,
            read_version=read_version,
            commit=version + 1,
            outcome=zeros,
            uploads=zeros + 1,
        )
        others = self._build_jobs(seconds, final=final)
        if not others.client.size:
            return rows, applied
        return rows, Jobs(*map(np.concatenate, zip(applied, others, strict=True)))
