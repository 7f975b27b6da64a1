"""Rules by which arrivals are not applied at once, or jobs do not last until they are.

Each is an option of the protocol `asynchronous`.
"""

from collections import deque
from typing import TYPE_CHECKING

from ...files.timeline import Outcome
from ...world.cycle import Cycle
from ...world.recorders.recorder import Recorder
from ...world.world import World
from .buffer_rules import BoundedBuffer

if TYPE_CHECKING:
    from .asynchronous import Asynchronous


def cycle_of(config: "Asynchronous", world: World, recorder: Recorder) -> Cycle:
    """Returns the clients' cycle by the rule that a protocol names."""
    bound = config.staleness_bound
    if bound is not None:
        if config.beyond == "wait":
            return Waiting(bound, world, recorder).cycle
        return BoundedBuffer(1, bound, config.beyond, world, recorder).cycle
    return (Restarting if config.restarts else WarmingUp)(world, recorder).cycle


class WarmingUp:
    """Gathers contributions until everyone has sent one; then each is a commit."""

    def __init__(self, world: World, recorder: Recorder) -> None:
        self._recorder = recorder
        self._missing = set(range(world.num_clients))
        self.cycle = Cycle(world, recorder.read, self._arrive, recorder.lose)

    def _arrive(self, client: int) -> None:
        self._missing.discard(client)
        if self._missing:
            self._recorder.contribute(client)
        else:
            self._recorder.commit((client,))
        self.cycle.again(client)


class Restarting:
    """Stops all jobs under way as soon as everyone has contributed.

    Source: THROTTLE (2026).
    """

    def __init__(self, world: World, recorder: Recorder) -> None:
        self._recorder = recorder
        self._everyone = range(world.num_clients)
        self._missing = set(self._everyone)
        self._since = 0  # version at the start of the round
        arrive = self._arrive
        self.cycle = Cycle(world, recorder.read, arrive, recorder.lose, stops=True)

    def _arrive(self, client: int) -> None:
        recorder = self._recorder
        if recorder.read_version(client) < self._since:  # was in the server's queue
            recorder.lose(client, Outcome.REJECTED)
            self.cycle.again(client)
            return
        recorder.commit((client,))
        self._missing.discard(client)
        if self._missing:
            self.cycle.again(client)
            return
        self._missing, self._since = set(self._everyone), recorder.version
        for each in self._everyone:
            if each == client:
                self.cycle.again(each)
            else:
                self.cycle.stop(each)


class Waiting:
    """Delays reads and commits that would make some job too stale.

    A job that has read version r must be applied by version r + bound. This is possible
    for all running jobs, in the order of the versions read, if the i-th of them (from
    0) has read at least version + i - bound; reads and commits that would break this
    wait. The oldest job of all never waits, so one client can always continue.
    """

    def __init__(self, bound: int, world: World, recorder: Recorder) -> None:
        self._bound, self._recorder = bound, recorder
        self._jobs: list[tuple[int, int]] = []  # sorted: version read, client
        self._arrived: set[int] = set()
        self._parked: deque[int] = deque()
        self._busy = False
        arrive, lose = self._arrive, self._lose
        self.cycle = Cycle(world, self._read, arrive, lose, admit=self._admit)

    def _admit(self, client: int) -> bool:
        if len(self._jobs) <= self._bound:
            return True
        self._parked.append(client)
        return False

    def _read(self, client: int) -> None:
        self._recorder.read(client)
        self._jobs.append((self._recorder.version, client))  # the newest version

    def _arrive(self, client: int) -> None:
        self._recorder.arrive(client)
        self._arrived.add(client)
        self._go_on()

    def _lose(self, client: int, outcome: Outcome) -> None:
        self._jobs.remove((self._recorder.read_version(client), client))
        self._recorder.lose(client, outcome)
        self._go_on()

    def _go_on(self) -> None:
        """Applies what can be applied, oldest first, and lets parked clients read."""
        if self._busy:  # the loop below serves clients that arrive in the meantime
            return
        self._busy = True
        while True:
            if (job := self._applicable()) is not None:
                _, client = job
                self._jobs.remove(job)
                self._arrived.remove(client)
                self._recorder.commit((client,))
                self._resume()  # or who is answered would always be before them
                self.cycle.again(client)
            elif self._has_room():
                self._resume()
            else:
                break
        self._busy = False

    def _has_room(self) -> bool:
        return bool(self._parked) and len(self._jobs) <= self._bound

    def _resume(self) -> None:
        """Lets parked clients ask again, those who have waited longest first."""
        while self._has_room():
            self.cycle.resume(self._parked.popleft())

    def _applicable(self) -> tuple[int, int] | None:
        """Returns the oldest job that has arrived and can be applied now, if any.

        Applying the n-th job takes one of those before it one version nearer to its
        bound; those after it keep their place.
        """
        least = self._recorder.version + 1 - self._bound
        for place, job in enumerate(self._jobs):
            if job[1] in self._arrived:
                return job
            if job[0] < least + place:
                return None
        return None
