"""A client's cycle: it idles, reads, downloads, computes, uploads, and begins again.

All from a read to its arrival is one event where its end is known before; a stage
without duration is no event.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING

from ..files.timeline import Outcome
from .feature import Then
from .selection import Everyone, crew
from .streams import Purpose

if TYPE_CHECKING:
    from .world import World

Lost = Callable[[int, Outcome], None]
"""Called with a client whose job was lost, and the reason."""


class Cycle:
    """Lets clients work, and reports their reads and arrivals to a protocol.

    Args:
        world: World of the clients.
        read: Called when a client takes a snapshot of the learning state.
        arrive: Called when its contribution has arrived and been served.
        lost: Called when the job that it had started is lost.
        left: Called when a client will never work again.
        admit: Called before a client reads; a refused client waits for `resume`.
        selects: Whether the scenario's selection chooses the next client, if it has
            one; else the protocol does.
        stops: Whether the protocol may stop jobs that are under way.

    Attributes:
        begin: Lets one client begin a cycle.
        start: Starts all clients, or as many as may be in flight.
        again: Lets a client whose job is done begin the next, or another in its place.
        resume: Lets a refused client request its job again.
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
        self.world, self.lost, self.left = world, lost, left
        self.read = world.at(Purpose.READ, read)
        self.arrive = world.at(Purpose.SERVICE, arrive)
        self._admit = admit
        self._way = world.way(self, stops=stops)
        self.begin, self.resume = self._way.begin, self._way.resume
        self.crew = (crew if selects else Everyone)(world, self.begin)
        self.start, self.again = self.crew.start, self.crew.again

    def admitted(self, then: Then) -> Then:
        """Returns a function that calls `then` with admitted clients alone."""
        admit = self._admit
        if admit is None:
            return then

        def ask(client: int) -> None:
            if admit(client):
                then(client)

        return ask

    def stop(self, client: int, *, again: bool = True) -> bool:
        """Stops the job that a client has under way; the client then begins again.

        Its computation is lost, and its messages arrive nowhere; one that is on a
        shared link still takes its share. Before it requests work again, the client
        waits for a duration of its law `restart`.

        Args:
            client: Number of the client, from 0.
            again: Whether it begins again; else the protocol lets it begin.

        Returns:
            Whether there was a job: not where it idles, is away or has arrived.
        """
        return self._way.stop(client, again=again)

    def alive(self, client: int, then: Then) -> Then:
        """Returns a continuation of the client's job that is void once it has ended."""
        return self._way.alive(client, then)


class Way:
    """The way of a client through its cycle: each stage that takes time is an event.

    Between its read and its arrival it computes, and nothing else.

    Attributes:
        begin: Lets a client begin: it idles, then requests work.
        resume: Lets a refused client request its job again.
    """

    begin: Then
    resume: Then

    def __init__(self, cycle: Cycle) -> None:
        world, read = cycle.world, cycle.read
        # A message is sent when it arrives.
        arrive = world.budget.counted(cycle.arrive)
        compute = world.stage(Purpose.COMPUTE, arrive)

        def snapshot(client: int) -> None:
            read(client)
            compute(client)

        self.resume = cycle.admitted(snapshot)
        self.begin = world.stage(Purpose.IDLE, world.stage(Purpose.READ, self.resume))

    def stop(self, client: int, *, again: bool) -> bool:
        """Stops a job, as `Cycle.stop`, where the cycle `stops` jobs."""
        raise NotImplementedError

    def alive(self, client: int, then: Then) -> Then:
        """Returns a continuation of a job that is void once it has ended."""
        return then
