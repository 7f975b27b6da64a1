"""Writes a timeline of workers that have a model each, and no server."""

from collections.abc import Sequence

import numpy as np

from ....files.timeline import NO_SLOT, NO_WORKER, SERVER, Kind, Rows
from ....world.recorders.arrays import NEVER
from ....world.recorders.recorder import Recorder
from ....world.world import World


class GossipRecorder(Recorder):
    """The timeline of one run without a server, as it grows.

    Worker k reads from register k alone: it always holds k's model while k has no job
    under way, and afterwards what that job has read. So a COMMIT writes its worker's
    register, and an averaging those of its workers that have no job under way.
    """

    def __init__(self, world: World, *_: object) -> None:
        super().__init__(world, width=2)
        self._slot = NO_SLOT  # there is no version that all share
        self._readers = [1] * world.num_clients  # so that no register is ever free
        self._num_mixings = 0

    def read(self, worker: int) -> int:
        self._slot = worker
        job = super().read(worker)
        self._slot = NO_SLOT
        return job

    def commit(self, workers: Sequence[int], round_: int = 0) -> None:
        super().commit(workers, round_)
        self._set_write_slot(workers[0])

    def average(self, initiator: int, partner: int) -> None:
        """Gives two workers the mean of their models."""
        for worker in (initiator, partner):
            slot = worker if self._read_time[worker] == NEVER else NO_SLOT
            self._work += (worker, self._job[worker], self.version, slot)
        self._add_row(Kind.AVERAGE, 2)
        self.num_other_uploads += 2

    def average_all(self, round_: int, uploads: int) -> None:
        """Mixes the models of all workers; all or none of them have a job under way.

        Args:
            round_: Round of the protocol.
            uploads: Messages that the averaging took.
        """
        self._add_row(Kind.AVERAGE_ALL, 0, round_)
        self._set_write_slot(0 if self._read_time[0] == NEVER else NO_SLOT)
        self._num_mixings += 1
        self.num_other_uploads += uploads

    @property
    def turns(self) -> int:
        return self.version + self._num_mixings

    def _finished(self, rows: Rows) -> Rows:
        named = {Kind.AVERAGE: 0, Kind.MERGE: 0, Kind.SEND: 1}
        everyone = rows.kind == Kind.AVERAGE_ALL
        node = np.where(everyone, SERVER, rows.worker[:, 0]).astype(np.int32)
        peer = np.full_like(node, NO_WORKER)
        for kind, place in named.items():
            mine = rows.kind == kind
            node[mine], peer[mine] = (
                rows.worker[mine, place],
                rows.worker[mine, 1 - place],
            )
        if everyone.any():
            rows.read_slot[everyone, 0] = rows.write_slot[everyone]
            rows.write_slot[everyone] = NO_SLOT
        return rows._replace(node=node, peer=peer)
