"""A client's cycle, from idling to its contribution's arrival, and what goes wrong.

Stages whose ends are known when they begin are one event together; only a stage that is
shared with others (a bottleneck link, the server's queue) is an event of its own. A
stage that takes no time is no event at all. Before a message comes to a shared link it
passes the client's own.
"""

from collections.abc import Callable
from math import inf
from typing import TYPE_CHECKING

from ..streams import Purpose
from ..timeline import Incident, Outcome
from .clock import Then
from .selection import Everyone, Pool, crew

if TYPE_CHECKING:
    from .world import World

Lost = Callable[[int, Outcome], None]
"""Called with a client whose job came to nothing, and how."""


class Cycle:
    """Lets clients work, and tells a protocol when they read and when they arrive.

    Args:
        world: World of the clients.
        read: Called when a client takes a snapshot of the learning state.
        arrive: Called when its contribution has arrived and been served.
        lost: Called when the job that it had started is lost.
        left: Called when a client will never work again.
        admit: Asked before a client reads; a refused client waits for `resume`.
        selects: Whether the next client is chosen by the scenario's selection, if it
            has one; else the protocol says who starts.
        stops: Whether the protocol may stop jobs that are under way.
    """

    def __init__(
        self,
        world: "World",
        read: Callable[[int], object],
        arrive: Then,
        lost: Lost,
        left: Then = lambda _: None,
        *,
        selects: bool = True,
        stops: bool = False,
        admit: Callable[[int], bool] | None = None,
    ) -> None:
        self._world, self._env = world, world.env
        self._read = read if world.job_steps is None else self._giving(read)
        self._arrive = arrive
        if world.pool is not None and world.pool.config.in_flight_by is not None:
            self._arrive = self._limiting(arrive, world.pool)
        self._lost, self._left = lost, left
        self._repeats: dict[int, tuple[int, bool]] = {}
        """Of clients whose message is about to arrive: repeats, and whether twice."""
        self._jobs = [0] * world.num_clients if world.counts_jobs else None
        shared = world.upload_link or world.download_link
        self._guards = bool(stops or shared or world.hand_out)
        """Whether jobs have ends that are not known when they begin."""
        if self._guards:
            self._under_way = bytearray(world.num_clients)
            self._serial = [0] * world.num_clients
            self._guarded: dict[int, float] = {}
        if world.service:
            self._arrive = world.queue(arrive)
        self._plain = plain = world.is_plain and not stops
        if plain:  # a message is sent when it arrives
            self._arrive = world.counted(self._arrive)
        compute = world.stage(Purpose.COMPUTE, self._arrive)
        snapshot = self._plain_snapshot(compute) if plain else self._work
        self._snapshot = _gated(snapshot, admit) if admit else snapshot
        then = self._snapshot if plain else self._answered
        self._ask = world.stage(Purpose.READ, then)
        self.begin: Then = (
            world.stage(Purpose.IDLE, self._ask) if plain else self._begin
        )
        """Lets one client begin a cycle."""
        self._crew = (crew if selects else Everyone)(world, self.begin)
        self.start, self.again = self._crew.start, self._crew.again
        self._restart = world.stage(
            Purpose.RESTART, lambda client: self._appear(client, self._env.now)
        )

    def _giving(self, read: Callable[[int], object]) -> Then:
        """Returns a read with which a job is given its local steps."""
        world, steps = self._world, self._world.job_steps

        def give(client: int) -> None:
            read(client)
            assert steps is not None
            assert world.job_of is not None
            steps.give(client, world.job_of(client))

        return give

    def _limiting(self, arrive: Then, pool: Pool) -> Then:
        """Returns an arrival by whose staleness the limit of jobs changes."""
        world, next_limit = self._world, pool.config.in_flight_by.make(pool.in_flight)

        def limit(client: int) -> None:
            assert world.staleness_of is not None
            pool.in_flight = next_limit(world.staleness_of(client))
            arrive(client)

        return limit

    def resume(self, client: int) -> None:
        """Lets a client ask again that was not admitted."""
        if self._plain:
            self._snapshot(client)
        else:
            self._appear(client, self._env.now)

    def stop(self, client: int, *, again: bool = True) -> bool:
        """Stops the job that a client has under way; the client then begins again.

        What it has computed is lost, and its messages arrive nowhere; one that is on a
        shared link still takes its share. Before it asks for work again, the client
        takes as long as its law `restart` says.

        Args:
            client: Number of the client, from 0.
            again: Whether it begins again; else the protocol lets it begin.

        Returns:
            Whether there was a job: not where it idles, is away or has arrived.
        """
        if not self._under_way[client]:
            return False
        self._world.note(self._env.now, client, Incident.STOPPED)
        self._end(client)
        self._lost(client, Outcome.STOPPED)
        if again:
            self._restart(client)
        return True

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
            self._crew.leave()
        elif time <= self._env.now:
            self._ask(client)
        else:
            self._world.call_at(time, self._ask, client)

    def _answered(self, client: int) -> None:
        """Takes the snapshot, unless the client has left while it was asking."""
        now = self._env.now
        if self._world.has_left(client, now):
            self._appear(client, now)
        else:
            self._snapshot(client)

    def _work(self, client: int) -> None:
        """Takes the snapshot, and works out what becomes of the job."""
        world = self._world
        self._read(client)
        if self._guards:
            self._guard(client)
        if world.hand_out is not None:
            arrived = self.alive(client, self._finish)
            world.hand_out(client, arrived, self.alive(client, self._crash))
            return
        link = world.download_link
        if link is None:
            self._compute(client)
        else:
            size, then = (
                world.workload.download_bytes,
                self.alive(client, self._compute),
            )
            send = self.alive(client, lambda c: link.send(c, size, then))
            self._world.call_after(
                world.transit(Purpose.DOWNLOAD, client), send, client
            )

    def _compute(self, client: int) -> None:
        world, now = self._world, self._env.now
        job = 0
        if self._jobs is not None:
            job = self._jobs[client]
            self._jobs[client] = job + 1
        started = now
        if world.download_link is None:
            started += world.transit(Purpose.DOWNLOAD, client)
        drawn = world.draw(Purpose.COMPUTE, client)
        computed = started + world.computing(client, job, started, drawn)
        computed += world.workload.overhead_s
        sending = world.sending(client, job)
        end = computed + (sending.wait if sending else 0)
        lost = sending is not None and sending.lost
        if not lost:
            end += world.transit(Purpose.UPLOAD, client, end)
        gone = inf if self._guards else world.present_until(client, now)
        sends = sending.sends if sending else 1
        if world.message_budget is not None:
            self._count(client, computed, gone)
        if gone <= end:
            if sending and gone >= computed:
                sends = min(sends, 1 + int((gone - computed) / sending.timeout))
            world.timing[client] = (started, computed, computed, inf, sends)
            world.call_at(gone, self._crash, client)
            return
        world.timing[client] = (started, computed, computed, end, sends)
        if sending and not lost:
            self._repeats[client] = sending.sends - sending.twice - 1, sending.twice
            if not self._guards:
                self._note_repeats(client, end)
        then = self._give_up if lost else self._arrive
        if self._guards and not lost:
            then = self._finish if world.upload_link is None else self._share
        if self._guards:
            then = self.alive(client, then)
        world.call_at(end, then, client)

    def _count(self, client: int, computed: float, gone: float) -> None:
        """Counts the message of a job when it is sent, if that comes about."""
        budget = self._world.message_budget
        assert budget is not None
        budget.begin(client)
        if gone >= computed:
            send = self.alive(client, budget.send) if self._guards else budget.send
            self._world.call_first(computed, send, client)

    def _share(self, client: int) -> None:
        world = self._world
        assert world.upload_link is not None
        then = self.alive(client, self._finish)
        world.upload_link.send(client, world.workload.upload_bytes, then)

    def _finish(self, client: int) -> None:
        *before, _, sends = self._world.timing[client]
        self._world.timing[client] = (*before, self._env.now, sends)
        self._note_repeats(client, self._env.now)
        self._end(client)
        self._arrive(client)

    def _guard(self, client: int) -> None:
        """Watches over a job whose end is not known when it begins."""
        self._under_way[client] = 1
        self._world.timing[client] = (inf, inf, inf, inf, 0)
        gone = self._world.present_until(client, self._env.now)
        if gone < inf and gone != self._guarded.get(client):
            self._guarded[client] = gone
            self._world.call_at(gone, self._crash_if_under_way, client)

    def _crash_if_under_way(self, client: int) -> None:
        if self._under_way[client]:
            self._crash(client)

    def alive(self, client: int, then: Then) -> Then:
        """Returns a continuation of the client's job that is void once it has ended."""
        serial = self._serial[client]

        def go_on(client: int) -> None:
            if self._serial[client] == serial:
                then(client)

        return go_on

    def _end(self, client: int) -> None:
        if self._guards:
            self._under_way[client] = 0
            self._serial[client] += 1

    def _note_repeats(self, client: int, arrived: float) -> None:
        """Notes the repeats of a message that arrives: others have come to nothing."""
        repeats, twice = self._repeats.pop(client, (0, False))
        if repeats:
            self._world.note(arrived, client, Incident.RESENT, repeats)
        if twice:
            self._world.note(arrived, client, Incident.DUPLICATE, 1)

    def _crash(self, client: int) -> None:
        world, now = self._world, self._env.now
        world.note(now, client, Incident.CRASHED)
        self._end(client)
        self._lost(client, Outcome.CRASHED)
        back = world.present_since(client, now)
        if back < inf:
            world.note(back, client, Incident.REJOINED)
        self._crew.replace(client, self.resume)

    def _give_up(self, client: int) -> None:
        sends = self._world.timing[client][4]
        self._world.note(self._env.now, client, Incident.GAVE_UP, sends)
        self._end(client)
        self._lost(client, Outcome.LOST)
        self._crew.replace(client, self.resume)


def _gated(then: Then, admit: Callable[[int], bool]) -> Then:
    def ask(client: int) -> None:
        if admit(client):
            then(client)

    return ask
