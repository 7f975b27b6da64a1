"""A client's cycle, from idling to its contribution's arrival, and what goes wrong.

Stages whose ends are known when they begin are one event together; only a stage that is
shared with others (a bottleneck link, the server's queue) is an event of its own. A
stage that takes no time is no event at all.
"""

from collections.abc import Callable
from enum import IntEnum
from math import inf
from typing import TYPE_CHECKING

from simulator.streams import Purpose
from simulator.timeline import Incident, Outcome
from simulator.world.faults import Sending
from simulator.world.selection import Pool

if TYPE_CHECKING:
    from simulator.world.world import World

Then = Callable[[int], None]
Lost = Callable[[int, Outcome], None]
"""Called with a client whose job came to nothing, and how."""


class _Fate(IntEnum):
    ARRIVES = 0
    CRASHES = 1
    GIVES_UP = 2


class Cycle:
    """Lets clients work, and tells a protocol when they read and when they arrive.

    Args:
        world: of the clients.
        read: called when a client takes a snapshot of the learning state.
        arrive: called when its contribution has arrived and been served.
        lost: called when the job that it had begun is lost.
        left: called when a client will never work again.
        admit: asked before a client reads; one that is refused waits for `resume`.
        selects: whether the next client is chosen by the scenario's selection, if it
            has one; else the protocol says who begins.
    """

    def __init__(
        self,
        world: "World",
        read: Then,
        arrive: Then,
        lost: Lost,
        left: Then = lambda _: None,
        *,
        selects: bool = True,
        admit: Callable[[int], bool] | None = None,
    ) -> None:
        self._world, self._env = world, world.env
        self._read, self._arrive = read, arrive
        self._lost, self._left = lost, left
        self._in_flight = 0
        self._asked = False
        self._pool: Pool | None = world.pool if selects else None
        self._jobs = [0] * world.num_clients if world.counts_jobs else None
        if world.service:
            self._arrive = world.queue(arrive)
        plain = world.is_plain
        compute = world.stage(Purpose.COMPUTE, self._arrive)
        snapshot = self._plain_snapshot(compute) if plain else self._work
        self._snapshot = _gated(snapshot, admit) if admit else snapshot
        self._ask = world.stage(Purpose.READ, self._snapshot)
        self.begin: Then = (
            world.stage(Purpose.IDLE, self._ask) if plain else self._begin
        )
        """Lets one client begin a cycle."""

    def start(self) -> None:
        """Lets everybody begin, or as many as may be in flight."""
        if self._pool is None:
            self._world.foresee_everyone()
            for client in range(self._world.num_clients):
                self.begin(client)
        else:
            self._fill()

    def again(self, client: int) -> None:
        """Lets a client whose job is done begin the next, or another in its place."""
        if self._pool is None:
            self.begin(client)
        else:
            self._in_flight -= 1
            self._pool.give_back(client)
            self._fill()

    def resume(self, client: int) -> None:
        """Lets a client ask again that was not admitted."""
        if self._world.is_plain:
            self._snapshot(client)
        else:
            self._appear(client, self._env.now)

    def _plain_snapshot(self, compute: Then) -> Then:
        read = self._read

        def snapshot(client: int) -> None:
            read(client)
            compute(client)

        return snapshot

    def _begin(self, client: int) -> None:
        self._appear(client, self._env.now + self._world.draw(Purpose.IDLE, client))

    def _appear(self, client: int, earliest: float) -> None:
        """Lets a client ask for work as soon as it is there."""
        time = self._world.present_since(client, earliest)
        if time == inf:
            self._world.note(max(earliest, self._env.now), client, Incident.LEFT)
            self._left(client)
            if self._pool is not None:
                self._in_flight -= 1
                self._fill()
        elif time <= self._env.now:
            self._ask(client)
        else:
            self._world.call(time - self._env.now, self._ask, client)

    def _work(self, client: int) -> None:
        """Takes the snapshot, and works out what becomes of the job."""
        world = self._world
        self._read(client)
        if world.download_link is None:
            self._compute(client)
        else:
            size, link = world.job.download_bytes, world.download_link
            delay = world.draw(Purpose.DOWNLOAD, client)
            self._after(delay, lambda c: link.send(c, size, self._compute), client)

    def _compute(self, client: int) -> None:
        world, now = self._world, self._env.now
        job = 0
        if self._jobs is not None:
            job = self._jobs[client]
            self._jobs[client] = job + 1
        begun = now
        if world.download_link is None:
            begun += world.transit(Purpose.DOWNLOAD, client)
        computed = begun + world.draw(Purpose.COMPUTE, client) * world.slowness(
            client, job, begun
        )
        sending = world.sending(client, job)
        fate, end, arrived = _Fate.ARRIVES, computed, computed
        if sending is not None:
            end += sending.arrives
            if sending.lost:
                fate = _Fate.GIVES_UP
        if fate == _Fate.ARRIVES and world.upload_link is None:
            end += world.transit(Purpose.UPLOAD, client)
        arrived = end
        gone = world.present_until(client, now)
        if gone <= end:
            fate, end = _Fate.CRASHES, gone
        sends = 1 if sending is None else sending.sends
        world.timing[client] = (computed, computed, arrived, sends)
        delay = end - now
        if fate == _Fate.CRASHES:
            if computed > gone:
                world.timing[client] = (gone, gone, gone, 0)
            self._world.call(delay, self._crash, client)
        elif fate == _Fate.GIVES_UP:
            self._world.call(delay, self._give_up, client)
        else:
            if sending is not None and sending.sends > 1:
                self._note_resends(client, computed, sending)
            then = self._arrive if world.upload_link is None else self._share
            self._world.call(delay, then, client)

    def _share(self, client: int) -> None:
        delay = self._world.draw(Purpose.UPLOAD, client)
        self._after(delay, self._share_now, client)

    def _share_now(self, client: int) -> None:
        world = self._world
        link = world.upload_link
        assert link is not None
        link.send(client, world.job.upload_bytes, self._shared)

    def _shared(self, client: int) -> None:
        timing = self._world.timing
        timing[client] = (*timing[client][:2], self._env.now, timing[client][3])
        self._arrive(client)

    def _note_resends(self, client: int, sent: float, sending: Sending) -> None:
        world = self._world
        if sending.sends - sending.twice > 1:
            world.note(sent, client, Incident.RESENT, sending.sends - sending.twice - 1)
        if sending.twice:
            world.note(sent, client, Incident.DUPLICATE, 1)

    def _crash(self, client: int) -> None:
        now = self._env.now
        self._world.note(now, client, Incident.CRASHED)
        self._lost(client, Outcome.CRASHED)
        self._replace(client)
        back = self._world.present_since(client, now)
        if back < inf:
            self._world.note(back, client, Incident.REJOINED)

    def _give_up(self, client: int) -> None:
        sends = self._world.timing[client][3]
        self._world.note(self._env.now, client, Incident.GAVE_UP, sends)
        self._lost(client, Outcome.LOST)
        self._replace(client)

    def _replace(self, client: int) -> None:
        if self._pool is None:
            self._appear(client, self._env.now)
        else:
            self.again(client)

    def _fill(self) -> None:
        """Gives out jobs until as many are in flight as may be."""
        pool, world, now = self._pool, self._world, self._env.now
        assert pool is not None
        limit = min(world.in_flight, world.num_clients)
        while self._in_flight < limit:
            client = pool.take(lambda c: world.present_since(c, now) <= now)
            if client is None:
                self._wait_for_anybody(now)
                return
            self._in_flight += 1
            self.begin(client)

    def _wait_for_anybody(self, now: float) -> None:
        if self._asked or self._pool is None:
            return
        back = self._world.next_present()
        if back is not None:
            self._asked = True

            def try_again(_: int) -> None:
                self._asked = False
                self._fill()

            self._world.call(back - now, try_again, 0)

    def _after(self, delay: float, then: Then, client: int) -> None:
        if delay > 0:
            self._world.call(delay, then, client)
        else:
            then(client)


def _gated(then: Then, admit: Callable[[int], bool]) -> Then:
    def ask(client: int) -> None:
        if admit(client):
            then(client)

    return ask
