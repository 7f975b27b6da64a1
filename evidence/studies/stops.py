"""What happens to a stopped job? The best asynchronous against the best synchronous.

    export OMP_NUM_THREADS=1
    python -m evidence.studies.stops run [--processes 2] [NAME ...]  # to runs/stops
    python -m evidence.studies.stops take  # from there to results/stops
    python -m evidence.studies.stops list  # names of the worlds

The event loop, the moments and the family of methods are those of `cancel`. Here the
job after a cancelled one has a new draw of its time, the time of the cancelled one, or
what was left of it (`FATES`: `clients.stopped`), and begins after a cost
(`clients.restart`). Both sides have all of the family: R, m, whether jobs are cancelled
and whether clients wait. A method is *synchronous* if R = 1, so that all contributions
are fresh, else *asynchronous*. Steps, R and m are chosen together, by `TUNE` seeds;
what is chosen is played by `JUDGE` others.

A run is over when the expected squared gradient norm is at the target and stays there
for at least as many commits again as the fastest step has needed. The first touch would
favour stale methods, whose iterates oscillate: they dip below it and come back.

Jobs take a second on average, those of unlike clients more or less (a spread of 1). By
`times` they are independent, or log-normal with an s of 1 and

- `memory in jobs`: each score has a correlation of 0.9 with the client's last job;
- `memory in time`: a client's score is a process in time with that correlation a mean
  job, so that what begins soon after a cancelled job is as slow;
- `common when they begin`: half of the variance is common to jobs that begin within a
  second, and they keep it;
- `common under way`: half of it is the speed of all clients, second by second.

A world is a file, written whole; worlds that are there already are not played again.
"""

import math
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import product
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
from typing_extensions import override

from .cancel import (
    COSTS,
    MEMORY,
    NOISES,
    STEPS,
    Case,
    JobTimes,
    Method,
    command,
    means_of,
    measure,
    written,
)

RUNS = Path("runs/stops")
RESULTS = Path(__file__).resolve().parents[1] / "results/stops/worlds.csv"
CLIENTS = (8, 32, 128)
FATES = ("redrawn", "kept", "resumed")
INDEPENDENT = ("exponential", "Lomax 1.5", "log-normal 1")
DEPENDENT = (
    "memory in jobs",
    "memory in time",
    "common when they begin",
    "common under way",
)
CASES = [Case(noise, 0.0, condition) for condition in (10, 100) for noise in NOISES]
SHARE = math.sqrt(0.5)
"""Standard deviation of the logarithm of each half of a variance of 1."""
TUNE, JUDGE = range(10), range(10, 30)
SIDES = ("asynchronous", "synchronous")


class StopsWorld(NamedTuple):
    """Clients, and how long their jobs take."""

    clients: int
    law: str

    @property
    def name(self) -> str:
        """Name of its file."""
        return f"{self.clients}-{self.law.replace(' ', '-')}"

    @property
    def cases(self) -> list[Case]:
        """Noises and condition numbers."""
        return CASES

    @property
    def means(self) -> np.ndarray:
        """Mean seconds of each client."""
        return means_of(self.clients, 1.0)

    @property
    def stays(self) -> bool:
        """Whether runs are over when they stay at the target, not at a touch."""
        return True

    @property
    def unlike(self) -> bool:
        """Whether clients' data differ."""
        return False

    def times(self, seed: int) -> JobTimes:
        """Returns the times of its jobs."""
        kinds = {DEPENDENT[1]: TimesInTime, DEPENDENT[3]: SharedSpeed}
        return kinds.get(self.law, StopsTimes)(self, seed)


def worlds() -> list[StopsWorld]:
    """Returns all worlds, the cheap ones first."""
    return [StopsWorld(*each) for each in product(CLIENTS, (*INDEPENDENT, *DEPENDENT))]


def methods(n: int) -> Iterator[Method]:
    """Yields the methods of n clients; of those with one m the unbounded first."""
    bounds = [2**power for power in range(n.bit_length() + 1)]  # 1 to 2 n
    for m in (*bounds, 4 * n):
        yield Method(None, m, cancels=False)
        for bound in reversed(bounds):
            waits = (False, True) if bound == 1 and 1 < m <= n else (False,)
            for wait in waits:
                yield Method(bound, m, cancels=False, waits=wait)
                for cost, fate in product(COSTS, FATES):
                    yield Method(bound, m, True, wait, cost, fate)


class StopsTimes(JobTimes):
    """Seconds of jobs, the same whatever the method: of client and number of the job.

    Args:
        world: World.
        seed: Seed.
    """

    def __init__(self, world: StopsWorld, seed: int) -> None:
        super().__init__(_Unlike(world), seed)
        self._law = world.law
        self.common = [] if world.law == DEPENDENT[2] else None

    @override
    def more(self, client: int) -> None:
        draw, size, mean = self._draws[client], self.BLOCK, self._means[client]
        if self._law in INDEPENDENT[:2]:
            super().more(client)
            return
        if self._law == DEPENDENT[0]:
            found = np.exp(self._scores(client) - 0.5)
        elif self._law in DEPENDENT[2:]:
            found = draw.lognormal(-(SHARE**2) / 2, SHARE, size)
        else:
            found = draw.lognormal(-0.5, 1.0, size)
        self.of[client] += (found * mean).tolist()

    @override
    def shared(self) -> np.ndarray:
        return np.exp(SHARE * self._scores(-1) + SHARE**2 / 2)


class TimesInTime(StopsTimes):
    """Seconds of jobs by a client's own state at the moment at which they begin.

    Fewer jobs begin in slow times; a larger median makes up for that.
    """

    TICK = 0.25
    """Time for which a state lasts, in mean jobs of the client."""

    def __init__(self, world: StopsWorld, seed: int) -> None:
        super().__init__(world, seed)
        self._states: list[list[float]] = [[] for _ in range(world.clients)]

    @override
    def seconds(self, client: int, job: int, now: float) -> float:
        states, mean = self._states[client], self._means[client]
        at = int(now / (self.TICK * mean))
        while at >= len(states):
            states += np.exp(self._scores(client) + 0.5).tolist()
        return states[at] * mean

    @property
    @override
    def correlation(self) -> float:
        return MEMORY**self.TICK


class SharedSpeed(StopsTimes):
    """Jobs that all go at the speed of the second that it is."""

    def __init__(self, world: StopsWorld, seed: int) -> None:
        super().__init__(world, seed)
        self._speed: list[float] = []
        self._done = [0.0]
        """Work that a client has done who works all the time, by second."""

    @override
    def ends(self, now: float, work: float) -> float:
        goal = self._by(now) + work
        while self._done[-1] <= goal:
            self._further()
        at = bisect_right(self._done, goal) - 1
        return at + (goal - self._done[at]) / self._speed[at]

    @override
    def worked(self, began: float, now: float) -> float:
        return self._by(now) - self._by(began)

    def _by(self, now: float) -> float:
        at = int(now)
        while at >= len(self._speed):
            self._further()
        return self._done[at] + (now - at) * self._speed[at]

    def _further(self) -> None:
        speed = np.exp(SHARE * self._scores(-1) - SHARE**2 / 2)
        self._speed += speed.tolist()
        self._done += (self._done[-1] + np.cumsum(speed)).tolist()


class _Unlike(NamedTuple):
    """What `JobTimes` reads of a world."""

    world: StopsWorld

    @property
    def tail(self) -> str:
        return self.world.law

    @property
    def clients(self) -> int:
        return self.world.clients

    @property
    def means(self) -> np.ndarray:
        return self.world.means


def side_of(method: Method) -> str:
    """Returns whether a method is synchronous: all of its contributions are fresh."""
    return SIDES[method.bound == 1]


def chosen(
    tuned: dict[Method, np.ndarray], side: str, cost: float, fate: str, case: int
) -> tuple[Method, int]:
    """Returns the best method of a side, and its step.

    Raises:
        ValueError: The step is the first or the last of all.
    """
    allowed = {
        method: found[case]
        for method, found in tuned.items()
        if side_of(method) == side
        and (not method.cancels or (method.cost, method.fate) == (cost, fate))
    }
    best = min(allowed, key=lambda method: float(allowed[method].min()))
    step = int(allowed[best].argmin())
    if step in (0, STEPS.size - 1):
        raise ValueError(f"the best step of {best} is a border: {STEPS[step]:g}")
    return best, step


def table(
    world: StopsWorld, tune: Sequence[int] = TUNE, judge: Sequence[int] = JUDGE
) -> pd.DataFrame:
    """Returns a row for each side, cost, fate and case, with the seconds it takes.

    Raises:
        ValueError: As `chosen` has it.
    """
    every = list(methods(world.clients))
    logs = [measure(world, seed, every) for seed in tune]
    tuned = {
        method: np.log([found[method] for found in logs]).mean(axis=0)
        for method in every
    }
    cells = list(product(SIDES, COSTS, FATES, range(len(CASES))))
    best = {cell: chosen(tuned, *cell) for cell in cells}
    kept = {method for method, _ in best.values()}
    unbounded = {Method(None, method.batch, cancels=False) for method in kept}
    again = [method for method in every if method in kept | unbounded]
    judged = {seed: measure(world, seed, again) for seed in judge}
    rows = []
    for (side, cost, fate, case), (method, step) in best.items():
        own = method._asdict()
        rows.append(
            {**world._asdict(), "side": side, "cost": cost, "fate": fate}
            | {key: CASES[case]._asdict()[key] for key in ("noise", "condition")}
            | {key: own[key] for key in ("bound", "batch", "cancels", "waits")}
            | {"step": STEPS[step]}
            | {"tuned": math.exp(tuned[method][case, step])}
            | {f"s{seed}": judged[seed][method][case, step] for seed in judge}
        )
    return pd.DataFrame(rows)


def play_world(world: StopsWorld) -> str:
    """Writes the file of a world, whole or not at all; returns its name, or why not."""
    return written(RUNS / f"{world.name}.csv", world.name, partial(table, world))


def take() -> None:
    """Puts the worlds that were played into the table of results, in their order."""
    frames = [pd.read_csv(path) for path in RUNS.glob("*.csv")]
    if RESULTS.exists():
        kept = pd.read_csv(RESULTS)
        again = {tuple(frame.loc[0, ["clients", "law"]]) for frame in frames}
        old = [tuple(row) in again for row in kept[["clients", "law"]].to_numpy()]
        frames.append(kept[~np.array(old, bool)])
    found = pd.concat(frames).sort_values(["clients", "law"], kind="stable")
    RESULTS.parent.mkdir(parents=True, exist_ok=True)
    found.to_csv(RESULTS, index=False)


def main() -> None:
    known = {world.name: world for world in worlds()}
    command("stops", known, {}, RUNS, play_world, take)


if __name__ == "__main__":
    main()
