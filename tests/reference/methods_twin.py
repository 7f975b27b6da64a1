"""Slow twins of the asynchronous methods, written from methods.md alone.

Plain NumPy, one Python event at a time, every mean summed anew at every commit. The
functions share a tiny world with free links (section 0) and return every commit and
every job that was lost. Where the text leaves two readings open the function has an
argument for them; test_methods.py says which is the engine's.
"""

import heapq
import math
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

Vector = NDArray[np.float64]
Fate = tuple[
    float, int, int, str
]  # (time in s, client, job, fate) of a job that no step used; FATES
FATES = (
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
    fates: list[Fate] = field(default_factory=list)
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
        """Records that no step uses this job, and its fate, one of FATES."""
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


def collect(
    world: World,
    asked: Iterable[int],
    full: Callable[[list[int]], bool],
    mean: Callable[[list[tuple[int, Vector]]], Vector],
    gamma: float,
    stops: bool,
) -> Run:
    """Gradients at x^k until `full(counts per client)`, then x -= gamma mean.

    Sections 2 and 3.
    """
    run = Run(world)
    run.begin(asked)
    got: list[tuple[int, Vector]] = []
    sources: list[Source] = []
    for job in run.arrivals():
        idle = [job.source.client]
        if job.source.read_version == run.version:
            got.append((job.source.client, run.gradient(job)))
            sources.append(job.source)
        else:
            run.lose(job.source, "rejected")
        if full([sum(c == i for c, _ in got) for i in range(world.num_clients)]):
            run.commit(gamma * mean(got), sources)
            got, sources = [], []
            if stops:
                idle += run.stop(run.flying)
        run.begin(idle)
    return run


def rennala(
    world: World,
    S: int,
    gamma: float,
    stops: bool,
    fastest: Sequence[float] | None = None,
) -> Run:
    """S gradients at x^k, then x -= gamma g / S. Section 2.

    `fastest` holds every client's known seconds per gradient: then only the min(S, n)
    fastest are asked (ties: lower number) and the others never begin.
    """
    asked = list(range(world.num_clients))
    if fastest is not None:
        asked = sorted(asked, key=lambda i: (fastest[i], i))[:S]
    return collect(
        world,
        asked,
        lambda counts: sum(counts) == S,
        lambda got: sum_of(got) / S,
        gamma,
        stops,
    )


def malenia(world: World, S: float, gamma: float, stops: bool) -> Run:
    """Rennala with a mean per client, until n / sum(1 / b_i) >= S / n. Section 3."""
    n = world.num_clients

    def full(counts: list[int]) -> bool:
        return (
            min(counts) >= 1
            and Fraction(n) / sum(Fraction(1, b) for b in counts) >= Fraction(S) / n
        )

    def mean(got: list[tuple[int, Vector]]) -> Vector:
        rows = [[(c, g) for c, g in got if c == i] for i in range(n)]
        return np.mean([sum_of(row) / len(row) for row in rows], axis=0)

    return collect(world, range(n), full, mean, gamma, stops)


def m_synchronous(
    world: World,
    m: int,
    gamma: float,
    stops: bool,
    late: Literal["now", "next_round"] = "now",
) -> Run:
    """Mean of the first m gradients of a round, one per client. Section 12.

    A client that has reported waits for the commit. Without stops a late job ends, is
    rejected, and its client starts at the current model `now` or in the `next_round`.
    """
    run = everyone(world)
    total, sources, waiting = np.zeros_like(run.x), [], []
    for job in run.arrivals():
        if job.source.read_version != run.version:
            run.lose(job.source, "rejected")
            if late == "now":
                run.begin([job.source.client])
            else:
                waiting.append(job.source.client)
            continue
        total = total + run.gradient(job)
        sources.append(job.source)
        waiting.append(job.source.client)
        if len(sources) == m:
            run.commit(gamma * total / m, sources)
            if stops:
                waiting += run.stop(run.flying)
            run.begin(waiting)
            total, sources, waiting = np.zeros_like(run.x), [], []
    return run


def async_minibatch(world: World, B: int, gamma: float) -> Run:
    """Mean of B gradients whose job began in the current batch. Section 12.

    With free links a job began in batch k if and only if it read x^k: Rennala without
    stops.
    """
    return rennala(world, B, gamma, stops=False)


def mindflayer(
    world: World,
    trials: Sequence[int],
    allotted_s: Sequence[float],
    p: Sequence[float],
    gamma: float,
) -> Run:
    """B_i trials per client at x^k, then x -= gamma g / sum(p_i B_i). Section 7.

    `allotted_s` is the whole of a trial, h_i + t_i; a job of exactly that length ends
    in time. A client with no trials never begins; one whose trials are over waits. A
    round without success is a commit.
    """
    run = Run(world)
    asked = [i for i, b in enumerate(trials) if b > 0]
    expected = sum(q * b for q, b in zip(p, trials, strict=True))
    if expected <= 0:
        raise ValueError(
            f"sum of p_i B_i must be > 0, got {expected}; give a client time"
        )
    left, total, sources = list(trials), np.zeros_like(run.x), []
    run.begin(asked, allotted_s)
    for job in run.arrivals():
        if job.in_time:
            total = total + run.gradient(job)
            sources.append(job.source)
        else:
            run.lose(job.source, "stopped")
        left[job.source.client] -= 1
        if left[job.source.client] > 0:
            run.begin([job.source.client], allotted_s)
        elif sum(left) == 0:
            run.commit(gamma * total / expected, sources)
            left, total, sources = list(trials), np.zeros_like(run.x), []
            run.begin(asked, allotted_s)
    return run


def ringleader(world: World, gamma: float) -> Run:
    """Phase 1 collects from all, phase 2 commits once per client. Section 5."""
    n, run = world.num_clients, everyone(world)
    table: list[list[tuple[Source, Vector]]] = [[] for _ in range(n)]
    following: list[list[tuple[Source, Vector]]] = [[] for _ in range(n)]
    served: set[int] = set()
    entered: list[Source] = []  # gradients that wait for their first commit
    next_entered: list[Source] = []
    for job in run.arrivals():
        i, entry = job.source.client, (job.source, run.gradient(job))
        if i in served:
            following[i].append(entry)
            next_entered.append(job.source)
        else:
            table[i].append(entry)
            entered.append(job.source)
            if served or all(table):
                means = [sum_of(row) / len(row) for row in table]
                held = [source for row in table for source, _ in row]
                run.commit(gamma * np.mean(means, axis=0), entered, held)
                entered = []
                served.add(i)
        if len(served) == n:
            table, following = following, [[] for _ in range(n)]
            entered, next_entered = next_entered, []
            served = set()
        run.begin([i])
    return run


def aced(
    world: World,
    gamma: float,
    tau_algo: float,
    age: Literal["read", "arrival"] = "read",
    warm_up: bool = True,
    empty: Literal["skip", "commit"] = "skip",
    idle_in_warm_up: bool = False,
) -> Run:
    """Mean over the clients whose entry is at most tau_algo commits old. Section 6.

    The text does not say from where an entry's age counts: from the `read` of the model
    at which it was taken (its delay), or from its `arrival` (then the arriving one is
    always young). It is taken at x^k, before the commit. `warm_up`: no commit until
    every client has an entry. `empty`: with no entry young enough nothing happens
    (`skip`) or the version moves and x stays (`commit`). `idle_in_warm_up`: a client
    waits for the warm-up's end, else it works on at x^0 and overwrites its entry.
    """
    n, run = world.num_clients, everyone(world)
    entries: dict[int, tuple[Source, int, Vector]] = {}
    unused: dict[int, Source] = {}  # entries that no commit has summed yet
    waiting: list[int] = []
    for job in run.arrivals():
        i, source = job.source.client, job.source
        if i in unused:
            run.lose(unused.pop(i), "overwritten")
        entries[i] = (source, run.version, run.gradient(job))
        unused[i] = source
        waiting.append(i)
        if warm_up and len(entries) < n:
            if not idle_in_warm_up:
                run.begin(waiting)
                waiting = []
            continue
        young = {}
        for c in sorted(entries):
            since = entries[c][0].read_version if age == "read" else entries[c][1]
            if run.version - since <= tau_algo:
                young[c] = entries[c]
        for c in [c for c in unused if c not in young]:
            run.lose(unused.pop(c), "rejected")
        if young:
            mean = np.mean([g for _, _, g in young.values()], axis=0)
            run.commit(gamma * mean, unused.values(), [s for s, _, _ in young.values()])
            unused = {}
        elif empty == "commit":
            run.commit(np.zeros_like(run.x), [])
        run.begin(waiting)
        waiting = []
    return run


def ia2sgd(world: World, gamma: float, idle_in_warm_up: bool = False) -> Run:
    """Mean of every client's newest gradient at every arrival. Section 6."""
    return aced(world, gamma, math.inf, idle_in_warm_up=idle_in_warm_up)


def ca2fl(
    world: World,
    M: int,
    eta: float,
    residual: Literal["latest", "committed"] = "latest",
) -> Run:
    """v = h + (1/M) sum (D_i - h_i), x -= eta v, h := mean h_i. Section 6.

    Caches begin at zero, D_i is the gradient. If a client arrives twice in one buffer
    its second residual is against its `latest` D_i (the arrival rule; the first then
    cancels), or against h_i as it was at the last commit (`committed`). `held` leaves
    out what is in the cache only.
    """
    n, run = world.num_clients, everyone(world)
    cache = [np.zeros_like(run.x) for _ in range(n)]
    old = list(cache)
    buffer, sources = np.zeros_like(run.x), []
    for job in run.arrivals():
        i, update = job.source.client, run.gradient(job)
        buffer = buffer + (update - (cache[i] if residual == "latest" else old[i]))
        cache[i] = update
        sources.append(job.source)
        if len(sources) == M:
            run.commit(eta * (np.mean(old, axis=0) + buffer / M), sources)
            old, buffer, sources = list(cache), np.zeros_like(run.x), []
        run.begin([i])
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
