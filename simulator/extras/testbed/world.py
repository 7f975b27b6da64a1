"""A world whose clients are real: it sends jobs and receives their messages."""

import re
import signal
import time
from collections import deque
from collections.abc import Callable, Sequence
from heapq import heappop
from math import inf
from typing import TYPE_CHECKING

import simpy
from simpy.core import EmptySchedule
from typing_extensions import override

from ...parts.errors import ScenarioError, UserError
from ...timelines.simulated import SimulatedTimeline
from ...world.cycle import Cycle, Then, Way
from ...world.faults import Losses
from ...world.links import SharedLink
from ...world.planned import HandedOutWay
from ...world.recorders.recorder import Recorder
from ...world.streams import Purpose
from ...world.world import World
from .fleet import Channels, ClientProcesses, Received
from .learner import Learner
from .wire import Envelope, WireError

if TYPE_CHECKING:
    from .timeline import Log

LOOK_S = 0.2
"""Most real seconds after which is looked whether the run was interrupted."""
START_S = 300.0
"""Real seconds in which all clients must be ready."""
NUMBER = r"(\d+(?:\.\d*)?|\.\d+)"
FORMS = {
    "kill": (rf"(\d+)@{NUMBER}(?:\+{NUMBER})?", "CLIENT@TIME or CLIENT@TIME+AWAY"),
    "pause": (rf"(\d+)@{NUMBER}\+{NUMBER}", "CLIENT@TIME+LENGTH"),
    "slow": (rf"(\d+)@{NUMBER}x{NUMBER}", "CLIENT@TIMExFACTOR"),
}
"""Forms of addresses, as a pattern and in words."""
Faults = list[tuple[int, float, float | None]]
"""Clients to which something happens, from 0, the virtual seconds at which it does, and
the virtual seconds for which one is away or paused, None for ever; or the factor of its
computing time."""


def parsed(what: str, written: Sequence[str], num_clients: int) -> Faults:
    """Returns faults as an option has them.

    Args:
        what: `kill`, `pause` or `slow`.
        written: Such as `2@3.5+1`: client 2, at 3.5 virtual seconds, for one.
        num_clients: How many clients there are.

    Raises:
        UserError: One is written otherwise, or there is no such client.
    """
    pattern, form = FORMS[what]
    faults: Faults = []
    for text in written:
        found = re.fullmatch(pattern, text)
        if found is None or not 1 <= int(found[1]) <= num_clients:
            raise UserError(
                f"--{what} must be {form}, with a client from 1 to {num_clients}, got "
                f"{text!r}; correct it"
            )
        amount = None if found[3] is None else float(found[3])
        faults.append((int(found[1]) - 1, float(found[2]), amount))
    return faults


class Interrupted(Exception):  # noqa: N818
    """The user has ended the run."""


class RealTime(simpy.Environment):
    """Events in real time.

    Attributes:
        hear: Called with a client and its message.
        busy: Returns whether a message may still come.
        after: Called after everything that has happened.
        interrupted: Returns whether the user has ended the run.
    """

    def __init__(self, lines: Channels, scale: float) -> None:
        super().__init__(initial_time=0)
        self.hear: Callable[[int, Envelope], None] = lambda client, message: None
        self.busy: Callable[[], bool] = lambda: True
        self.after: Callable[[], None] = lambda: None
        self.interrupted: Callable[[], bool] = lambda: False
        self._lines, self._scale = lines, scale
        self._received: deque[tuple[int, Envelope]] = deque()
        self._origin = time.monotonic()

    def begin(self) -> None:
        """Lets the time begin."""
        self._origin = time.monotonic()

    def virtual(self, moment: float) -> float:
        """Returns the virtual time of a moment of the real, monotonic clock."""
        return (moment - self._origin) / self._scale

    def add(self, received: Received) -> None:
        """Adds messages that have arrived."""
        self._received += received

    @override
    def step(self) -> None:
        """Waits for the next event, and processes it.

        Raises:
            EmptySchedule: Nothing can happen any more.
            Interrupted: The user has ended the run.
        """
        while True:
            if self.interrupted():
                raise Interrupted
            now = max(self.virtual(time.monotonic()), self._now)
            due = self._queue[0][0] if self._queue else inf
            if due <= now or self._received:
                break
            if due == inf and not self.busy():
                raise EmptySchedule
            self.add(self._lines.poll(min((due - now) * self._scale, LOOK_S)))
        self._now = now
        if due <= now:
            event = heappop(self._queue)[3]
            callbacks, event.callbacks = event.callbacks, None  # pyright: ignore
            for callback in callbacks:
                callback(event)
        else:
            self.hear(*self._received.popleft())
        self.after()


class RealWorld(World):
    """Clients that are processes; the times of the scenario's laws are slept by them.

    Idling, and absence by a law, are waited for here: nothing is sent then.

    Raises:
        ScenarioError: The scenario has links that no machine can act out.
    """

    def __init__(
        self,
        played: SimulatedTimeline,
        lines: Channels,
        processes: ClientProcesses,
        learner: Learner,
        scale: float,
    ) -> None:
        self._lines, self._processes, self._learner = lines, processes, learner
        self._scale = scale
        super().__init__(
            *(played.clients, played.num_clients, played.seed),
            *(None, played.server, played.workload),
            lattice=False,
        )
        remembers = any(each.config.stopped != "redrawn" for each in self.groups)
        for there, what in (
            (self.feature(Losses) is not None, "clients.loss"),
            (self.feature(SharedLink) is not None, "a shared link of server"),
            (remembers, "clients.stopped"),
        ):
            if not there:
                continue
            raise ScenarioError(
                f"{what} must not be set on a testbed, whose messages and jobs take "
                f"this machine's own way; remove it"
            )
        self._there: set[int] = set()  # joined and ready
        self._back: dict[int, float] = {}  # killed: when they are started again
        self._asked: dict[int, tuple[int, Then]] = {}
        # Serial numbers, and what follows when they have arrived or crashed.
        self._jobs: dict[int, tuple[int, Then, Then]] = {}
        self._serial = 0
        self._slowed = [1.0] * played.num_clients
        self._logged = 0

    @override
    def _clock(self) -> RealTime:
        return RealTime(self._lines, self._scale)

    @property
    @override
    def is_plain(self) -> bool:
        return False

    @override
    def way(self, cycle: Cycle, *, stops: bool) -> Way:
        return HandedOutWay(cycle, self.give)

    @property
    def clock_of_testbed(self) -> RealTime:
        """The clock."""
        assert isinstance(self.env, RealTime)
        return self.env

    def gather(self) -> None:
        """Waits until all clients are ready.

        Raises:
            UserError: One has ended, or takes too long.
        """
        clock, end = self.clock_of_testbed, time.monotonic() + START_S
        while len(self._there) < self.num_clients:
            for client, message in self._lines.poll(0.05):
                self._hear(client, message)
            if clock.interrupted():
                raise KeyboardInterrupt
            if ended := self._processes.ended():
                who = min(ended)
                raise UserError(
                    f"client {who + 1} must live until all are ready, but its process "
                    f"{self._processes.end_of(who)}; see what it says above, if it "
                    f"does, and start the testbed again"
                )
            if time.monotonic() > end:
                who = min({*range(self.num_clients)} - self._there) + 1
                raise UserError(
                    f"client {who} must be ready within {START_S:g} seconds, but is "
                    f"not; see what it says above, or take fewer clients"
                )

    def attend(self, recorder: Recorder, log: "Log", faults: dict[str, Faults]) -> None:
        """Begins: events from now on are recorded; faults are by option."""
        clock = self.clock_of_testbed
        clock.hear, clock.busy = self._hear, self._is_busy
        clock.after = lambda: self._write(recorder, log)
        self._learner.follow(recorder)
        for what, those in faults.items():
            for client, time_s, amount in those:
                self.call_at(time_s, self._happens(what, amount), client)
        clock.begin()

    @override
    def stage(self, purpose: Purpose, then: Then) -> Then:
        """Returns a function that lets a client pass a stage; it requests work itself.

        All stages but that are waited for here.
        """
        if purpose is not Purpose.READ:
            return super().stage(purpose, then)

        def ask(client: int) -> None:
            self._serial += 1
            self._asked[client] = self._serial, then
            self._jobs.pop(client, None)
            self._go(client)

        return ask

    def give(self, client: int, arrived: Then, crashed: Then) -> None:
        """Sends a client the model and its job, which has just read."""
        now, job = self.env.now, self.recorder.current_job(client)
        download = self.transit(Purpose.DOWNLOAD, client)
        compute = self.computing(client, job, now + download)
        compute += self.workload.overhead_s
        sent = now + download + compute
        upload = self.transit(Purpose.UPLOAD, client, sent)
        self._serial += 1
        self._jobs[client] = self._serial, arrived, crashed
        more, body = self._learner.read(client)
        slow, scale = self._slowed[client], self._scale
        job_header = {
            "type": "model",
            "serial": self._serial,
            "job": job,
            "slow": slow,
            "download": download * scale,
            "compute": compute * slow * scale,
            "upload": upload * scale,
        }
        self._lines.send(client, job_header | more, body)
        if client not in self._there:  # it has left since it asked
            self._lose(client)

    @override
    def present_since(self, client: int, time: float) -> float:
        if client in self._there:
            return super().present_since(client, time)
        back = self._back.get(client, inf)
        return back if back == inf else super().present_since(client, max(time, back))

    @override
    def has_left(self, client: int, time: float) -> bool:
        gone = client not in self._there and client not in self._back
        return gone or super().has_left(client, time)

    @property
    @override
    def is_over(self) -> bool:
        return False

    def _go(self, client: int) -> None:
        number, _ = self._asked[client]
        if client in self._there:
            read = self.draw(Purpose.READ, client) * self._scale
            self._lines.send(client, {"type": "go", "number": number, "read": read})

    def _is_busy(self) -> bool:
        waited = {*self._asked, *self._jobs}
        return any(client in self._there for client in waited) or any(
            self._processes.runs(client) for client in self._back
        )

    def _hear(self, client: int, message: Envelope) -> None:
        try:
            match message.header["type"]:
                case "here":
                    self._lines.send(client, *self._learner.welcome())
                case "ready":
                    self._there.add(client)
                    self._back.pop(client, None)
                    if client in self._asked:
                        self._go(client)
                case "gone":
                    self._there.discard(client)
                    self._lose(client)
                case "read":
                    number, then = self._asked.get(client, (-1, None))
                    if message.header.get("number") == number and then is not None:
                        del self._asked[client]
                        then(client)
                case "update":
                    self._arrives(client, message)
                case other:
                    raise WireError(f"client {client + 1} says {other[:40]!r}")
        except WireError as error:
            self._lines.drop(client, str(error))
            self._there.discard(client)
            self._lose(client)

    def _arrives(self, client: int, message: Envelope) -> None:
        serial, arrived, _ = self._jobs.get(client, (-1, None, None))
        if arrived is None or message.header.get("serial") != serial:
            return  # of a job that was stopped
        now, clock = self.env.now, self.clock_of_testbed
        started, computed = map(clock.virtual, message.numbers("times", 2))
        started = min(max(started, 0.0), now)
        computed = min(max(computed, started), now)
        self._learner.arrive(client, message)
        del self._jobs[client]
        self.timing[client] = (started, computed, computed, now, 1)
        arrived(client)

    def _lose(self, client: int) -> None:
        """Ends what a client had under way that has gone."""
        job = self._jobs.pop(client, None)
        if job is not None:
            _, _, crashed = job
            crashed(client)
        elif client in self._asked and client not in self._back:
            _, then = self._asked.pop(client)
            then(client)  # which finds that it has left

    def _happens(self, what: str, amount: float | None) -> Callable[[int], None]:
        def kill(client: int) -> None:
            if amount is not None:
                self._back[client] = self.env.now + amount
                self.call(amount, come_back, client)
            self._processes.signal(client, signal.SIGKILL)

        def come_back(client: int) -> None:
            # It replaces a process that has come back from an earlier kill meanwhile.
            self._back[client] = self.env.now
            self._processes.start(client)

        def pause(client: int) -> None:
            self._processes.signal(client, signal.SIGSTOP)
            self.call(amount or 0, go_on, client)

        def go_on(client: int) -> None:
            self._processes.signal(client, signal.SIGCONT)

        def slow(client: int) -> None:
            self._slowed[client] = amount or 1

        return {"kill": kill, "pause": pause, "slow": slow}[what]

    def _write(self, recorder: Recorder, log: "Log") -> None:
        """Applies what was recorded since, and writes down the jobs that have ended."""
        self._learner.catch_up()
        for entry, times in recorder.ended(self._logged):
            log.add(entry, times, float(self.env.now))
            self._learner.forget(*entry[:2])
            self._logged += 1
