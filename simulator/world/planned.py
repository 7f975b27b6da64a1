"""Cycles with features: clients come and go, and jobs may end before they arrive."""

from collections.abc import Callable
from math import inf

from typing_extensions import override

from ..files.timeline import Incident, Outcome
from .cycle import Cycle, Sending, Then, Way
from .streams import Purpose


class PlannedWay(Way):
    """A way on which all is known when a client reads: one event ends its job.

    Before it begins, a client waits until it is there, and a message passes the
    client's own link.
    """

    def __init__(self, cycle: Cycle) -> None:
        self._cycle, self._world = cycle, cycle.world
        self._env = cycle.world.env
        self._jobs = [0] * cycle.world.num_clients
        self._snapshot = cycle.admitted(self._work)
        self._ask = cycle.world.stage(Purpose.READ, self._answered)

    @override
    def begin(self, client: int) -> None:
        """Lets a client idle, then request work."""
        self._appear(client, self._env.now + self._world.draw(Purpose.IDLE, client))

    @override
    def resume(self, client: int) -> None:
        """Lets a refused client request its job again."""
        self._appear(client, self._env.now)

    def _appear(self, client: int, earliest: float) -> None:
        """Lets a client ask for work as soon as it is there."""
        world, now = self._world, self._env.now
        time = world.present_since(client, earliest)
        if time == inf:
            world.note(max(earliest, now), client, Incident.LEFT)
            self._cycle.left(client)
            self._cycle.crew.leave()
        elif time <= now:
            self._ask(client)
        else:
            world.call_at(time, self._ask, client)

    def _answered(self, client: int) -> None:
        """Takes the snapshot, unless the client has left while it was asking."""
        now = self._env.now
        if self._world.has_left(client, now):
            self._appear(client, now)
        else:
            self._snapshot(client)

    def _work(self, client: int) -> None:
        self._cycle.read(client)
        self._download(client)

    def _download(self, client: int) -> None:
        now, job = self._env.now, self._jobs[client]
        delay = self._world.transit(Purpose.DOWNLOAD, client, now, job)
        self._compute(client, now + delay)

    def _compute(self, client: int, started: float) -> None:
        world, job = self._world, self._jobs[client]
        self._jobs[client] = job + 1
        computed = started + self._computing(client, job, started)
        computed += world.workload.overhead_s
        sending = world.losses.send(client, job)
        end = computed + sending.wait
        if not sending.lost:
            end += world.transit(Purpose.UPLOAD, client, end, job)
        self._plan(client, started, computed, end, sending)

    def _computing(self, client: int, job: int, started: float) -> float:
        """Returns how long a job computes."""
        return self._world.computing(client, job, started)

    def _plan(
        self, client: int, started: float, computed: float, end: float, sending: Sending
    ) -> None:
        """Plans the end of a job."""
        world, sends = self._world, sending.sends
        gone = world.present_until(client, self._env.now)
        send = world.budget.expect(client)
        if send is not None and gone >= computed:
            world.call_first(computed, send, client)
        if gone <= end:
            if gone >= computed:
                sends = world.losses.sends(client, sends, gone - computed)
            world.timing[client] = (started, computed, computed, inf, sends)
            world.call_at(gone, self._crash, client)
            return
        world.timing[client] = (started, computed, computed, end, sends)
        if not sending.lost:
            self._note_repeats(client, sending, end)
        then = self._give_up if sending.lost else self._cycle.arrive
        world.call_at(end, then, client)

    def _note_repeats(self, client: int, sending: Sending, arrived: float) -> None:
        """Notes the repeats of a message that arrives: others have come to nothing."""
        repeats = sending.sends - sending.twice - 1
        if repeats:
            self._world.note(arrived, client, Incident.RESENT, repeats)
        if sending.twice:
            self._world.note(arrived, client, Incident.DUPLICATE, 1)

    def _crash(self, client: int) -> None:
        world, now = self._world, self._env.now
        world.note(now, client, Incident.CRASHED)
        self._lose(client, Outcome.CRASHED)
        back = world.present_since(client, now)
        if back < inf:
            world.note(back, client, Incident.REJOINED)
        self._cycle.crew.replace(client, self.resume)

    def _give_up(self, client: int) -> None:
        timing = self._world.timing[client]
        assert timing is not None
        self._world.note(self._env.now, client, Incident.GAVE_UP, timing[4])
        self._lose(client, Outcome.LOST)
        self._cycle.crew.replace(client, self.resume)

    def _lose(self, client: int, outcome: Outcome) -> None:
        self._cycle.lost(client, outcome)


class WatchedWay(PlannedWay):
    """A way on which jobs may be stopped, or share links: their ends become known late.

    Whatever was planned for a job is void once it has ended.
    """

    def __init__(self, cycle: Cycle) -> None:
        super().__init__(cycle)
        world = cycle.world
        self._under_way = bytearray(world.num_clients)
        self._serial = [0] * world.num_clients
        self._leaves: dict[int, float] = {}
        """Planned departures: when each client goes."""
        self._sendings: dict[int, Sending] = {}
        """How messages fare that are about to arrive."""
        self._restart = world.stage(Purpose.RESTART, self.resume)

    @override
    def alive(self, client: int, then: Then) -> Then:
        serial = self._serial[client]

        def go_on(client: int) -> None:
            if self._serial[client] == serial:
                then(client)

        return go_on

    @override
    def stop(self, client: int, *, again: bool) -> bool:
        if not self._under_way[client]:
            return False
        self._world.note(self._env.now, client, Incident.STOPPED)
        self._lose(client, Outcome.STOPPED)
        if again:
            self._restart(client)
        return True

    @override
    def _work(self, client: int) -> None:
        world = self._world
        self._cycle.read(client)
        self._under_way[client] = 1
        world.timing[client] = (inf, inf, inf, inf, 0)
        gone = world.present_until(client, self._env.now)
        if gone < inf and gone != self._leaves.get(client):
            self._leaves[client] = gone
            world.call_at(gone, self._crash_if_under_way, client)
        self._download(client)

    @override
    def _download(self, client: int) -> None:
        then = self.alive(client, lambda c: self._compute(c, self._env.now))
        send = self._world.at(Purpose.DOWNLOAD, then)
        if send is then:  # it takes no time but that of the client's own link
            super()._download(client)
        else:
            delay = self._world.transit(Purpose.DOWNLOAD, client)
            self._world.call_after(delay, self.alive(client, send), client)

    @override
    def _plan(
        self, client: int, started: float, computed: float, end: float, sending: Sending
    ) -> None:
        world = self._world
        send = world.budget.expect(client)
        if send is not None:
            world.call_first(computed, self.alive(client, send), client)
        world.timing[client] = (started, computed, computed, end, sending.sends)
        then = self._give_up if sending.lost else self._upload
        if not sending.lost:
            self._sendings[client] = sending
        world.call_at(end, self.alive(client, then), client)

    def _upload(self, client: int) -> None:
        """Lets a message arrive that has passed the client's own link."""
        then = self.alive(client, self.finish)
        self._world.at(Purpose.UPLOAD, then)(client)

    def finish(self, client: int) -> None:
        """Ends a job whose contribution has just arrived."""
        now = self._env.now
        timing = self._world.timing[client]
        assert timing is not None
        started, computed, sent, _, sends = timing
        self._world.timing[client] = (started, computed, sent, now, sends)
        if client in self._sendings:
            self._note_repeats(client, self._sendings.pop(client), now)
        self._end(client)
        self._cycle.arrive(client)

    def _crash_if_under_way(self, client: int) -> None:
        if self._under_way[client]:
            self._crash(client)

    @override
    def _lose(self, client: int, outcome: Outcome) -> None:
        self._end(client)
        super()._lose(client, outcome)

    def _end(self, client: int) -> None:
        self._under_way[client] = 0
        self._serial[client] += 1


class RememberingWay(WatchedWay):
    """A way on which the job after a stopped one takes as long, or what was left."""

    def __init__(self, cycle: Cycle) -> None:
        super().__init__(cycle)
        self._took = [0.0] * cycle.world.num_clients
        """Computing time of the last job that each client has started to compute."""
        self._given: dict[int, float] = {}
        """Computing time of the next job of clients whose last one was stopped."""

    @override
    def stop(self, client: int, *, again: bool) -> bool:
        world, timing = self._world, self._world.timing[client]
        fate = world.groups[world.groups.of[client]].config.stopped
        if self._under_way[client] and timing and fate != "redrawn":
            done = self._env.now - timing[0]  # below 0: it does not compute yet
            if done >= 0:
                done = done if fate == "resumed" else 0
                self._given[client] = max(self._took[client] - done, 0)
        return super().stop(client, again=again)

    @override
    def _computing(self, client: int, job: int, started: float) -> float:
        given = self._given.pop(client, None)
        took = super()._computing(client, job, started) if given is None else given
        self._took[client] = took
        return took


def watched(cycle: Cycle) -> WatchedWay:
    """Returns a way on which jobs may be stopped, as the groups' `stopped` needs it."""
    remembers = any(each.config.stopped != "redrawn" for each in cycle.world.groups)
    return (RememberingWay if remembers else WatchedWay)(cycle)


HandOut = Callable[[int, Then, Then], None]
"""Does a client's job elsewhere as soon as it has read: called with the client, and
with callbacks for the arrival of its contribution and for its loss."""


class HandedOutWay(WatchedWay):
    """A way on which jobs are done elsewhere, whatever their laws."""

    def __init__(self, cycle: Cycle, hand_out: HandOut) -> None:
        super().__init__(cycle)
        self._hand_out = hand_out

    @override
    def _download(self, client: int) -> None:
        arrived = self.alive(client, self.finish)
        self._hand_out(client, arrived, self.alive(client, self._crash))
