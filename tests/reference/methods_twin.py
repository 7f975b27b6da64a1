"""Slow twins of the asynchronous methods, written from methods.md alone.

Plain NumPy, one Python event at a time, every mean summed anew at every commit. The
functions share a tiny world with free links (section 0) and return every commit and
every job that was lost. Where the text leaves two readings open the function has an
argument for them; test_methods.py says which is the engine's. Here are the world and
the methods whose step uses one contribution; `collecting_twin` has the others.
"""

import heapq
import math
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

Vector = NDArray[np.float64]
SampleOutcome = tuple[
    float, int, int, str
]  # (time in s, client, job, fate) of a job that no step used; OUTCOMES
OUTCOMES = (
    "rejected",
    "stopped",
    "overwritten",
)  # ended but ignored; did not end; ended, replaced in its table unused
StepRule = Callable[[int, int, int], float]  # (k, client, delay) -> step size


class Source(NamedTuple):
    """One gradient: the client's job that took it and the version that it read."""

    client: int
    job: int
    read_version: int


class Commit(NamedTuple):
    """One commit; `version` and `x` are those after it.

    `entered` lists the gradients that enter a step for the first time, in order of
    arrival; `held` lists all that the step sums, new or reused. The delay of one of
    them in this commit is version - 1 - read_version.
    """

    time_s: float
    version: int
    x: Vector
    entered: tuple[Source, ...]
    held: tuple[Source, ...]


@dataclass(frozen=True, kw_only=True)
class World:
    """Clients, their seconds and gradients, and the end of a run (section 0).

    `duration(client, job)` is in seconds, > 0; jobs of a client are numbered in the
    order in which it begins them. Before it the model travels for `download` seconds.
    `gradient(client, job, x)` is a pure function. Ties in time: the job that began
    first (`began`), or section 16's lower client number (`client`).
    """

    num_clients: int
    duration: Callable[[int, int], float]
    gradient: Callable[[int, int, Vector], Vector]
    start: Vector
    num_commits: int
    horizon_s: float = math.inf
    ties: Literal["began", "client"] = "began"
    download: Callable[[int, int], float] = lambda _client, _job: 0.0


@dataclass
class Job:
    """A job in flight, with its own copy of the model that it read."""

    source: Source
    model: Vector
    in_time: bool = True
    stopped: bool = False
    started_s: float = 0.0
    computed_in_s: float = 0.0
    timer: bool = False


@dataclass
class Run:
    """The server's model and version, the jobs in flight, and the record so far."""

    world: World
    x: Vector = field(init=False)
    version: int = 0
    time_s: float = 0.0
    commits: list[Commit] = field(default_factory=list)
    fates: list[SampleOutcome] = field(default_factory=list)
    flying: dict[int, Job] = field(default_factory=dict)
    num_jobs: list[int] = field(init=False)
    _events: list[tuple[float, int, int, Job]] = field(default_factory=list)
    _order: int = 0

    def __post_init__(self) -> None:
        self.x = np.array(self.world.start, dtype=np.float64)
        self.num_jobs = [0] * self.world.num_clients

    def begin(
        self,
        clients: Iterable[int],
        allotted_s: Sequence[float] | None = None,
        read: tuple[int, Vector] | None = None,
    ) -> None:
        """Lets idle clients begin now, in order of client number, at the current model.

        `allotted_s` ends a longer job early; `read` replaces (version, model).
        """
        for client in sorted(clients):
            if client in self.flying:
                raise ValueError(f"client must be idle, got busy client {client}")
            number = self.num_jobs[client]
            self.num_jobs[client] += 1
            version, model = read or (self.version, self.x)
            job = Job(Source(client, number, version), model.copy())
            download = self.world.download(client, number)
            job.started_s = self.time_s + download
            job.computed_in_s = self.world.duration(client, number)
            seconds = download + job.computed_in_s
            if allotted_s is not None and seconds > allotted_s[client]:
                job.in_time, seconds = False, allotted_s[client]
            rank = client if self.world.ties == "client" else self._order
            heapq.heappush(
                self._events, (self.time_s + seconds, rank, self._order, job)
            )
            self._order += 1
            self.flying[client] = job

    def stop(self, clients: Iterable[int]) -> list[int]:
        """Stops the jobs of these clients, in order of number; returns who is idle."""
        idle = sorted(clients)
        for client in idle:
            job = self.flying.pop(client)
            job.stopped = True
            self.lose(job.source, "stopped")
        return idle

    def wake(self, seconds: float) -> None:
        """Has `arrivals` yield a timer after so long, after all that ends then."""
        timer = Job(Source(-1, -1, -1), self.x, timer=True)
        when = self.time_s + seconds
        heapq.heappush(self._events, (when, 10**9, self._order, timer))
        self._order += 1

    def lose(self, source: Source, fate: str) -> None:
        """Records that no step uses this job, and its fate, one of OUTCOMES."""
        self.fates.append((self.time_s, source.client, source.job, fate))

    def arrivals(self) -> Iterator[Job]:
        """Yields jobs as they end, until enough commits, the horizon or no event."""
        while len(self.commits) < self.world.num_commits and self._events:
            time_s, _, _, job = heapq.heappop(self._events)
            if job.stopped:
                continue
            if time_s > self.world.horizon_s or math.isinf(time_s):
                return
            self.time_s = time_s
            if not job.timer:
                del self.flying[job.source.client]
            yield job

    def gradient(self, job: Job) -> Vector:
        return np.asarray(
            self.world.gradient(job.source.client, job.source.job, job.model),
            dtype=np.float64,
        )

    def commit(
        self,
        step: Vector,
        entered: Iterable[Source],
        held: Iterable[Source] | None = None,
    ) -> None:
        """Subtracts `step` (the step size is in it) and records the commit."""
        self.x = self.x - step
        self.version += 1
        new = tuple(entered)
        self.commits.append(
            Commit(
                self.time_s,
                self.version,
                self.x,
                new,
                new if held is None else tuple(held),
            )
        )


def everyone(world: World) -> Run:
    """A run in which every client begins at time 0 at x^0."""
    run = Run(world)
    run.begin(range(world.num_clients))
    return run


def sum_of(pairs: Iterable[tuple[object, Vector]]) -> Vector:
    """The sum of the vectors in (name, vector) pairs, in their order."""
    return np.sum([g for _, g in pairs], axis=0)


def constant(eta: float) -> StepRule:
    """Plain ASGD. Section 1."""
    return lambda _k, _client, _delay: eta


def delay_adaptive(eta: float, tau_c: float, lipschitz: float) -> StepRule:
    """Koloskova's rule with the bound itself where the text allows less. Section 1."""
    return lambda _k, _client, delay: (
        eta if delay <= tau_c else min(eta, 1.0 / (4.0 * lipschitz * delay))
    )


def inverse_delay(lr: float, num_clients: int) -> StepRule:
    """Mishchenko's form, eta_k = lr n / max(n, d). Section 1."""
    return lambda _k, _client, delay: lr * num_clients / max(num_clients, delay)


def rescaled(gamma: float, tau: Sequence[float]) -> StepRule:
    """Rescaled ASGD, gamma_i = gamma (tau_i / n) sum_j 1 / tau_j. Section 8."""
    speed = sum(1.0 / t for t in tau)
    return lambda _k, client, _delay: gamma * tau[client] / len(tau) * speed


def asgd(world: World, rule: StepRule) -> Run:
    """x -= rule(k, i, d) g at every arrival; a step of 0 is a commit too. Section 1."""
    run = everyone(world)
    for job in run.arrivals():
        step = rule(
            run.version, job.source.client, run.version - job.source.read_version
        )
        run.commit(step * run.gradient(job), [job.source])
        run.begin([job.source.client])
    return run


def clipped_asgd(world: World, eta: float, c: float) -> Run:
    """x -= eta min(1, c / ||g||) g. Section 12, Clipped ASGD."""
    run = everyone(world)
    for job in run.arrivals():
        g = run.gradient(job)
        norm = float(np.sqrt(np.sum(g * g)))
        factor = 1.0 if norm <= c else c / norm
        run.commit(eta * factor * g, [job.source])
        run.begin([job.source.client])
    return run


def ringmaster(world: World, R: float, gamma: float, stops: bool) -> Run:
    """Algorithm 4 (no stops) or 5 (stops): only delays < R are applied. Section 4."""
    run = everyone(world)
    for job in run.arrivals():
        idle = [job.source.client]
        if run.version - job.source.read_version < R:
            run.commit(gamma * run.gradient(job), [job.source])
            if stops:
                idle += run.stop(
                    [
                        i
                        for i, j in run.flying.items()
                        if run.version - j.source.read_version >= R
                    ]
                )
        else:
            run.lose(job.source, "rejected")
        run.begin(idle)
    return run


def generalized(
    world: World,
    m: int,
    route: Callable[[int], int],
    p: Sequence[float],
    eta: float,
    read: Literal["routing", "service"] = "routing",
) -> Run:
    """m routed tasks, FIFO queues, x -= eta / (n p_i) g. Section 9.

    Tasks 0..m-1 are routed at time 0 at x^0, task m + k - 1 after the commit that makes
    version k. The new task is queued first, then idle clients with a queue begin in
    order of number. `service` is section 16's trap, for contrast.
    """
    n, run = world.num_clients, Run(world)
    queues: list[deque[tuple[int, Vector]]] = [deque() for _ in range(n)]

    def serve() -> None:
        for client in range(n):
            if client not in run.flying and queues[client]:
                routed = queues[client].popleft()
                run.begin([client], read=routed if read == "routing" else None)

    for task in range(m):
        queues[route(task)].append((run.version, run.x))
    serve()
    for job in run.arrivals():
        i = job.source.client
        run.commit(eta / (n * p[i]) * run.gradient(job), [job.source])
        queues[route(m + run.version - 1)].append((run.version, run.x))
        serve()
    return run
