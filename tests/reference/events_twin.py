"""Who does what when in protocols with a server: one Python event at a time.

Written from methods.md on a tiny world of clients that compute and free uploads. A
protocol returns its commits, with the jobs that enter each for the first time, and the
jobs that nothing came of. No numbers are learned: `server_twin` has these.
"""

import heapq
import math
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import NamedTuple


class World(NamedTuple):
    """Clients and their seconds.

    Attributes:
        num_clients: K.
        seconds: of computing, of (client, number of its job).
        num_commits: after which all ends.
        download: seconds before it, of (client, job).
    """

    num_clients: int
    seconds: Callable[[int, int], float]
    num_commits: int
    download: Callable[[int, int], float] = lambda _client, _job: 0.0


class Source(NamedTuple):
    """A client's job and the version that it read."""

    client: int
    job: int
    read_version: int


class Commit(NamedTuple):
    """A commit, with the jobs that enter it for the first time as they arrived."""

    time_s: float
    entered: tuple[Source, ...]


class Lost(NamedTuple):
    """A job of which nothing came: it was "rejected" when it ended, or "stopped"."""

    time_s: float
    client: int
    job: int
    fate: str


@dataclass
class Job:
    """A job in flight."""

    source: Source
    in_time: bool = True
    stopped: bool = False
    started_s: float = 0.0
    computed_in_s: float = 0.0
    timer: bool = False


@dataclass
class Run:
    """Commits so far and the jobs in flight. Of simultaneous ends the first began."""

    world: World
    time_s: float = 0.0
    commits: list[Commit] = field(default_factory=list)
    lost: list[Lost] = field(default_factory=list)
    flying: dict[int, Job] = field(default_factory=dict)
    num_jobs: list[int] = field(init=False)
    _events: list[tuple[float, int, int, Job]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.num_jobs = [0] * self.world.num_clients

    @property
    def version(self) -> int:
        return len(self.commits)

    def begin(
        self,
        clients: Iterable[int],
        allotted_s: float = math.inf,
        version: int | None = None,
    ) -> None:
        """Lets idle clients begin now, in order of number; ends longer jobs early."""
        for client in sorted(clients):
            assert client not in self.flying
            number = self.num_jobs[client]
            self.num_jobs[client] += 1
            read = self.version if version is None else version
            job = Job(Source(client, number, read))
            download = self.world.download(client, number)
            job.started_s = self.time_s + download
            job.computed_in_s = self.world.seconds(client, number)
            seconds = download + job.computed_in_s
            job.in_time = seconds <= allotted_s
            self._at(min(seconds, allotted_s), 0, job)
            self.flying[client] = job

    def wake(self, seconds: float) -> None:
        """Has `arrivals` yield a timer after so long, after all that ends then."""
        self._at(seconds, 1, Job(Source(-1, -1, -1), timer=True))

    def stop(self) -> list[int]:
        """Stops all jobs; returns whose."""
        return self.stop_some(lambda _: True)

    def stop_some(self, stops: Callable[[Source], bool]) -> list[int]:
        idle = sorted(c for c, job in self.flying.items() if stops(job.source))
        for client in idle:
            job = self.flying.pop(client)
            job.stopped = True
            self.lose(job, "stopped")
        return idle

    def lose(self, job: Job, fate: str) -> None:
        self.lost.append(Lost(self.time_s, job.source.client, job.source.job, fate))

    def commit(self, entered: Iterable[Source]) -> None:
        self.commits.append(Commit(self.time_s, tuple(entered)))

    def arrivals(self) -> Iterator[Job]:
        """Yields jobs as they end, until there are enough commits."""
        while len(self.commits) < self.world.num_commits:
            self.time_s, _, _, job = heapq.heappop(self._events)
            if not job.stopped:
                self.flying.pop(job.source.client, None)
                yield job

    def _at(self, seconds: float, rank: int, job: Job) -> None:
        order = sum(self.num_jobs)
        heapq.heappush(self._events, (self.time_s + seconds, rank, order, job))


def everyone(world: World) -> Run:
    """A run in which every client begins at time 0."""
    run = Run(world)
    run.begin(range(world.num_clients))
    return run


def asynchronous(
    world: World,
    staleness_bound: float = math.inf,
    beyond: str = "reject",
    warm_up: bool = False,
) -> Run:
    """Every arrival is a commit. Section 1; with a bound, section 4.

    What is staler than the bound, R - 1, is rejected, or stopped when it becomes so.
    With a `warm_up` all that arrives until everyone has is one commit. Section 6.
    """
    run, got = everyone(world), []
    for job in run.arrivals():
        idle = [job.source.client]
        if run.version - job.source.read_version > staleness_bound:
            run.lose(job, "rejected")
        else:
            got.append(job.source)
            reported = len({s.client for s in got}) == world.num_clients
            if reported or run.commits or not warm_up:
                run.commit(got)
                got = []
                if beyond == "stop":
                    idle += run.stop_some(
                        lambda s: run.version - s.read_version > staleness_bound
                    )
        run.begin(idle)
    return run


def restarting(world: World) -> Run:
    """Every arrival is a commit; all restart when all have reported. Section 12."""
    run, reported = everyone(world), set()
    for job in run.arrivals():
        run.commit([job.source])
        reported.add(job.source.client)
        idle = [job.source.client]
        if len(reported) == world.num_clients:
            idle += run.stop()
            reported.clear()
        run.begin(idle)
    return run


def phases(world: World) -> Run:
    """Collects from all, then commits once per client: Ringleader. Section 5."""
    run, reported, served = everyone(world), set(), set()
    entered: list[Source] = []
    following: list[Source] = []
    for job in run.arrivals():
        client = job.source.client
        if client in served:
            following.append(job.source)
        else:
            reported.add(client)
            entered.append(job.source)
            if len(reported) == world.num_clients:
                run.commit(entered)
                entered = []
                served.add(client)
        if len(served) == world.num_clients:
            entered, following = following, []
            reported = {source.client for source in entered}
            served = set()
        run.begin([client])
    return run


def collect(
    world: World,
    full: Callable[[list[int]], bool],
    late: str = "finish",
    asked: Iterable[int] | None = None,
) -> Run:
    """Jobs of the newest version until `full`, by their counts per client.

    Section 2, where `full` is a number in all, and section 3.
    """
    run, got = Run(world), []
    run.begin(range(world.num_clients) if asked is None else asked)
    for job in run.arrivals():
        idle = [job.source.client]
        if job.source.read_version == run.version:
            got.append(job.source)
        else:
            run.lose(job, "rejected")
        counts = [0] * world.num_clients
        for source in got:
            counts[source.client] += 1
        if full(counts):
            run.commit(got)
            got = []
            idle += run.stop() if late == "stop" else []
        run.begin(idle)
    return run


def harmonic(least: float) -> Callable[[list[int]], bool]:
    """Whether everyone has reported and the harmonic mean of counts is enough."""

    def full(counts: list[int]) -> bool:
        if min(counts) < 1:
            return False
        inverse = sum(Fraction(1, count) for count in counts)
        return Fraction(len(counts)) / inverse >= Fraction(least)

    return full


def first_ones(world: World, count: int, late: str = "finish") -> Run:
    """The first m of a round, one per client: m-synchronous. Section 12.

    Who has reported waits for the commit. Who is late is rejected, and starts at once.
    """
    run = everyone(world)
    got: list[Source] = []
    for job in run.arrivals():
        if job.source.read_version != run.version:
            run.lose(job, "rejected")
            run.begin([job.source.client])
            continue
        got.append(job.source)
        if len(got) == count:
            run.commit(got)
            idle = [source.client for source in got]
            run.begin(idle + (run.stop() if late == "stop" else []))
            got = []
    return run


def trials(world: World, quota: Sequence[int], allotted_s: float) -> Run:
    """So many trials per client at x^k, each at most so long: MindFlayer. Section 7.

    A round without success is a commit.
    """
    run, left, got = Run(world), list(quota), []
    asked = [i for i, number in enumerate(quota) if number]
    run.begin(asked, allotted_s)
    for job in run.arrivals():
        if job.in_time:
            got.append(job.source)
        else:
            run.lose(job, "stopped")
        left[job.source.client] -= 1
        if left[job.source.client]:
            run.begin([job.source.client], allotted_s)
        elif not any(left):
            run.commit(got)
            left, got = list(quota), []
            run.begin(asked, allotted_s)
    return run


def by_start(world: World, count: int) -> Run:
    """B jobs whose computing began in the current batch. Section 12.

    A model that was on its way when the batch began counts, although it is older.
    """
    run, since = everyone(world), 0.0
    got: list[Source] = []
    for job in run.arrivals():
        if job.started_s >= since:
            got.append(job.source)
        else:
            run.lose(job, "rejected")
        if len(got) == count:
            run.commit(got)
            since, got = run.time_s, []
        run.begin([job.source.client])
    return run


def allotment(lower: Sequence[float], seen: Sequence[int], jobs: int) -> list[int]:
    """Returns numbers of jobs with a sum and the least max_i a_i s_i. Section 12, ATA.

    One job after the other goes where it would be over first. Of those alike: the
    client with fewer jobs, then with fewer observations, then of lower number.
    """
    found, clients = [0] * len(lower), range(len(lower))
    for _ in range(jobs):
        found[
            min(clients, key=lambda i: ((found[i] + 1) * lower[i], found[i], seen[i]))
        ] += 1
    return found


def allotted(world: World, jobs: int, spread: float) -> Run:
    """Rounds of jobs, allotted by lower bounds of clients' mean times. Section 12, ATA.

    The bound after k rounds, of s jobs with mean mu: mu - 4 e spread (sqrt(l / s) +
    l / s), l = ln(2 k^2), at least 0; 0 of a client that was never seen. The constants
    are those of the authors' code.
    """
    run, got = Run(world), []
    times: list[list[float]] = [[] for _ in range(world.num_clients)]

    def lower(taken: list[float]) -> float:
        if not taken:
            return 0.0
        part = math.log(2 * run.version**2) / len(taken)
        width = 4 * math.e * spread * (math.sqrt(part) + part)
        return max(sum(taken) / len(taken) - width, 0.0)

    def begin_round() -> list[int]:
        left = allotment([*map(lower, times)], [*map(len, times)], jobs)
        run.begin([i for i, number in enumerate(left) if number])
        return left

    left = begin_round()
    for job in run.arrivals():
        i = job.source.client
        times[i].append(job.computed_in_s)
        got.append(job.source)
        left[i] -= 1
        if left[i]:
            run.begin([i])
        elif not any(left):
            run.commit(got)
            got, left = [], begin_round()
    return run


def buffered(world: World, size: int) -> Run:
    """Every so many arrivals are a commit."""
    run, got = everyone(world), []
    for job in run.arrivals():
        got.append(job.source)
        if len(got) == size:
            run.commit(got)
            got = []
        run.begin([job.source.client])
    return run


def grace(world: World, seconds: float) -> Run:
    """Arrivals within so long of the first are one commit; they wait. Section 10."""
    run = everyone(world)
    got: list[Source] = []
    for job in run.arrivals():
        if not job.timer:
            got.append(job.source)
            if len(got) == 1:
                run.wake(seconds)
            continue
        run.commit(got)
        run.begin([source.client for source in got])
        got = []
    return run


def rounds(world: World) -> Run:
    """All work on one version, whose commit is in order of clients."""
    run = everyone(world)
    got: list[Source] = []
    for job in run.arrivals():
        got.append(job.source)
        if len(got) == world.num_clients:
            run.commit(sorted(got))
            run.begin(range(world.num_clients))
            got = []
    return run


def routed(world: World, tasks: int, route: Callable[[int], int]) -> Run:
    """Routed tasks in queues; each carries the version of its routing. Section 9.

    Tasks 0..m-1 are routed at time 0, task m + k - 1 after the commit that makes
    version k. The new task is queued first, then idle clients with a queue begin.
    """
    run = Run(world)
    queues: list[deque[int]] = [deque() for _ in range(world.num_clients)]

    def serve() -> None:
        for client, queue in enumerate(queues):
            if client not in run.flying and queue:
                run.begin([client], version=queue.popleft())

    for task in range(tasks):
        queues[route(task)].append(0)
    serve()
    for job in run.arrivals():
        run.commit([job.source])
        queues[route(tasks + run.version - 1)].append(run.version)
        serve()
    return run
