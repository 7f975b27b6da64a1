"""The clients' world: a clock, the groups of clients, and what all of them share."""

from collections.abc import Callable
from fractions import Fraction
from functools import partial
from math import inf, nextafter
from typing import Any

import numpy as np
import simpy

from ..laws.base import AnyLaw, Draws, DurationSampler, Population, common_tick
from ..streams import Purpose, Streams
from ..timeline import Incident, Incidents, JobSteps
from . import faults
from .answers import Answers
from .clients import (
    Behaviour,
    Clients,
    Server,
)
from .clock import Clock, Then, schedule
from .delays import LARGE, StageDelays, block_size
from .groups import ClientGroup
from .links import Queue, SharedLink
from .message_budget import MessageBudget
from .preferences import PreferringPool
from .presence import MOST_TURNS, restless
from .selection import Pool
from .slowdowns import Factor
from .workload import DrawnWork, Workload


class World(Clock):
    """A clock, its clients, and the resources that they share.

    Args:
        clients: Laws of the clients; None for a world without clients.
        num_clients: Number of clients.
        seed: Seed of the run.
        step: Law of a step without clients, for the centralised protocol.
        server: Resources that all clients share.
        workload: Work and messages of a client's job.
        lattice: Whether the clock may tick, where all laws are on a lattice.
        work: What multiplies the computing time of a job, by its samples; None for
            nothing.
        job_steps: Local steps of each job, where they change; None where all have those
            of the workload.

    Raises:
        ScenarioError: a law that gives impossible durations, or parts that do not fit.
        DataError: a file of measurements that is missing or damaged.
    """

    def __init__(
        self,
        clients: Clients | None,
        num_clients: int,
        seed: int,
        step: AnyLaw | None = None,
        server: Server | None = None,
        workload: Workload | None = None,
        *,
        lattice: bool = True,
        work: DrawnWork | None = None,
        job_steps: JobSteps | None = None,
    ) -> None:
        super().__init__()
        self.num_clients = num_clients
        self.streams = Streams(seed)
        self.workload = workload or Workload()
        self._server = server or Server()
        self.work, self.job_steps = work, job_steps
        self.job_of: Callable[[int], int] | None = None
        """Number of the job that a client is at, where its samples tell how long it is;
        set before a protocol starts."""
        self.staleness_of: Callable[[int], int] | None = None
        """Commits since the job that a client is at has read, set likewise."""
        self._incidents: list[tuple[float, int, Incident, int]] = []
        self.timing: list[Any] = [None] * num_clients
        """Times at which each client's job started, was computed, sent and arrived, and
        its uploads; None where nothing comes between its read and its arrival."""
        self.hand_out: Callable[[int, Then, Then], None] | None = None
        """Has a client's job done elsewhere, whatever its laws say, as soon as it has
        read: called with the client, and with what to call when its contribution has
        arrived and when it is gone. None for nothing; set before a protocol starts, in
        a world that is not plain."""
        self.message_budget: MessageBudget | None = None
        """Messages that clients may send before the run ends; set before a protocol
        starts."""
        self.answers: Answers | None = None
        """What the numerics have answered, where the world asks; set before a protocol
        starts."""
        population = Population(num_clients, self.streams)
        behaviours = clients.behaviours(num_clients) if clients else []
        self.groups = [
            ClientGroup(
                config,
                population._replace(size=size, first=first),
                self.workload,
                summed=job_steps is None,
            )
            for first, size, config in behaviours
        ]
        """Groups of clients, one after the other."""
        self.group_of = np.zeros(num_clients, np.int32)
        """Group of each client."""
        for number, (first, size, _) in enumerate(behaviours):
            self.group_of[first : first + size] = number
        selection = clients.selection if clients is not None else None
        opened = selection.arrivals if selection is not None else None
        pauses = self._server.evaluation
        shared: dict[Purpose, AnyLaw | None] = {
            Purpose.STEP: step,
            Purpose.SERVICE: self._server.service,
            Purpose.EVALUATION: pauses and pauses.takes,
            Purpose.ARRIVAL: opened and opened.gap,
        }
        self.shared_laws = {
            at: law.make(population._replace(stage=at.name.lower()))
            for at, law in shared.items()
            if law is not None
        }
        """Laws of stages that are not those of groups."""
        self.slowdowns = self._build_slowdowns(clients)
        """Factors of each slowdown, in their order."""
        stages = (Purpose.COMPUTE, Purpose.UPLOAD, Purpose.DOWNLOAD)
        given = clients.slowdowns if clients else ()
        pairs = list(zip(given, self.slowdowns, strict=True))
        self._slow = {at: [by for one, by in pairs if at in one.slows] for at in stages}
        # Stages draw in ticks or in seconds, so the tick is known before any is built.
        ticks = lattice and not (opened and opened.rate)
        self.tick = self._tick(self.shared_laws) if ticks else None
        self._stages = self._build_stages(self.shared_laws)
        # Known once for all jobs: a million of them ask at every step.
        self.is_plain = self._is_plain()
        self._powered = any(group.powers for group in self.groups)
        self._loses = any(group.lossy for group in self.groups)
        self._vanish = any(group.lasting for group in self.groups)
        sizes = {
            Purpose.UPLOAD: self.workload.upload_bytes,
            Purpose.DOWNLOAD: self.workload.download_bytes,
        }
        self._seconds_of = {way: self._transfers(way, sizes[way]) for way in sizes}
        self.counts_jobs = bool(self.slowdowns) or any(g.lossy for g in self.groups)
        self.service = self._server.queues
        self.upload_link = self._link(self._server.upload_bandwidth)
        self.download_link = self._link(self._server.download_bandwidth)
        # Where none is ever away, a pool need not ask.
        self.all_stay = not any(group.presences for group in self.groups)
        self.pool = None
        if selection is not None:
            prefer = selection.prefer
            self.pool = (
                PreferringPool(prefer, selection, self)
                if prefer
                else Pool(selection, self)
            )

    def draw(self, purpose: Purpose, client: int) -> int | float:
        """Returns the client's next duration of a stage, in the clock's unit; or 0."""
        stage = self._stages.get(purpose)
        return stage(client) if stage else 0

    def stage(self, purpose: Purpose, then: Then) -> Then:
        """Returns a function that lets a client pass a stage, and then calls `then`.

        A stage that takes no time is `then` itself.
        """
        draw = self._stages.get(purpose)
        if draw is None:
            return then
        env = self.env

        def ended(event: simpy.Event) -> None:
            then(event._value)  # the property costs as much as the call

        def wait(client: int) -> None:
            schedule(env, env._now + draw(client), ended, client)

        return wait

    def counted(self, then: Then) -> Then:
        """Returns a function that counts a client's message, if that limits the run."""
        budget = self.message_budget
        return then if budget is None else budget.counted(then)

    def sends_so_far(self, client: int) -> int:
        """Returns how often a client has sent the message of the job that it is at."""
        timing, now = self.timing[client], self.env.now
        if timing is None or timing[2] > now:
            return 0
        _, _, sent, _, sends = timing
        if self.message_budget is not None and not self.message_budget.has_sent(client):
            return 0
        lossy = self.groups[self.group_of[client]].lossy if self._loses else None
        return min(sends, 1 + int((now - sent) / lossy.timeout)) if lossy else sends

    def prefetch(self, clients: np.ndarray) -> None:
        """Draws what many clients are about to need, all at once."""
        for stages in self._stage_objects:
            for number, stage in stages.items():
                mine = clients
                if len(self.groups) > 1:
                    mine = clients[self.group_of[clients] == number]
                if mine.size:
                    stage.prefetch(mine)

    def prefetch_everyone(self) -> None:
        """Draws the first durations of all clients, where there are many."""
        if block_size(self.num_clients) < LARGE:
            self.prefetch(np.arange(self.num_clients))

    def queue(self, then: Then) -> Then:
        """Returns a function that lets an arrival queue at the server."""
        evaluation = self._server.evaluation

        def busy(served: int) -> int | float:
            if evaluation is None or served % evaluation.every:
                return 0
            return self.draw(Purpose.EVALUATION, 0)

        service = partial(self.draw, Purpose.SERVICE)
        return Queue(self.env, service, then, busy).arrive

    def transit(self, way: Purpose, client: int, time: float | None = None) -> float:
        """Returns the time that a message takes on the client's own link.

        Args:
            way: `UPLOAD` or `DOWNLOAD`.
            client: Number of the client, from 0.
            time: Time of the clock at which it is sent; None for now.
        """
        seconds, drawn = self._seconds_of[way], self.draw(way, client)
        if seconds is not None:
            drawn += seconds[client]
        if not self._slow[way]:
            return drawn
        factor = 1.0
        for slower in self._slow[way]:
            factor *= slower(client, 0, self.env.now if time is None else time)
        return drawn * factor

    def median_compute(self) -> list[float]:
        """Returns each client's median computing time by its law, slowdowns apart.

        Where a job's time is a sum of draws, it is the sum of their medians.
        """
        found: list[float] = []
        for group in self.groups:
            size = group.population.size
            half = Draws(np.full(size, 0.5), np.arange(size), np.zeros(size, int))
            law = group.laws.get(Purpose.REFRESH)
            times = np.zeros(size) if law is None else law.draw(half, None)
            found += (times * np.array(group.amounts)).tolist()
        return found

    def slowness(self, client: int, job: int, time: float) -> float:
        """Returns by what a draw of computing time is multiplied."""
        factor = self.units[client]
        for slower in self._slow[Purpose.COMPUTE]:
            factor *= slower(client, job, time)
        if self.work is not None and self.job_of is not None:
            factor *= self.work.of(client, self.job_of(client))
        return factor

    def computing(self, client: int, job: int, start: float, drawn: float) -> float:
        """Returns how long a job computes whose computing time was drawn.

        Args:
            client: Number of the client, from 0.
            job: Number of its job.
            start: Time at which it begins to compute.
            drawn: Computing time by the law, in the clock's unit.
        """
        work = drawn * self.slowness(client, job, start)
        if not self._powered:
            return work
        powers = self.groups[self.group_of[client]].powers
        return powers.duration(client, start, work) if powers else work

    def sending(self, client: int, job: int) -> faults.Sending | None:
        """Returns how the upload of a job fares, where it may be lost."""
        if not self._loses:
            return None
        lossy = self.groups[self.group_of[client]].lossy
        return lossy.send(client, job) if lossy else None

    def present_since(self, client: int, time: float) -> float:
        """Returns the earliest moment from `time` on at which a client can begin."""
        presences = self.groups[self.group_of[client]].presences
        for _ in range(MOST_TURNS):
            latest = time
            for presence in presences:
                latest = presence.since(client, latest)
                if latest == inf:
                    return inf
            if latest == time:
                return time
            time = latest
        raise restless(client, time, time)

    def has_left(self, client: int, time: float) -> bool:
        """Returns whether a client has left for ever; asks nothing of later times."""
        membership = self.groups[self.group_of[client]].membership
        return membership is not None and membership.until(client, time) <= time

    def present_until(self, client: int, time: float) -> float:
        """Returns when a present client loses the job that it has started."""
        if not self._vanish:
            return inf
        lasting = self.groups[self.group_of[client]].lasting
        return min((p.until(client, time) for p in lasting), default=inf)

    def note(self, time: float, client: int, what: Incident, count: int = 1) -> None:
        """Writes down an incident, at a time in the clock's unit."""
        seconds = time if self.tick is None else self.seconds([time])[0]
        self._incidents.append((float(seconds), client, what, count))

    def gone(self) -> int:
        """Counts the clients that never come again, or are known to leave later."""
        later = {c for _, c, what, _ in self._incidents if what is Incident.LEFT}
        now = self.env.now
        return sum(
            client in later or self.present_since(client, now) == inf
            for client in range(self.num_clients)
        )

    def incidents(self, until: float, *, final: bool = True) -> Incidents:
        """Hands over the incidents up to a time in virtual seconds, in order.

        Args:
            until: Virtual seconds.
            final: Whether nothing more can happen at that instant; else what has
                happened then is kept back, since more may come before it in order.
        """
        last = until if final else nextafter(until, -inf)
        done = sorted(entry for entry in self._incidents if entry[0] <= last)
        self._incidents = [entry for entry in self._incidents if entry[0] > last]
        time, client, what, count = zip(*done, strict=True) if done else ((),) * 4
        whole = (np.array(column, np.int32) for column in (client, what, count))
        return Incidents(np.array(time, np.float64), *whole)

    def transfer_seconds(self, way: Purpose) -> np.ndarray | None:
        """Returns how long each client's message is on the way, if that takes time."""
        seconds = self._seconds_of[way]
        return None if seconds is None else np.array(seconds)

    def _transfers(self, way: Purpose, size: int) -> list[float] | None:
        """Returns how long each client's message is on the way, if that takes time."""
        if not any(way in group.bandwidth for group in self.groups):
            return None
        seconds: list[float] = []
        for group in self.groups:
            rate = group.bandwidth.get(way)
            number = group.population.size
            values = np.zeros(number) if rate is None else size / rate.values
            seconds += np.broadcast_to(values, number).tolist()
        return seconds

    def _link(self, bandwidth: float | None) -> SharedLink | None:
        return None if bandwidth is None else SharedLink(self.env, bandwidth)

    def _build_slowdowns(self, clients: Clients | None) -> list[Factor]:
        factors: list[Factor] = []
        everyone = Population(self.num_clients, self.streams)
        for number, config in enumerate(clients.slowdowns if clients else ()):
            own = everyone._replace(stage=f"clients.slowdowns.{number}")
            if (found := config.over_time(own)) is not None:
                factors.append(found)
                continue
            normal = None
            if config.turns is not None:
                normal = ClientGroup(Behaviour(), everyone).renewal(config.turns)
            factors.append(config.make(self.num_clients, self.streams, normal))
        return factors

    def _tick(self, shared: dict[Purpose, DurationSampler]) -> Fraction | None:
        """Returns the tick of a world in which there are nothing but lattice laws."""
        server = self._server
        rough = bool(self.slowdowns or server.upload_bandwidth or self.work)
        rough = rough or bool(server.download_bandwidth or self.workload.overhead_s)
        for group in self.groups:
            rough = rough or bool(group.presences or group.bandwidth)
            rough = rough or bool(group.lossy or group.powers)
            rough = rough or group.config.compute_per != "job"
        if rough:
            return None
        laws = [law for group in self.groups for law in group.laws.values()]
        return common_tick([*laws, *shared.values()])

    def _build_stages(
        self, shared: dict[Purpose, DurationSampler]
    ) -> dict[Purpose, Callable[[int], int | float]]:
        found: dict[Purpose, Callable[[int], int | float]] = {}
        self._stage_objects: list[dict[int, StageDelays]] = []
        self.units = [
            1 if group.config.adds_draws else amount
            for group in self.groups
            for amount in group.amounts
        ]
        """By what a draw of each client's computing time is multiplied."""
        for purpose in Purpose:
            stages = [group.stage(purpose, self.tick) for group in self.groups]
            known = {n: s for n, s in enumerate(stages) if s is not None}
            if not known:
                continue
            found[purpose] = self._together(known)
            if purpose != Purpose.REFRESH:
                self._stage_objects.append(known)
        if self.job_steps is not None and Purpose.COMPUTE in found:
            found[Purpose.COMPUTE] = self._by_steps(found[Purpose.COMPUTE])
        for purpose, law in shared.items():
            stage = StageDelays(law, purpose, self.streams, self.num_clients, self.tick)
            found[purpose] = stage.next
        return found

    def _by_steps(
        self, draw: Callable[[int], int | float]
    ) -> Callable[[int], int | float]:
        """Lets a job take the time of its own local steps."""
        given = self.job_steps
        assert given is not None
        configs = [self.groups[number].config for number in self.group_of]
        amounts = [amount for group in self.groups for amount in group.amounts]
        self.units = [1] * self.num_clients

        def compute(client: int) -> int | float:
            config = configs[client]
            if config.compute_per == "job":
                return draw(client)
            assert self.job_of is not None
            share = given.of_job(client, self.job_of(client)) / given.most
            if config.adds_draws:
                return sum(draw(client) for _ in range(round(amounts[client] * share)))
            return draw(client) * (amounts[client] * share)

        return compute

    def _together(self, stages: dict[int, StageDelays]) -> Callable[[int], int | float]:
        if len(self.groups) == 1:
            return stages[0].next
        group_of = self.group_of.tolist()

        def draw(client: int) -> int | float:
            stage = stages.get(group_of[client])
            return stage.next(client) if stage else 0

        return draw

    def _is_plain(self) -> bool:
        """Says whether nothing can come between a client's read and its arrival."""
        links = Purpose.UPLOAD in self._stages or Purpose.DOWNLOAD in self._stages
        server = self._server != Server()
        rough = any(
            group.presences
            or group.bandwidth
            or group.lossy
            or group.powers
            or group.config.compute_per != "job"
            for group in self.groups
        )
        rough = rough or self.workload.overhead_s > 0 or self.work is not None
        return not (links or server or rough or self.slowdowns)
