"""Waves: rows whose work depends on none of each other, by the record alone.

What a client computes depends on the version that it has read, which the timeline
contains beforehand. So the work of all rows up to the first one that reads a register
written within the wave may be done at once, and is the same as row by row.
"""

import numpy as np
from jaxtyping import Int

from ..files.timeline import (
    NO_SLOT,
    NO_WORKER,
    SERVER,
    Chunk,
    Jobs,
    Outcome,
    Rows,
    effects,
)


def ends(
    worker: Int[np.ndarray, "T W"],
    read_slot: Int[np.ndarray, "T W"],
    keep_slot: Int[np.ndarray, " T"],
    *,
    keeps_clients: bool = False,
) -> Int[np.ndarray, " T"]:
    """Returns, for each row, the first row after a wave that begins with it.

    Args:
        worker: Workers of each row, padded with `NO_WORKER`.
        read_slot: Register that each has read, or `NO_SLOT`.
        keep_slot: Register that the version before a row is written to, before the row
            reads; `NO_SLOT` if none is.
        keeps_clients: Whether a job starts with the state of its client's job before;
            then no client is twice in a wave.
    """
    size = keep_slot.size
    rows = np.arange(size)
    written = _latest(keep_slot[:, None], NO_SLOT, read_slot, NO_SLOT, same_row=True)
    end = np.searchsorted(np.maximum.accumulate(written), rows, side="right")
    if keeps_clients and size:
        before = _latest(worker, NO_WORKER, worker, NO_WORKER, same_row=False)
        repeated = np.searchsorted(np.maximum.accumulate(before), rows, side="left")
        # The row itself may repeat a client of an earlier one.
        end = np.minimum(end, np.maximum(repeated, rows + 1))
    return end.astype(np.int32)


class CriticalPath:
    """Counts the jobs of a timeline and its waves, chunk by chunk.

    There are as many waves as jobs in the longest chain in which each has read a result
    of the one before: on any number of machines, a run takes as many steps of a job. A
    version depends on all contributions up to it, a worker's own model on its steps
    and, by averagings, those of others.

    Attributes:
        jobs: Jobs that contribute, and further uploads of refreshes.
        known: Whether each of them has the version that it has read. A job that has
            read the model of an edge has none.
    """

    def __init__(self, num_workers: int) -> None:
        self.jobs, self.known = 0, True
        self._waves, self._made = 0, 0  # version that the latest wave's first is in
        self._models, self._read = [0] * num_workers, [0] * num_workers

    @property
    def waves(self) -> int | None:
        """Waves so far; None where they are not known."""
        return self._waves if self.known else None

    def add(self, chunk: Chunk) -> None:
        """Adds the rows of the next chunk."""
        rows, effect = chunk.rows, effects(chunk.rows.kind)
        unnamed = (rows.worker != NO_WORKER) & (rows.read_slot == NO_SLOT)
        self.known = self.known and not unnamed[effect.contributes].any()
        self.known = self.known and not effect.one_way.any()
        used = np.isin(chunk.jobs.outcome, (Outcome.APPLIED, Outcome.BUFFERED))
        self.jobs += int(used.sum())
        if ((rows.node != SERVER) | effect.mixes_all).any():
            self._add_own(rows)
        else:
            self._add_common(Jobs(*(column[used] for column in chunk.jobs)))

    def _add_common(self, jobs: Jobs) -> None:
        """Counts jobs of a common state, in the order of the versions they are in."""
        made = np.where(jobs.refresh == 1, jobs.read_version + 1, jobs.commit)
        read = np.maximum.accumulate(jobs.read_version)
        ends = np.searchsorted(read, made).tolist()
        at = int(np.searchsorted(read, self._made))
        while at < len(ends):
            self._waves, self._made = self._waves + 1, int(made[at])
            at = ends[at]

    def _add_own(self, rows: Rows) -> None:
        """Counts rows of workers with a model each: the longest chain of each model."""
        models, read = self._models, self._read
        effect = effects(rows.kind)
        columns = effect.commits, effect.mixes_all, rows.worker, rows.read_slot
        moves = effect.commits | effect.pairs | effect.mixes_all
        for commits, mixes_all, workers, slots in zip(
            *(column[moves].tolist() for column in columns), strict=True
        ):
            if commits:
                worker = workers[0]
                models[worker] = max(models[worker], read[worker] + 1)
                read[worker] = models[worker]
                continue
            if mixes_all:
                workers = range(len(models))
                slots = workers if slots[0] != NO_SLOT else ()
            longest = max(models[worker] for worker in workers)
            for worker in workers:
                models[worker] = longest
            for slot in slots:
                if slot != NO_SLOT:
                    read[slot] = longest
        self._waves = max(self._waves, *models)


def _latest(
    made: Int[np.ndarray, "T A"],
    none_made: int,
    asked: Int[np.ndarray, "T B"],
    none_asked: int,
    *,
    same_row: bool,
) -> Int[np.ndarray, " T"]:
    """Returns the latest row that made a number that each asks for; -1 for none."""
    size = len(made)
    row, place = np.nonzero(made != none_made)
    keys = made[row, place].astype(np.int64) * (size + 1) + row
    keys.sort()
    row, place = np.nonzero(asked != none_asked)
    number = asked[row, place].astype(np.int64)
    limit = number * (size + 1) + row
    at = np.searchsorted(keys, limit, side="right" if same_row else "left") - 1
    found = keys[at] if keys.size else np.full(at.size, -1)
    known = (at >= 0) & (found // (size + 1) == number)
    latest = np.full(size, -1, np.int64)
    np.maximum.at(latest, row[known], found[known] % (size + 1))
    return latest
