"""Cancel, discard or aggregate? A study of what m-synchronous SGD and ASGD differ in.

    export OMP_NUM_THREADS=1
    python -m evidence.studies.cancel run [--processes 2] [NAME ...]  # to runs/cancel
    python -m evidence.studies.cancel take  # from there to results/cancel
    python -m evidence.studies.cancel list  # names of the worlds

and `python -m evidence.generate` for the page (evidence/pages/cancel.md). A world is a
file, written whole; worlds that are there already are not played again. By a pilot: 2.5
minutes of a core for a world of 16 clients, 5 for one of 64, seconds where times are
constant. The names `dependent` and `unlike` stand for the worlds whose job times depend
on each other, and for the one whose clients' data differ.

One family of methods (`protocol: {kind: collect}`): a commit is the mean of m
contributions (`count`), none of which is R commits stale or more (`staleness_bound:
R - 1`); a job that would be is discarded when it arrives (`late: reject`) or cancelled
at once (`late: stop`), and a client whose job was cancelled pays `cost` mean jobs of
its own before it reads again (`clients.restart`). The event loop here is that protocol
without messages and faults, a hundred times as fast; tests/evidence/test_cancel.py
holds it against the simulator, event by event.

The problem is the data set `quadratic` of curvatures from 1 to 0.1, alike for all
clients; a run ends when the *expected* squared norm of the gradient is `EPSILON` times
that of the start. Given a timeline, mean and covariance of all versions that are still
read follow exactly, of all steps and noises together: a coordinate depends on the
product of step and curvature alone, and both are powers of one number. Where data are
unlike, the optima of one half of the clients are as far above the common one as those
of the other half are below; who is above is drawn for each coordinate, and expectations
are over these draws as well.

Every method has the same steps, `STEPS`. Its step is chosen by `TUNE` seeds, and so
are R and m where the best are compared; `JUDGE` other seeds say what that takes.
"""

import argparse
import heapq
import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from statistics import NormalDist
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.lib.stride_tricks import sliding_window_view
from scipy.signal import lfilter
from scipy.special import log_ndtr

if TYPE_CHECKING:
    from .stops import StopsWorld

RUNS = Path("runs/cancel")
RESULTS = Path(__file__).resolve().parents[1] / "results/cancel/worlds.parquet"
GRID = 12
"""Steps, and curvatures, of a factor of ten."""
POWERS = np.arange(8, -33, -1)
STEPS = 10.0 ** (POWERS / GRID)
"""4.6 to 0.0022. Fresh gradients diverge from 2 on; some delays allow longer steps."""
CURVATURES = {
    condition: 10.0 ** (-np.arange(decades * GRID + 1) / GRID)
    for decades, condition in ((1, 10), (2, 100))
}
"""Of each condition number."""
PRODUCTS = 10.0 ** (np.arange(POWERS[0], POWERS[-1] - 2 * GRID - 1, -1) / GRID)
EPSILON = 0.001
NOISES = (0.25, 4.0, 64.0)
"""Sigma squared over epsilon."""
CLIENTS = (16, 64)
TAILS = ("constant", "log-normal 0.5", "exponential", "Lomax 1.5")
DEPENDENT = ("log-normal 0.5 memory", "exponential memory", "log-normal 0.5 common")
"""Of the same laws of one job: with `MEMORY` from job to job of a client, or half of
the variance of its logarithm common to all, with `MEMORY` from second to second."""
MEMORY = 0.9
"""Correlation of successive normal scores."""
HALF = 0.5 / math.sqrt(2)
"""Standard deviation of the logarithm of either half of `log-normal 0.5 common`."""
SPREADS = (0.0, 1.0, 2.0)
"""Standard deviation of the logarithm of the clients' mean seconds."""
COSTS = (0.0, 0.03, 0.1, 0.3, 1.0)
"""Seconds from a cancelled job to the next read, in mean jobs of the client."""
UNLIKE = (0.0, 1.0, 4.0, 8.0)
"""Mean squared distance of clients' gradients from their mean, over epsilon."""
TUNE, JUDGE = range(10), range(10, 20)
LOOK = 32
"""Commits after which one looks whether the run is over."""
PATIENCE = 2
"""A run ends after this multiple of the commits that its fastest step needs."""
MOST = 20_000
"""Commits of a run at most; what needs more has no time."""
SPARE = 8
"""Versions between two looks at which are still read."""


class Method(NamedTuple):
    """A method of the family.

    Attributes:
        bound: R; a contribution R commits stale or more is not used. None: all are.
        batch: m, contributions of a commit.
        cancels: Whether jobs that will be too stale are cancelled.
        waits: Whether clients that have contributed wait for the commit.
        cost: Seconds until a cancelled job's client reads again, in its mean jobs.
        fate: Time of the job after a cancelled one: `redrawn`, `kept` or `resumed`.
    """

    bound: int | None
    batch: int
    cancels: bool
    waits: bool = False
    cost: float = 0.0
    fate: str = "redrawn"


class Case(NamedTuple):
    """What learning is, in a world.

    Attributes:
        noise: Sigma squared over epsilon.
        unlike: Mean squared distance of clients' gradients from their mean, likewise.
        condition: Condition number of the quadratic.
    """

    noise: float
    unlike: float = 0.0
    condition: int = 10


class CancelWorld(NamedTuple):
    """Clients, how long their jobs take, and whether their data differ."""

    clients: int
    tail: str
    spread: float
    unlike: bool = False

    @property
    def name(self) -> str:
        """Name of its file."""
        name = f"{self.clients}-{self.tail.replace(' ', '-')}-{self.spread:g}"
        return f"{name}-unlike" if self.unlike else name

    @property
    def cases(self) -> list[Case]:
        """Noises, and how unlike data are."""
        if self.unlike:
            return [Case(NOISES[1], each) for each in UNLIKE]
        return [Case(noise) for noise in NOISES]

    @property
    def means(self) -> np.ndarray:
        """Mean seconds of each client: quantiles, with a harmonic mean of 1."""
        return means_of(self.clients, self.spread)

    @property
    def stays(self) -> bool:
        """Whether runs are over when they stay at the target, not at a touch."""
        return False

    @property
    def seeds(self) -> tuple[Sequence[int], Sequence[int]]:
        """Seeds that tune, and seeds that judge; constant times have no chance."""
        return ((0,), (0,)) if self.tail == "constant" else (TUNE, JUDGE)

    def times(self, seed: int) -> "JobTimes":
        """Returns the times of its jobs."""
        return JobTimes(self, seed)


def means_of(clients: int, spread: float) -> np.ndarray:
    """Returns the mean seconds of clients: log-normal, with a harmonic mean of 1."""
    at = (np.arange(clients) + 0.5) / clients
    found = np.exp(spread * np.array([NormalDist().inv_cdf(p) for p in at]))
    return found * (1 / found).mean()


def worlds() -> dict[str, list[CancelWorld]]:
    """Returns all worlds, by kind."""
    alone = itertools.product(CLIENTS, TAILS, SPREADS)
    return {
        "independent": [CancelWorld(*each) for each in alone],
        "dependent": [CancelWorld(n, tail, 1.0) for n in CLIENTS for tail in DEPENDENT],
        "unlike": [CancelWorld(CLIENTS[0], "exponential", 1.0, unlike=True)],
    }


def methods(n: int) -> list[Method]:
    """Returns the methods of n clients; of those with one R and m the unbounded first.

    m-synchronous SGD is R = 1 with clients that wait.
    """
    bounds = [2**power for power in range(n.bit_length() + 2)]  # 1 to 4 n
    found = []
    for m in bounds[:-2]:
        found.append(Method(None, m, cancels=False))
        for bound in reversed(bounds):
            waits = (False, True) if bound == 1 and m > 1 else (False,)
            for wait in waits:
                found.append(Method(bound, m, cancels=False, waits=wait))
                found += [Method(bound, m, True, wait, cost) for cost in COSTS]
    return found


class JobTimes:
    """Seconds of jobs, the same whatever the method: of client and number of the job.

    Where clients have a factor in common it is of the second in which a job begins. In
    slow seconds fewer jobs begin; a larger median makes up for that, exactly where
    memory is long, so that a job has a mean of 1 as elsewhere.

    Args:
        world: CancelWorld.
        seed: Seed.

    Attributes:
        of: Seconds of each client's jobs, but for the common factor.
        common: That factor in each second so far; None where there is none.
    """

    BLOCK = 256

    def __init__(self, world: CancelWorld, seed: int) -> None:
        self._tail, self._means = world.tail, world.means.tolist()
        children = np.random.SeedSequence([37, seed]).spawn(world.clients + 1)
        self._draws = [np.random.default_rng(child) for child in children]
        self._last: dict[int, float] = {}
        self.of: list[list[float]] = [[] for _ in range(world.clients)]
        self.common: list[float] | None = [] if "common" in world.tail else None

    def seconds(self, client: int, job: int, now: float) -> float:
        """Returns the seconds of a job that begins at a moment.

        Args:
            client: Client.
            job: Number of its job.
            now: Virtual seconds.
        """
        if job == len(self.of[client]):
            self.more(client)
        common = self.common
        if common is None:
            return self.of[client][job]
        while int(now) >= len(common):
            common += self.shared().tolist()
        return self.of[client][job] * common[int(now)]

    def shared(self) -> np.ndarray:
        """Returns the common factor in the next seconds."""
        return np.exp(HALF * self._scores(-1) + HALF**2 / 2)

    def ends(self, now: float, work: float) -> float:
        """Returns when a job ends that begins now and takes `work` seconds."""
        return now + work

    def worked(self, began: float, now: float) -> float:
        """Returns how much of a job is done, in its seconds."""
        return now - began

    def more(self, client: int) -> None:
        """Draws further jobs of a client."""
        draw, size, mean = self._draws[client], self.BLOCK, self._means[client]
        if self._tail == "constant":
            found = np.ones(size)
        elif self._tail == "exponential":
            found = draw.exponential(size=size)
        elif self._tail == "Lomax 1.5":
            found = draw.pareto(1.5, size) / 2  # of mean 1 / (1.5 - 1)
        elif self._tail == "log-normal 0.5":
            found = draw.lognormal(-0.125, 0.5, size)
        elif self._tail == "log-normal 0.5 memory":
            found = np.exp(0.5 * self._scores(client) - 0.125)
        elif self._tail == "exponential memory":
            found = -log_ndtr(-self._scores(client))
        else:
            found = draw.lognormal(-(HALF**2) / 2, HALF, size)
        self.of[client] += (found * mean).tolist()

    def _scores(self, owner: int) -> np.ndarray:
        """Returns the next normal scores of a client, or of the common factor: -1."""
        draw = self._draws[owner]
        if owner not in self._last:
            self._last[owner] = draw.standard_normal()
        new, rho = draw.standard_normal(self.BLOCK), self.correlation
        found = remembered(new, self._last[owner], rho)
        self._last[owner] = found[-1]
        return found

    @property
    def correlation(self) -> float:
        """Correlation of successive normal scores."""
        return MEMORY


def remembered(new: np.ndarray, last: float, rho: float = MEMORY) -> np.ndarray:
    """Returns successive normal scores, each with a correlation to the one before.

    Args:
        new: Independent normal numbers, one for each.
        last: Score before the first.
        rho: The correlation.
    """
    return lfilter([math.sqrt(1 - rho**2)], [1, -rho], new, zi=[rho * last])[0]


class PlayedCommit(NamedTuple):
    """A commit, as it happens.

    Attributes:
        time: Virtual seconds.
        reads: Versions at which its contributions were taken.
        clients: Whose they are.
        held: Versions that clients have read last, a list that the next commits change.
    """

    time: float
    reads: list[int]
    clients: list[int]
    held: list[int]


def play(
    times: JobTimes, method: Method, means: Sequence[float]
) -> Iterator[PlayedCommit]:
    """Yields the commits of a method for ever.

    What begins at one instant begins in the order of the clients, as in `collect`.

    Args:
        times: Seconds of jobs.
        method: Method.
        means: Mean seconds of the clients, by which they pay for cancelled jobs.
    """
    n, m, seconds, ends = len(means), method.batch, times.seconds, times.ends
    bound = math.inf if method.bound is None else method.bound - 1
    pause = [method.cost * mean for mean in means]
    version, order = 0, n
    done, serial, held = [0] * n, [0] * n, [0] * n
    resting, took, began = [False] * n, [0.0] * n, [0.0] * n
    given: dict[int, float] = {}
    gathered: list[int] = []
    whose: list[int] = []
    waiting: list[int] = []
    heap: list[tuple[float, int, int, int]] = []
    push, pop = heapq.heappush, heapq.heappop

    def begin(client: int, now: float) -> None:
        nonlocal order
        held[client] = version
        if client in given:
            work = given.pop(client)
        else:
            work = seconds(client, done[client], now)
            done[client] += 1
        took[client], began[client] = work, now
        order += 1
        push(heap, (ends(now, work), order, client, serial[client]))

    for client in range(n):
        begin(client, 0.0)
    while True:
        now, _, client, number = pop(heap)
        if serial[client] != number:
            continue  # it was cancelled
        if resting[client]:
            resting[client] = False
            begin(client, now)
            continue
        if version - held[client] > bound:
            begin(client, now)
            continue
        gathered.append(held[client])
        whose.append(client)
        if len(gathered) < m:
            if method.waits:
                waiting.append(client)
            else:
                begin(client, now)
            continue
        version += 1
        ready = {client, *waiting}
        if method.cancels:
            least = version - bound
            late = [c for c in range(n) if held[c] < least and not resting[c]]
        else:
            late = []
        for each in sorted(ready.union(late)) if late or waiting else (client,):
            if each in ready:
                begin(each, now)
                continue
            serial[each] += 1
            if method.fate == "kept":
                given[each] = took[each]
            elif method.fate == "resumed":
                given[each] = took[each] - times.worked(began[each], now)
            if not pause[each]:
                begin(each, now)
                continue
            resting[each], held[each] = True, version
            order += 1
            push(heap, (now + pause[each], order, each, serial[each]))
        played = PlayedCommit(now, gathered, whose, held)
        gathered, whose, waiting = [], [], []
        yield played


# Moments


class Squares(NamedTuple):
    """E |gradient|^2 over that of the start, after each of some commits.

    Attributes:
        mean: Part of the mean of the model, by commit and step.
        noise: Part of its variance, for sigma^2 / epsilon = 1.
        unlike: Part of its shift by unlike data, for a squared distance of epsilon.
    """

    mean: np.ndarray
    noise: np.ndarray
    unlike: np.ndarray | float = 0.0

    def reached(self, case: Case) -> np.ndarray:
        """Returns which of the commits and steps are at the target."""
        found = self.mean + case.noise * self.noise + case.unlike * self.unlike
        return found <= EPSILON


def squares(
    means: np.ndarray,
    variances: np.ndarray,
    shifts: np.ndarray | None = None,
    condition: int = 10,
) -> Squares:
    """Returns the squared gradient, from the response of every product.

    Args:
        means: Mean of a coordinate that began at 1, by commit and product.
        variances: Its variance for steps of 1 and unit noise of each contribution.
        shifts: Mean square of its shift where clients' optima are 1 and -1.
        condition: Condition number.
    """
    curvatures = CURVATURES[condition]
    squared = curvatures**2
    begins = squared / squared.sum()  # the start is the same distance in all
    noises = squared * curvatures / curvatures.sum() * EPSILON

    def by_step(of: np.ndarray) -> np.ndarray:
        return sliding_window_view(of, curvatures.size, axis=1)[:, : STEPS.size]

    of_noise = STEPS**2 * (by_step(variances) @ noises)
    found = Squares(by_step(means**2) @ begins, of_noise)
    if shifts is None:
        return found
    of_shift = by_step(shifts)
    return found._replace(unlike=EPSILON * (of_shift @ begins))


class ExactMoments:
    """Mean and covariance of the versions that are still read, for every product.

    x' = x - product * (mean of the x that were read) - step * (mean of the noises), and
    every noise is used once: it depends on no version before.

    Args:
        num_clients: Clients, each of which has read one version.
        bound: R, by which older versions are of no use; None where all are.
    """

    def __init__(self, num_clients: int, bound: int | None) -> None:
        self._bound = math.inf if bound is None else bound
        size = int(min(num_clients, self._bound)) + SPARE
        self._place = {0: 0}
        self._free = list(range(size - 1, 0, -1))
        self._version = 0
        self._mean = np.ones((size, PRODUCTS.size))
        self._covariance = np.zeros((size, size, PRODUCTS.size))

    def apply(self, commit: PlayedCommit) -> tuple[np.ndarray, np.ndarray]:
        """Returns mean and variance of the version that a commit makes."""
        mean, covariance, m = self._mean, self._covariance, len(commit.reads)
        now = self._place[self._version]
        if m == 1:
            at = self._place[commit.reads[0]]
            of, with_all = mean[at], covariance[at]
            own = with_all[at]
        else:
            counts: dict[int, float] = {}
            for read in commit.reads:
                place = self._place[read]
                counts[place] = counts.get(place, 0.0) + 1 / m
            at, shares = list(counts), np.array(list(counts.values()))
            of = shares @ mean[at]
            with_all = np.tensordot(shares, covariance[at], 1)
            own = shares @ with_all[at]
        new_mean = mean[now] - PRODUCTS * of
        row = covariance[now] - PRODUCTS * with_all
        variance = row[now] - PRODUCTS * (with_all[now] - PRODUCTS * own) + 1 / m
        self._version += 1
        if not self._free:
            self._forget(commit.held)
        place = self._free.pop()
        self._place[self._version] = place
        mean[place] = new_mean
        covariance[place] = row
        covariance[:, place] = row
        covariance[place, place] = variance
        return new_mean, variance

    def _forget(self, held: list[int]) -> None:
        """Frees the places of versions that no job under way can contribute with."""
        kept = {read for read in held if self._version - read < self._bound}
        for version in [v for v in self._place if v not in kept]:
            self._free.append(self._place.pop(version))


class Fresh:
    """The same where every contribution was taken at the present model."""

    def __init__(self, batch: int) -> None:
        self._batch, self._commits = batch, 0
        self._mean, self._variance = np.ones_like(PRODUCTS), np.zeros_like(PRODUCTS)

    def apply(self, commit: PlayedCommit) -> tuple[np.ndarray, np.ndarray]:
        """Returns mean and variance of the version that a commit makes."""
        keep = 1 - PRODUCTS
        self._mean = keep * self._mean
        self._variance = keep**2 * self._variance + 1 / self._batch
        return self._mean, self._variance


class Shift:
    """Where unlike data take the mean of a coordinate, whose common optimum is 0.

    Args:
        num_clients: Clients; one half has the optimum 1, the other -1.
    """

    def __init__(self, num_clients: int) -> None:
        self._version = 0
        self._of = {0: np.zeros((num_clients, PRODUCTS.size))}
        """By version, what the optimum of each client has added."""

    def apply(self, commit: PlayedCommit) -> np.ndarray:
        """Returns the mean square of the version that a commit makes.

        Expected over which half of the clients has which optimum, all halves alike.
        """
        of, m = self._of, len(commit.reads)
        after = of[self._version] - PRODUCTS / m * sum(of[v] for v in commit.reads)
        for client in commit.clients:
            after[client] += PRODUCTS / m
        self._version += 1
        self._of = {v: of[v] for v in {*commit.held} & {*of}} | {self._version: after}
        n = len(after)
        return (n * (after**2).sum(axis=0) - after.sum(axis=0) ** 2) / (n - 1)


class Reached(NamedTuple):
    """What a run has come to.

    Attributes:
        seconds: To the target, by case and step; infinite where it was not reached.
        oldest: Largest staleness that any job under way had.
    """

    seconds: np.ndarray
    oldest: int


def passed(seconds: np.ndarray, there: np.ndarray, when: np.ndarray) -> np.ndarray:
    """Returns when each step was first at the target, after some more commits.

    Args:
        seconds: The same before them, infinite where it was not there.
        there: Whether it is at the target, by commit and step.
        when: Seconds of the commits.
    """
    time = np.where(there.any(axis=0), when[there.argmax(axis=0)], np.inf)
    return np.minimum(seconds, time)


def staying(seconds: np.ndarray, there: np.ndarray, when: np.ndarray) -> np.ndarray:
    """Returns since when each step is at the target and does not leave it again."""
    after = np.append(when, np.inf)
    last_above = there.shape[0] - 1 - (~there[::-1]).argmax(axis=0)
    since = np.where(np.isinf(seconds), when[0], seconds)
    return np.where(there.all(axis=0), since, after[last_above + 1])


def run(world: "CancelWorld | StopsWorld", times: JobTimes, method: Method) -> Reached:
    """Returns the seconds of a method to the target, at every step and case."""
    means, cases = world.means.tolist(), world.cases
    fresh = method.bound == 1
    moments = Fresh(method.batch) if fresh else ExactMoments(len(means), method.bound)
    shift = Shift(len(means)) if world.unlike else None
    seconds = np.full((len(cases), STEPS.size), np.inf)
    first: list[float] = [math.inf] * len(cases)
    when, mean, variance, shifts = [], [], [], []
    version = oldest = 0
    with np.errstate(all="ignore"):  # steps that are too large
        for commit in play(times, method, means):
            version += 1
            oldest = max(oldest, version - min(commit.held))
            when.append(commit.time)
            for values, value in zip(
                (mean, variance), moments.apply(commit), strict=True
            ):
                values.append(value)
            if shift is not None:
                shifts.append(shift.apply(commit))
            if version % LOOK:
                continue
            moved = np.array(shifts) if shifts else None
            found = {
                each: squares(np.array(mean), np.array(variance), moved, each)
                for each in {case.condition for case in cases}
            }
            for at, case in enumerate(cases):
                there = found[case.condition].reached(case)
                arrived = staying if world.stays else passed
                seconds[at] = arrived(seconds[at], there, np.array(when))
                if there.any() and first[at] == math.inf:
                    first[at] = version
            when, mean, variance, shifts = [], [], [], []
            if version >= min(MOST, PATIENCE * max(first)):
                return Reached(seconds, oldest)
    raise AssertionError("commits never end")


# The study


def measure(
    world: "CancelWorld | StopsWorld", seed: int, of: Sequence[Method]
) -> dict[Method, np.ndarray]:
    """Returns the seconds of methods, by case and step.

    A bound that no job under way ever met has changed nothing: what is known without
    one holds with it.

    Args:
        world: World.
        seed: Seed.
        of: Methods, of those of one m the unbounded first.
    """
    times = world.times(seed)
    found: dict[Method, np.ndarray] = {}
    free = Reached(np.empty(0), 0)
    for method in of:
        if method.bound is None:
            free = run(world, times, method)
            found[method] = free.seconds
        elif method.bound > free.oldest and not method.waits:
            found[method] = free.seconds
        else:
            found[method] = run(world, times, method).seconds
    return found


def table(world: CancelWorld) -> pd.DataFrame:
    """Returns a row for each method and case: its step, and the seconds that it takes.

    Raises:
        ValueError: The best step of a method is the first or the last of all.
    """
    tune, judge = world.seeds
    of = methods(world.clients)
    found = {seed: measure(world, seed, of) for seed in sorted({*tune, *judge})}
    rows = []
    for method in of:
        tuned = np.log([found[seed][method] for seed in tune]).mean(axis=0)
        judged = np.array([found[seed][method] for seed in judge])
        for at, (noise, unlike, _) in enumerate(world.cases):
            best = int(tuned[at].argmin())
            if not math.isfinite(tuned[at, best]):
                best = -1
            elif best in (0, STEPS.size - 1):
                raise ValueError(
                    f"{world.name}: steps must reach beyond the best of every method, "
                    f"but {STEPS[best]:g} is that of {method} at noise {noise:g}; "
                    f"extend POWERS"
                )
            rows.append(
                {**world._asdict(), **method._asdict(), "noise": noise}
                | {"unlike": unlike}
                | {"step": STEPS[best] if best >= 0 else math.inf}
                | {"tuned": math.exp(tuned[at, best])}
                | {f"s{s}": judged[i, at, best] for i, s in enumerate(judge)}
            )
    return pd.DataFrame(rows)


def play_world(world: CancelWorld) -> str:
    """Writes the file of a world, whole or not at all; returns its name, or why not."""
    return written(RUNS / f"{world.name}.csv", world.name, partial(table, world))


def written(path: Path, name: str, make: Callable[[], pd.DataFrame]) -> str:
    """Writes a table, whole or not at all; returns a name, or why there is none."""
    part = path.with_suffix(".part")
    try:
        found = make()
    except ValueError as error:  # the other worlds are played all the same
        return f"{name}: {error}"
    found.to_csv(part, index=False, float_format="%.5g")
    part.replace(path)
    return name


def take() -> None:
    """Puts the worlds that were played into the table of results, one below another."""
    names = (path.stem for path in RUNS.glob("*.csv"))
    played = [pd.read_csv(RUNS / f"{x}.csv").assign(world=x) for x in names]
    if RESULTS.exists():
        kept = pd.read_parquet(RESULTS)
        again = {frame["world"].iloc[0] for frame in played}
        played.append(kept[~kept["world"].isin(again)])
    found = pd.concat(played).sort_values("world", kind="stable")
    found.to_parquet(RESULTS, index=False, compression="zstd")


def main() -> None:
    kinds = {kind: [world.name for world in found] for kind, found in worlds().items()}
    known = {world.name: world for kind in worlds().values() for world in kind}
    command("cancel", known, kinds, RUNS, play_world, take)


def command(
    study: str,
    known: dict[str, Any],
    kinds: dict[str, list[str]],
    runs: Path,
    play_one: Callable[[Any], str],
    take_in: Callable[[], None],
) -> None:
    """Runs the command line of a study of worlds.

    Args:
        study: Name of its module.
        known: Worlds by name.
        kinds: Names of worlds, by a name for them all.
        runs: Folder of the files of worlds.
        play_one: Writes the file of a world, and returns what to say of it.
        take_in: Puts the files into the table of results.
    """
    parser = argparse.ArgumentParser(prog=f"python -m evidence.studies.{study}")
    parser.add_argument("what", choices=("run", "take", "list"))
    parser.add_argument("names", nargs="*", help="worlds, or a kind; by default all")
    parser.add_argument("--processes", type=int, default=1)
    given = parser.parse_intermixed_args()
    if given.what == "list":
        print("\n".join(known))
        return
    if given.what == "take":
        take_in()
        return
    names = [x for name in given.names or known for x in kinds.get(name, [name])]
    if unknown := {*names} - {*known}:
        also = f", or {', '.join(kinds)}" if kinds else ""
        parser.error(
            f"{', '.join(sorted(unknown))}: must be worlds that `list` names{also}"
        )
    runs.mkdir(parents=True, exist_ok=True)
    left = [known[x] for x in names if not (runs / f"{x}.csv").exists()]
    with ProcessPoolExecutor(given.processes, get_context("spawn")) as pool:
        for said in pool.map(play_one, left):
            print(said, flush=True)


if __name__ == "__main__":
    main()
