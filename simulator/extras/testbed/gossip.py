"""Gossip on a testbed: workers compute, and the server averages their models."""

from math import inf

from typing_extensions import override

from ...catalogue.protocols.gossip import Gossip
from ...catalogue.protocols.gossip.playing import AllAtOnce, Pairwise, Peers, Then
from ...catalogue.protocols.gossip.recorder import GossipRecorder
from ...files.timeline import Incident
from ...world.streams import Purpose
from .world import RealWorld


def play(config: Gossip, world: RealWorld, recorder: GossipRecorder) -> None:
    """Starts every worker: snapshot, gradient, averaging and step, for ever."""
    workers = _RealPairwise if config.average == "pairwise" else _RealAllAtOnce
    workers(config, world, recorder).start()


class _RealPeers(Peers):
    """Workers that are processes; one that dies does its job again."""

    _world: RealWorld

    @override
    def _begin(self, worker: int) -> None:
        delay = self._world.draw(Purpose.IDLE, worker)
        self._world.call_after(
            delay, lambda w: self._when_there(w, self._snapshot), worker
        )

    @override
    def _snapshot(self, worker: int) -> None:
        self._recorder.read(worker)
        self._give(worker)

    def _give(self, worker: int) -> None:
        """Lets a worker compute, whose link is that of its averagings."""
        self._world.give(worker, self._computed, self._begin_again, links=False)

    def _begin_again(self, worker: int) -> None:
        """Lets a worker that has died do its job again, once it is back."""
        world, now = self._world, self._env.now
        world.note(now, worker, Incident.CRASHED)
        back = world.present_since(worker, now)
        if back < inf:
            world.note(back, worker, Incident.REJOINED)
        self._when_there(worker, self._give)

    def _when_there(self, worker: int, then: Then) -> None:
        """Lets a worker request work, if it is present, and then calls `then`."""
        world = self._world

        def answered(worker: int) -> None:
            if world.has_left(worker, self._env.now):
                self._leave(worker)
            else:
                then(worker)

        if world.present_since(worker, self._env.now) == inf:
            self._leave(worker)
        else:
            world.stage(Purpose.READ, answered)(worker)

    def _leave(self, worker: int) -> None:
        """Notes that a worker will not be back; its model is still averaged."""
        self._world.note(self._env.now, worker, Incident.LEFT)


class _RealPairwise(Pairwise, _RealPeers):
    """Two neighbours average at a time."""


class _RealAllAtOnce(AllAtOnce, _RealPeers):
    """Everyone averages at once."""
