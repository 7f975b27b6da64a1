"""A client's cycle: it idles, reads, downloads, computes, uploads, and begins again.

What comes from a read to its arrival is one event where its end is known before; a
stage that takes no time is no event at all.

What a world may have besides laws of its stages is a `Feature`, a file of its own that
`features` names; world and cycle know none. Where clients may be away, messages be
lost, or their number be limited, a subclass says so; here is what a world without that
says.
"""

from collections.abc import Callable
from enum import IntEnum
from math import inf
from typing import TYPE_CHECKING, ClassVar, NamedTuple

from ..files.timeline import Outcome
from .streams import Purpose

if TYPE_CHECKING:
    from .world import World

Then = Callable[[int], object]
"""Called with a client when something has happened to it."""
Duration = Callable[[int, int, float], float]
"""How long a stage takes: of a client, the number of its job, and when it begins."""
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
        pool = world.pool if selects else None
        self.crew = pool.crew(self.begin) if pool else Everyone(world, self.begin)
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


class Everyone:
    """Every client begins its next job when it is done with the one before.

    Args:
        world: World of the clients.
        begin: Lets a client begin a cycle.

    Attributes:
        again: Lets a client whose job is done begin the next, or another in its place.
    """

    def __init__(self, world: "World", begin: Then) -> None:
        self._world, self._begin, self.again = world, begin, begin

    def start(self) -> None:
        """Starts all clients, or as many as may be in flight."""
        self._world.delays.prefetch_everyone()
        for client in range(self._world.num_clients):
            self._begin(client)

    def replace(self, client: int, appear: Then) -> None:
        """Continues where a job has come to nothing.

        Args:
            client: Number of its client, from 0.
            appear: Lets the client ask for work as soon as it is there.
        """
        appear(client)

    def leave(self) -> None:
        """Frees the place of a client that will never work again."""


class JobCourse(IntEnum):
    """How a job comes from its read to its arrival."""

    PLAIN = 0
    """It computes, and nothing else."""
    PLANNED = 1
    """By several stages, whose ends are known when it reads."""
    WATCHED = 2
    """By stages that something may end, or lengthen, while they last."""


class Feature:
    """An option of a world, which changes how long stages take or what they lead to."""

    course: ClassVar[JobCourse] = JobCourse.PLANNED
    """The simplest course that jobs may have with it."""
    in_ticks: bool = False
    """Whether times stay on the lattice of the laws."""

    def duration(self, purpose: Purpose, takes: Duration) -> Duration:
        """Returns how long a stage takes with this feature.

        Args:
            purpose: The stage.
            takes: How long it takes without, in the clock's unit.
        """
        return takes

    def stage(self, purpose: Purpose, then: Then) -> Then:
        """Returns what a stage leads to with this feature.

        Args:
            purpose: The stage: `READ`, `DOWNLOAD`, `UPLOAD`, or `SERVICE` of arrivals.
            then: What it leads to without.
        """
        return then


class AlwaysThere:
    """Presence of the clients of a world in which all are always there."""

    is_always = True

    def since(self, client: int, time: float) -> float:
        """Returns the earliest moment from `time` on at which a client can begin."""
        return time

    def until(self, client: int, time: float) -> float:
        """Returns when a present client loses the job that it has started."""
        return inf

    def has_left(self, client: int, time: float) -> bool:
        """Returns whether a client has left for ever; asks nothing of later times."""
        return False


class Sending(NamedTuple):
    """How a message fares.

    Attributes:
        sends: Messages sent, lost ones included.
        wait: Seconds after the first sending at which the last one is sent, or after
            which the client gives up.
        lost: Whether none arrived.
        twice: Whether a copy follows.
    """

    sends: int
    wait: float
    lost: bool
    twice: bool


class Lossless:
    """Uploads of a world in which all messages arrive."""

    _arrives = Sending(1, 0, lost=False, twice=False)

    def send(self, client: int, job: int) -> Sending:
        """Returns the fate of one job's upload."""
        return self._arrives

    def sends(self, client: int, sends: int, seconds: float) -> int:
        """Returns how many of a job's messages are sent some seconds after the first.

        Args:
            client: Number of the client, from 0.
            sends: Messages that it sends in all.
            seconds: Virtual seconds, >= 0.
        """
        return sends


class Unlimited:
    """Messages of a run in which clients may send as many as they like."""

    def count(self, client: int) -> None:
        """Counts a message that is about to be sent, of a job or besides."""

    def send(self, client: int) -> None:
        """Counts the message of a job that is about to be sent."""

    def expect(self, client: int) -> Then | None:
        """Returns what counts the message of a started job; None for nothing."""

    def has_sent(self, client: int) -> bool:
        """Says whether the message of the client's job may have been sent."""
        return True

    def counted(self, then: Then) -> Then:
        """Returns a function that counts a client's message before `then`."""
        return then
