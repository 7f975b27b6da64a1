"""Asynchronous: each client's contribution is applied when it arrives."""

from collections import deque
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field, model_validator

from ...files.timeline import Outcome
from ...parts.base import LocatedError
from ...world.clients import Clients, Server
from ...world.cycle import Cycle
from ...world.protocol import Arrivals, Protocol, Traits, refuse_selection
from ...world.recorders.recorder import Recorder
from ...world.world import World


class Asynchronous(Protocol):
    """Each client's contribution is applied when it arrives, in order of arrival.

    With a staleness bound, no contribution is applied that is staler: it is rejected
    and its client begins again (Ringmaster ASGD with R = bound + 1, Algorithm 4 of
    Maranjyan, Tyurin and Richtarik, 2025), or its job is stopped as soon as that is
    sure (Algorithm 5), or arrivals wait for those jobs that they would make too stale
    (stale-synchronous, Ho et al., 2013).
    """

    kind: Literal["asynchronous"] = "asynchronous"
    traits: ClassVar[Traits] = Traits(adapts=True, lone_jobs=True)
    staleness_bound: Annotated[int, Field(ge=0)] | None = None
    """Largest staleness of a contribution, in commits (inclusive)."""
    beyond: Literal["reject", "stop", "wait"] = "reject"
    """Treatment of arrivals beyond the bound."""
    warm_up: bool = False
    """Whether contributions gather, without a commit, until everyone has sent one."""
    restarts: bool = False
    """Whether all jobs under way are stopped, and everyone begins again, as soon as
    each client has contributed since the last time (THROTTLE's rounds)."""

    @model_validator(mode="after")
    def _restarts_alone(self) -> "Asynchronous":
        if self.restarts and (self.warm_up or self.staleness_bound is not None):
            other = "warm_up" if self.warm_up else "staleness_bound"
            raise LocatedError(
                f"restarts must be false with {other}, got true; remove one of them",
            )
        return self

    @model_validator(mode="after")
    def _warms_up_by_arrivals(self) -> "Asynchronous":
        if self.warm_up and self.staleness_bound is not None:
            raise LocatedError(
                "warm_up must be false with a staleness_bound, which what waits for "
                "the last client would miss; remove one of them",
            )
        return self

    @property
    def gathers(self) -> bool:
        return self.warm_up

    @property
    def stops_jobs(self) -> bool:
        bounded = self.staleness_bound is not None and self.beyond == "stop"
        return bounded or self.restarts

    @property
    def free_rule(self) -> Arrivals | None:
        """One arrival is one version, unless arrivals wait."""
        if self.warm_up or self.restarts:
            return None
        if self.staleness_bound is not None and self.beyond != "reject":
            return None
        return Arrivals(bound=self.staleness_bound)

    def described(self, num_clients: int) -> dict[str, Any]:
        waits = {
            "arrivals, and reads, wait at the server while they would make a job too "
            "stale": self.staleness_bound is not None and self.beyond == "wait",
            "contributions wait until everyone has sent one": self.warm_up,
        }
        free = self.staleness_bound is None and not self.restarts
        known = ("in_flight", "cycles", "memoryless", "repairman") if free else ()
        return super().described(num_clients) | {
            "queues": [text for text, holds in waits.items() if holds],
            "closed_forms": {name: {} for name in known},
        }

    def check_setting(self, clients: Clients | None, server: Server, n: int) -> None:
        if self.restarts:
            refuse_selection(self.kind, clients)

    def play(self, world: World, recorder: Recorder) -> None:
        bound = self.staleness_bound

        def apply(client: int) -> None:
            recorder.commit((client,))
            cycle.again(client)

        def judge(client: int) -> None:
            if bound is not None and recorder.staleness(client) > bound:
                recorder.lose(client, Outcome.REJECTED)
                cycle.again(client)
            else:
                apply(client)

        if bound is not None and self.beyond == "wait":
            cycle = _Waiting(bound, world, recorder).cycle
        elif bound is not None and self.beyond == "stop":
            cycle = _Stopping(bound, world, recorder).cycle
        elif self.restarts:
            cycle = _Restarting(world, recorder).cycle
        elif self.warm_up:
            cycle = _WarmingUp(world, recorder).cycle
        else:
            arrive = apply if bound is None else judge
            cycle = Cycle(world, recorder.read, arrive, recorder.lose)
        cycle.start()


class _WarmingUp:
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


class _Restarting:
    """Stops all jobs under way as soon as everyone has contributed.

    Source: THROTTLE (2026), as methods.md, section 12, has it.
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


class _Stopping:
    """Stops each job as soon as it is sure to be too stale.

    Source: Maranjyan, Tyurin and Richtarik, Ringmaster ASGD (2025), Algorithm 5.
    """

    def __init__(self, bound: int, world: World, recorder: Recorder) -> None:
        self._bound, self._recorder = bound, recorder
        self._jobs: deque[tuple[int, int, int]] = deque()  # version read, client, job
        self.cycle = Cycle(world, self._read, self._arrive, recorder.lose, stops=True)

    def _read(self, client: int) -> None:
        job = self._recorder.read(client)
        self._jobs.append((self._recorder.version, client, job))

    def _arrive(self, client: int) -> None:
        recorder = self._recorder
        oldest = recorder.version - self._bound
        if recorder.read_version(client) < oldest:  # it was in the server's queue
            recorder.lose(client, Outcome.REJECTED)
            self.cycle.again(client)
            return
        recorder.commit((client,))
        self.cycle.again(client)
        while (
            self._jobs and self._jobs[0][0] <= oldest
        ):  # one version older than before the commit
            _, late, job = self._jobs.popleft()
            if recorder.current_job(late) == job:
                self.cycle.stop(late)


class _Waiting:
    """Delays reads and commits that would make some job too stale.

    A job that has read version r must be applied by version r + bound. Jobs under way
    can all be, in the order of what they have read, if the i-th of them (from 0) has
    read at least version + i - bound; reads and commits that would break this wait. The
    oldest job of all never waits, so one client can always continue.
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
        """Whether a parked client could read now."""
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
