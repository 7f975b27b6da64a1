"""Gossip learning: a worker pushes its model, and who gets it merges it and trains."""

from math import floor
from typing import ClassVar, Literal

from ....files.timeline import NO_SLOT, Incident, Kind
from ....parts.base import LocatedError
from ....world.clients import Behaviour, Clients, Loss, Server
from ....world.faults import Keyed
from ....world.protocol import (
    Cadence,
    Protocol,
    Traits,
    refuse_server,
)
from ....world.recorders.arrays import NEVER
from ....world.recorders.recorder import Recorder
from ....world.streams import Purpose
from ....world.world import World
from ..graphs.base import AnyGraph
from ..graphs.kinds import Complete
from .accounts import AnyAccount
from .gossip import check_size, refuse_absence
from .playing import Peers, drawing
from .recorder import GossipRecorder

ABSENT = ("availability", "join", "leave", "crashes", "read", "download")


class PushRecorder(GossipRecorder):
    """The timeline of models that are pushed.

    A message has a register from its sending to its merging, after those of workers.
    """

    def send(self, receiver: int, sender: int, *, lost: bool) -> int:
        """Writes the sender's model into a message; returns its register.

        Nothing is written of a message that is lost.
        """
        slot = NO_SLOT
        if not lost:
            slot = self._free.pop() if self._free else len(self._readers)
            if slot == len(self._readers):
                self._readers.append(1)
        self._work += (receiver, self._job[receiver], self.version, NO_SLOT)
        self._work += (sender, self._job[sender], self.version, slot)
        self._add_row(Kind.SEND, 2)
        self._set_write_slot(slot)
        self.num_other_uploads += 1
        return slot

    def merge(self, receiver: int, sender: int, slot: int, version: int) -> bool:
        """Merges a message of a given version; returns whether the receiver is free."""
        free = self._read_time[receiver] == NEVER
        own = receiver if free else NO_SLOT
        self._work += (receiver, self._job[receiver], self.version, own)
        self._work += (sender, self._job[sender], version, slot)
        self._add_row(Kind.MERGE, 2)
        self._free.append(slot)
        return free


class PushGossip(Protocol):
    """Workers without a server: each pushes its model to a neighbour now and then.

    At a wake-up, every `clients.idle` seconds, it picks a neighbour at random; its
    model, as it is then, arrives after the upload. The receiver merges it with its own
    and computes a gradient of the outcome. Models that arrive meanwhile are merged at
    once, and begin no job. A lost message (`clients.message_loss`) is not sent again.

    Source: Ormandi, Hegedus and Jelasity, Gossip learning with linear models on fully
    distributed data (2013), Algorithm 1, and MU of Algorithm 2; as in gossipy, the
    model that is merged with is the receiver's own, not the last one that it received.
    """

    kind: Literal["push_gossip"] = "push_gossip"
    records: ClassVar[type[Recorder]] = PushRecorder
    traits: ClassVar[Traits] = Traits(
        has_server=False, averages=True, own_registers=True, everyone_works=True
    )
    average: ClassVar[str] = "push"
    order: ClassVar[str] = "merge_then_step"
    is_directed: ClassVar[bool] = False
    """Models go one way along any edge: algorithms of undirected graphs may run."""
    graph: AnyGraph = Complete()
    """Workers to which each worker may push."""
    tokens: AnyAccount | None = None
    """Account of messages with which a worker also pushes a model that has just
    changed; by default it pushes at each wake-up alone."""

    def check_setting(self, clients: Clients | None, server: Server, n: int) -> None:
        refuse_server(self.kind, server, "which has none")
        check_size(n, self.kind)
        self.graph.check(n, must_have_sides=False)
        for _, _, part in clients.behaviours(n) if clients else []:
            _check_behaviour(part)

    def cadence(self, num_clients: int, in_flight: int) -> Cadence:
        return Cadence(width=2, num_registers=num_clients, messages=(0, 0))

    def described(self, num_clients: int) -> dict[str, object]:
        stages = {name: f"clients.{name}" for name in ("idle", "compute")}
        return super().described(num_clients) | {
            "stages": stages | {"push": "clients.upload"}
        }

    def play(self, world: World, recorder: PushRecorder) -> None:
        _Pushing(self, world, recorder).start()


def _check_behaviour(part: Behaviour) -> None:
    refuse_absence("push_gossip", part, ABSENT)
    if part.idle is None:
        raise LocatedError(
            "clients.idle must be the law of seconds between a worker's wake-ups for "
            "the protocol 'push_gossip'; add it",
        )
    loss: Loss | None = part.loss
    if loss is not None and (loss.retries or loss.duplicates):
        raise LocatedError(
            f"clients.loss must have retries: 0 and no duplicates for the protocol "
            f"'push_gossip', whose messages are not confirmed, got retries: "
            f"{loss.retries} and duplicates: {loss.duplicates:g}; change them",
        )


class _Pushing(Peers):
    """Wake-ups, messages, and the jobs that they begin."""

    _recorder: PushRecorder

    def __init__(
        self, config: PushGossip, world: World, recorder: PushRecorder
    ) -> None:
        super().__init__(world, recorder)
        n, self._account = world.num_clients, config.tokens
        phases = config.graph.receivers(n, drawing(world))
        self._receivers = [
            sorted({other for phase in phases for other in phase[worker]})
            for worker in range(n)
        ]
        self._partners = [Keyed(world.streams, Purpose.PARTNER, w) for w in range(n)]
        self._chances = [Keyed(world.streams, Purpose.ACCOUNT, w) for w in range(n)]
        self._pushes, self._drawn, self._tokens = [0] * n, [0] * n, [0] * n

    def _begin(self, worker: int) -> None:
        self._world.call(self._world.draw(Purpose.IDLE, worker), self._wake, worker)

    def _wake(self, worker: int) -> None:
        account, tokens = self._account, self._tokens[worker]
        if account is None or self._chance(worker) < account.proactive(tokens):
            self._push(worker)
        else:
            self._tokens[worker] += 1
        self._begin(worker)

    def _react(self, worker: int) -> None:
        """Spends tokens on what has just changed; a part of one by chance."""
        if self._account is None:
            return
        wanted = self._account.reactive(self._tokens[worker])
        number = floor(wanted + self._chance(worker))
        self._tokens[worker] -= number
        for _ in range(number):
            self._push(worker)

    def _push(self, sender: int) -> None:
        world, now = self._world, self._env.now
        number, around = self._pushes[sender], self._receivers[sender]
        self._pushes[sender] = number + 1
        receiver = around[int(self._partners[sender].at(number) * len(around))]
        self._sent[sender] += 1
        lost = world.losses.send(sender, number).lost
        slot = self._recorder.send(receiver, sender, lost=lost)
        delay, version = world.transit(Purpose.UPLOAD, sender), self._recorder.version
        if lost:
            world.note(now, sender, Incident.GAVE_UP)
            return

        def arrive(receiver: int) -> None:
            if self._recorder.merge(receiver, sender, slot, version):
                self._snapshot(receiver)
            else:
                self._react(receiver)

        world.call(delay, arrive, receiver)  # an event, or reactions would nest

    def _compute(self, duration: float, worker: int) -> None:
        self._world.call_after(duration, self._end_gradient, worker)

    def _computed(self, worker: int) -> None:
        self._step(worker)
        self._react(worker)

    def _chance(self, worker: int) -> float:
        drawn = self._drawn[worker]
        self._drawn[worker] = drawn + 1
        return self._chances[worker].at(drawn)
