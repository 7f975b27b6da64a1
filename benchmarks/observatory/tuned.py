"""Seconds to a target with everything tuned: asynchrony against rounds, who wins where.

A quadratic of `D` eigenvalues from 1 to 0.1, alike for all clients; gradients have
noise of total variance sigma^2. The target is an expected squared gradient norm of
`EPSILON` times that of the start. The timeline is the simulator's. Of rounds the
expectation is exact, and the number of rounds follows from batch and step in closed
form; asynchronous updates are replayed row by row for all steps together, the mean
of the iterates exactly and their variance by `DRAWS` draws of the noise.
"""

from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from statistics import NormalDist
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from benchmarks.observatory.files import write_once
from simulator.config.stop import Stop
from simulator.protocols import Asynchronous
from simulator.protocols.collect.collect import Collect
from simulator.timeline import Kind, Rows
from simulator.timelines.simulated import SimulatedTimeline
from simulator.world.clients import Clients
from simulator.world.workload import Workload

D, EPSILON, DRAWS, WINDOW = 4, 0.001, 32, 64
CURVATURE = np.geomspace(1, 0.1, D)
START = np.full(D, 1 / np.sqrt((CURVATURE**2).sum()))
STEPS = 2.0 ** -np.arange(0, 9, 0.75)
NOISES = (0.25, 1.0, 4.0, 16.0, 64.0)
"""Sigma^2 / epsilon."""
SPREADS = (0.0, 0.5, 1.0, 1.5, 2.0)
"""Standard deviation of the logarithm of the clients' mean seconds."""
TAILS: dict[str, dict[str, Any]] = {
    "constant": {"law": "constant"},
    "exponential": {"law": "expon"},
    "Lomax 1.5": {"law": "lomax", "c": 1.5},
}
MEANS = {"constant": 1.0, "exponential": 1.0, "Lomax 1.5": 2.0}
"""Mean of each law at scale 1, seconds."""
COMMITS = 80
"""Commits of asynchronous methods for each client, and at least `LEAST`."""
LEAST = 2000
FIELDS = ("clients", "tail", "spread", "seed", "method", "size", "noise", "step", "s")


class TunedWorld(NamedTuple):
    """Worlds that one file is about."""

    clients: int
    tail: str
    spread: float
    seed: int

    @property
    def tau(self) -> np.ndarray:
        """Mean seconds of the clients: normal quantiles, with a harmonic mean of 1."""
        at = (np.arange(self.clients) + 0.5) / self.clients
        logs = np.array([NormalDist().inv_cdf(p) for p in at])
        found = np.exp(self.spread * logs)
        return found * (1 / found).mean()

    def commits(self, protocol: Any, number: int) -> tuple[np.ndarray, Rows]:
        """Plays a protocol; returns the times of commits and all rows."""
        scale = self.tau / MEANS[self.tail]
        key = "value" if self.tail == "constant" else "scale"
        clients = {"compute": {**TAILS[self.tail], key: scale.tolist()}}
        plan = SimulatedTimeline(
            Clients.model_validate(clients),
            protocol,
            self.clients,
            self.seed,
            Stop(commits=number),
            Workload(0, 0, self.clients),
        )
        chunks = [chunk.rows for chunk in plan.chunks(1 << 14)]
        rows = Rows(*(np.concatenate(part) for part in zip(*chunks, strict=True)))
        return rows.time[rows.kind == Kind.COMMIT], rows

    @property
    def file(self) -> str:
        """Name of the file with its results."""
        tail = self.tail.replace(" ", "-")
        return f"{self.clients}-{tail}-{self.spread:g}-{self.seed}.csv"


def cells() -> list[TunedWorld]:
    """Returns all worlds: the phase diagram's, then other numbers of clients."""
    phase = [
        TunedWorld(16, t, s, seed) for seed in range(6) for t in TAILS for s in SPREADS
    ]
    sizes = [
        TunedWorld(n, "exponential", s, seed)
        for seed in range(3)
        for n in (4, 64)
        for s in SPREADS
    ]
    return phase + sizes


def rounds_needed(batch: int, noise: float) -> tuple[int, float]:
    """Returns the least number of rounds that reaches the target, and its step.

    The expected squared gradient norm after k steps is sum_j a_j^2 (q_j^2k x_j^2 +
    step^2 s^2 / batch (1 - q_j^2k) / (1 - q_j^2)) with q_j = 1 - step a_j, and s^2 the
    variance of one of D equal coordinates.
    """
    best, of = np.inf, 0.0
    variance = noise * EPSILON / D / batch
    for step in np.geomspace(2e-3, 1.8, 120):
        q = (1 - step * CURVATURE) ** 2
        floor = CURVATURE**2 * step**2 * variance / (1 - q)
        if floor.sum() >= EPSILON:
            continue
        lead = CURVATURE**2 * START**2 - floor

        def above(k: float, q: Any = q, lead: Any = lead, floor: Any = floor) -> bool:
            return float((lead * q**k + floor).sum()) > EPSILON

        low, high = 0, 1
        while above(high):
            low, high = high, 2 * high
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if above(middle) else (low, middle)
        if high < best:
            best, of = high, float(step)
    return int(best), of


def replayed(rows: Rows, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Returns the squared gradient norm's two parts after each commit, by step.

    The part of the mean, and that of the variance for a noise of total variance 1.
    """
    applied = rows.kind == Kind.COMMIT
    reads = rows.read_version[applied, 0].tolist()
    draw = np.random.default_rng([seed, len(reads)])
    state = np.zeros((STEPS.size, DRAWS + 1, D))
    state[:, 0] = START
    rate, weights = STEPS[:, None, None], CURVATURE**2
    noise = np.zeros((len(reads), DRAWS + 1, D))
    noise[:, 1:] = draw.standard_normal((len(reads), DRAWS, D)) / np.sqrt(D)
    history = [state]
    mean, variance = np.empty((2, len(reads), STEPS.size))
    with np.errstate(all="ignore"):
        for k, read in enumerate(reads):
            old = history[read]
            state = state - rate * (CURVATURE * old + noise[k])
            history.append(state)
            squares = (state * state) @ weights
            mean[k], variance[k] = squares[:, 0], squares[:, 1:].mean(axis=1)
    return mean, variance


def reached(mean: np.ndarray, variance: np.ndarray, noise: float) -> np.ndarray:
    """Returns the commit from which on each step is at the target; -1 if it is not.

    What passes the target and leaves it again, as a step that diverges may, has not
    reached it. The variance is averaged over the last `WINDOW` commits, so that chance
    in its draws does not decide.
    """
    with np.errstate(all="ignore"):
        total = np.cumsum(np.vstack([np.zeros(STEPS.size), variance]), axis=0)
        now = np.arange(1, len(total))
        first = np.maximum(now - WINDOW, 0)
        smooth = (total[now] - total[first]) / (now - first)[:, None]
        above = ~(mean + noise * EPSILON * smooth <= EPSILON)
    last = np.where(above.any(axis=0), len(above) - above[::-1].argmax(axis=0), 0)
    return np.where(last < len(above), last, -1)


def sizes(clients: int) -> list[int]:
    """Returns powers of two up to the number of clients."""
    return [2**i for i in range(clients.bit_length())]


def measured(cell: TunedWorld) -> list[tuple[Any, ...]]:
    """Returns seconds to the target of every method, size, noise and step."""
    rows: list[tuple[Any, ...]] = []
    number = max(LEAST, COMMITS * cell.clients)
    bounds = [None, *sizes(2 * cell.clients)]
    for bound in bounds:
        staleness = None if bound is None else bound - 1
        ends, played = cell.commits(Asynchronous(staleness_bound=staleness), number)
        parts = replayed(played, cell.seed)
        name, size = ("ASGD", 0) if bound is None else ("Ringmaster", bound)
        for noise in NOISES:
            at = reached(*parts, noise)
            for step, k in zip(STEPS, at, strict=True):
                seconds = float(ends[k]) if k >= 0 else np.inf
                rows.append((*cell, name, size, noise, float(step), seconds))
    kinds: list[tuple[str, list[int], dict[str, Any]]] = [
        ("m-synchronous, stops", sizes(cell.clients), {"late": "stop"}),
        ("m-synchronous", sizes(cell.clients), {}),
        ("Rennala, stops", sizes(4 * cell.clients), {"late": "stop"}),
    ]
    for name, batches, options in kinds:
        repeats = name.startswith("Rennala")
        for batch in batches:
            needed = {noise: rounds_needed(batch, noise) for noise in NOISES}
            most = max(k for k, _ in needed.values())
            protocol = Collect(count=batch, repeats=repeats, **options)
            ends, _ = cell.commits(protocol, most)
            for noise, (k, step) in needed.items():
                rows.append((*cell, name, batch, noise, step, float(ends[k - 1])))
    return rows


def _play(path: Path, cell: TunedWorld) -> Path:
    return write_once(path, FIELDS, lambda: measured(cell))


def play(folder: Path, processes: int) -> pd.DataFrame:
    """Plays the worlds that are not there yet; returns all times."""
    folder.mkdir(parents=True, exist_ok=True)
    files = [(folder / cell.file, cell) for cell in cells()]
    left = [pair for pair in files if not pair[0].exists()]
    spawn = get_context("spawn")
    with ProcessPoolExecutor(processes, mp_context=spawn) as pool:
        for path in pool.map(_play, *zip(*left, strict=True)) if left else ():
            print(path, flush=True)
    return pd.concat([pd.read_csv(path) for path, _ in files], ignore_index=True)
