"""The timeline of contributions that wait at their edges for a visit at the cloud."""

from collections.abc import Container
from typing import Any

from ...recorders.recorder import Recorder
from ...timeline import NO_SLOT, Rows

UNNAMED = 1
"""Register of all reads while the world is played; no row names it."""
ALWAYS = 1 << 60
"""Readers of it, so that it is never free."""


class HierarchyRecorder(Recorder):
    """The timeline of one run in which clients read the models of their edges.

    An edge's model stays as it is while its clients work, so that it needs no register;
    one that does not wait for them gives each a copy, which stays as it is as well.

    Args:
        world_and_shape: As in `Recorder`.
    """

    def __init__(self, *world_and_shape: Any) -> None:
        super().__init__(*world_and_shape)
        self._readers.append(ALWAYS)

    def begin(self, client: int, time: Any, version: int) -> None:
        """Begins a client's next job, at its edge's model of a version of the cloud."""
        self._job[client] = self.new_job(client)
        self._read_time[client] = time
        self._read_version[client] = version
        self._read_slot[client] = UNNAMED

    def merge(
        self, time: Any, client: int, round_: int, others: Container[tuple[int, int]]
    ) -> None:
        """Applies what has come to the cloud, the last contribution included.

        Args:
            time: Time at the cloud, in the clock's unit.
            client: Client whose contribution ended its edge's last round.
            round_: Round of the cloud.
            others: All other jobs whose work is in what is merged: (client, job).
        """
        waiting, self._held = self._held, []
        for entry in waiting:
            into = self._buffered if entry[1:3] in others else self._held
            into.append(entry)
        self.commit(time, (client,), round_)

    def _finished(self, rows: Rows) -> Rows:
        rows.read_slot[rows.read_slot == UNNAMED] = NO_SLOT
        return rows
