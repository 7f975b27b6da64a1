"""Cells of the study of dependent delays (dependent-delays.md) against own loops.

The loops below share no code with the simulator but for the digits: delays, protocols
and SGD are written again in NumPy. Draws differ, so what is compared are means over
replicates, within 4 standard errors of their difference (a chance of 6e-5 each).
"""

import heapq
import itertools
import math
from collections.abc import Callable, Iterator

import numpy as np
import pytest
import scipy.stats
from sklearn.datasets import load_digits

from evidence.studies.dependent_delays import (
    BELOW,
    EVERY_S,
    DependentWorld,
    protocols,
    reached,
    scenario,
)
from stalesim.analysis.theory.rounds import expected_maximum
from stalesim.simulator import simulate

N, REPLICATES = 4, 10
TARGET = 0.4
Delay = Callable[[int, float], float]


def delays(cell: DependentWorld, rng: np.random.Generator) -> Delay:
    """Returns seconds of a client's next job, by when it begins."""
    own, common = (cell.s * math.sqrt(x) for x in (1 - cell.share, cell.share))
    keep = math.exp(-1 / cell.tau) if cell.tau else 0.0
    every = EVERY_S[cell.tau]
    over = math.exp(-every / cell.tau) if cell.tau else 0.0
    levels, shared = rng.standard_normal(cell.n), [rng.standard_normal()]

    def next_of(client: int, time: float) -> float:
        at = int(time / every)
        while len(shared) <= at:
            new = rng.standard_normal()
            shared.append(over * shared[-1] + math.sqrt(1 - over**2) * new)
        mean = common**2 / 2 * (1 if cell.tau else -1)
        took = math.exp(own * levels[client] - own**2 / 2 + common * shared[at] + mean)
        new = rng.standard_normal()
        levels[client] = keep * levels[client] + math.sqrt(1 - keep**2) * new
        return took

    return next_of


def asynchronous(n: int, delay: Delay) -> Iterator[tuple[float, tuple[int, ...]]]:
    """Yields times of commits, and whose they are."""
    ends = [(delay(client, 0.0), client) for client in range(n)]
    heapq.heapify(ends)
    while True:
        time, client = heapq.heappop(ends)
        yield time, (client,)
        heapq.heappush(ends, (time + delay(client, time), client))


def synchronous(n: int, delay: Delay) -> Iterator[tuple[float, tuple[int, ...]]]:
    """Yields the same of rounds of all."""
    time = 0.0
    while True:
        time += max(delay(client, time) for client in range(n))
        yield time, tuple(range(n))


LOOPS = {"asynchronous": asynchronous, "synchronous": synchronous}


def trained(
    cell: DependentWorld, protocol: str, step: float, seed: int
) -> tuple[float, float]:
    """Returns seconds to the target, and the moment of the 100th contribution."""
    rng = np.random.default_rng(seed)
    x, y = load_digits(return_X_y=True)
    x = np.concatenate([x / 16, np.ones((y.size, 1))], axis=1)
    order = rng.permutation(y.size)[: round(0.8 * y.size)]
    x, hot = x[order], np.eye(10)[y[order]]
    shares = np.array_split(np.arange(order.size), cell.n)

    def chances(w: np.ndarray, rows: np.ndarray) -> np.ndarray:
        scores = np.exp(x[rows] @ w)
        return scores / scores.sum(axis=1, keepdims=True)

    w = np.zeros((65, 10))
    read, every = [w] * cell.n, protocols(cell.n)[protocol][1]
    times, values, hundredth = [], [], math.nan
    commits = LOOPS[protocol](cell.n, delays(cell, rng))
    for number, (time, whose) in enumerate(itertools.islice(commits, 480), 1):
        gradients = []
        for client in whose:
            rows = rng.choice(shares[client], 8, replace=False)
            wrong = chances(read[client], rows) - hot[rows]
            gradients.append(x[rows].T @ wrong / 8)
        w = w - step * np.mean(gradients, axis=0)
        for client in whose:
            read[client] = w
        if number * len(whose) == 100:
            hundredth = time
        if number % every == 0:
            right = (chances(w, np.arange(order.size)) * hot).sum(axis=1)
            times.append(time)
            values.append(-np.log(right).mean())
            if values[-1] <= BELOW:
                break
    return reached(np.array(times), np.array(values), TARGET), hundredth


@pytest.mark.parametrize(
    ("protocol", "step", "cell"),
    [
        ("asynchronous", 0.8, DependentWorld("convex", "iid", N, 1.0, 100, 0.5)),
        ("asynchronous", 0.8, DependentWorld("convex", "iid", N, 1.0, 0, 0.0)),
        ("synchronous", 3.2, DependentWorld("convex", "iid", N, 1.0, 100, 0.0)),
        ("synchronous", 3.2, DependentWorld("convex", "iid", N, 1.0, 0, 0.5)),
    ],
)
def test_times_are_those_of_a_loop(
    protocol: str, step: float, cell: DependentWorld
) -> None:
    """Logarithms of the time to the target, and of the 100th contribution's moment."""
    study = simulate(scenario(cell, protocol, [step]))
    whole = study.table("evaluations", ["run", "time", "objective"])
    jobs = study.table("jobs", ["run", "arrived_time", "outcome"])
    jobs = jobs[jobs["outcome"].astype(str) == "APPLIED"]
    ours = []
    for run in range(REPLICATES):
        curve = whole[whole["run"] == run].sort_values("time")
        moments = np.sort(jobs.loc[jobs["run"] == run, "arrived_time"].to_numpy())
        time, value = (curve[name].to_numpy() for name in ("time", "objective"))
        ours.append((reached(time, value, TARGET), moments[99]))
    theirs = [trained(cell, protocol, step, seed) for seed in range(20)]
    a, b = np.log(ours), np.log(theirs)
    error = np.sqrt(a.var(axis=0, ddof=1) / len(a) + b.var(axis=0, ddof=1) / len(b))
    assert (np.abs(a.mean(axis=0) - b.mean(axis=0)) < 4 * error).all()


def test_a_round_lasts_as_theory_has_it_whatever_the_memory() -> None:
    """The longest of n log-normal times: memory changes the mean of no round."""
    known = expected_maximum([scipy.stats.lognorm(1.0, scale=math.exp(-0.5))], [N])
    rng = np.random.default_rng(5)
    for tau in (0, 100):
        cell = DependentWorld("convex", "iid", N, 1.0, tau, 0.0)
        rounds = [
            [
                time
                for time, _ in itertools.islice(synchronous(N, delays(cell, rng)), 20)
            ]
            for _ in range(1000)
        ]
        lasted = np.diff(np.array(rounds), axis=1, prepend=0).mean(axis=1)
        error = lasted.std(ddof=1) / len(lasted) ** 0.5
        assert abs(lasted.mean() - known) < 4 * error
