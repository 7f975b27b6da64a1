"""How much too low the mean staleness is by each rule of where a run's start ends.

    python benchmarks/start.py [RUNS]     # default: 200 of each law

Asynchronous clients that restart at once, for which the mean is C - 1 by any law. The
runs are made by a heap and NumPy alone.
"""

import heapq
import sys
from collections.abc import Callable

import numpy as np
import pandas as pd

NUM_CLIENTS, NUM_COMMITS = 64, 64 * 40
LAWS: dict[str, Callable[[np.random.Generator], float]] = {
    "constant": lambda rng: 1.0,
    "gamma, shape 16": lambda rng: rng.gamma(16) / 16,
    "exponential": lambda rng: rng.exponential(),
    "log-normal, s = 1.5": lambda rng: np.exp(1.5 * rng.standard_normal() - 1.125),
    "Pareto, b = 1.5": lambda rng: (rng.pareto(1.5) + 1) / 3,
}
BATCH = 5
"""Contributions of a batch of MSER-5."""


def play(draw: Callable[[], float]) -> pd.DataFrame:
    """Returns the jobs of a run: when each read and was applied, and how stale."""
    pending = [(draw(), client, 0.0, 0) for client in range(NUM_CLIENTS)]
    heapq.heapify(pending)
    rows = []
    for version in range(NUM_COMMITS):
        now, client, read, read_version = heapq.heappop(pending)
        rows.append((read, now, "APPLIED", version - read_version))
        heapq.heappush(pending, (now + draw(), client, now, version + 1))
    rows += [(read, np.nan, "IN_FLIGHT", np.nan) for _, _, read, _ in pending]
    columns = pd.Index(["read_time", "applied_time", "outcome", "staleness"])
    return pd.DataFrame(rows, columns=columns).assign(kind="work")


def end_of_start(jobs: pd.DataFrame) -> float:
    """Returns when the jobs that filled the system have ended; NaN if too late."""
    read, applied = jobs["read_time"].to_numpy(), jobs["applied_time"].to_numpy()
    last = np.partition(read, NUM_CLIENTS - 1)[NUM_CLIENTS - 1]
    over = applied[read <= last].max()  # NaN where one of them is under way
    return over if (applied > over).sum() >= (applied <= over).sum() else np.nan


def mser5(staleness: np.ndarray) -> int:
    """Returns how many contributions MSER-5 cuts off (White, Cobb and Spratt, 2000).

    The cut in the first half at which the squared standard error of the rest's batch
    means is least.
    """
    batches = staleness[: len(staleness) // BATCH * BATCH].reshape(-1, BATCH)
    backward = batches.mean(axis=1)[::-1]
    count = np.arange(1, backward.size + 1)
    total, squares = np.cumsum(backward), np.cumsum(backward**2)
    error = ((squares - total**2 / count) / count**2)[::-1]
    return BATCH * int(np.argmin(error[: backward.size // 2]))


def main(runs: int) -> None:
    print(f"{NUM_CLIENTS} clients, {NUM_COMMITS} commits, {runs} runs: mean - (C - 1)")
    print("law | whole run | MSER-5 | jobs that filled the system | start not over")
    for number, (name, law) in enumerate(LAWS.items()):
        found: dict[str, list[float]] = {"whole": [], "mser5": [], "filled": []}
        for run in range(runs):
            rng = np.random.default_rng([2026, number, run])
            jobs = play(lambda law=law, rng=rng: law(rng))
            done = jobs.loc[jobs["outcome"] == "APPLIED"]
            ages = done["staleness"].to_numpy()
            found["whole"].append(ages.mean())
            found["mser5"].append(ages[mser5(ages) :].mean())
            over = end_of_start(jobs)
            if np.isfinite(over):
                found["filled"].append(ages[done["applied_time"] > over].mean())
        cells = []
        for values in found.values():
            off = np.array(values) - (NUM_CLIENTS - 1)
            error = off.std(ddof=1) / np.sqrt(off.size)
            cells.append(f"{off.mean():+.2f} ± {error:.2f}")
        left = runs - len(found["filled"])
        print(" | ".join([name, *cells, f"{left / runs:.0%}"]))


if __name__ == "__main__":
    main(int(sys.argv[1]) if sys.argv[1:] else 200)
