"""A study as a careful user writes it without the simulator: a heap and NumPy.

    python numpy_loop.py ARRAYS.npz RUNS.json PROCESSES OUT.csv

The evaluations are those of the study, and all that is kept: no record of who did
what, no loss of each update. BLAS must be given one thread by the environment. With a
block of 1 every delay and batch is drawn when it is needed, as in
`benchmarks/hand_written.py`.
"""

import csv
import heapq
import json
import math
import multiprocessing
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np

CLASSES = 10


class Arrays(NamedTuple):
    """The data of all runs."""

    x: np.ndarray
    y: np.ndarray
    x_test: np.ndarray
    y_test: np.ndarray


def delays(law: str, rng: np.random.Generator, block: int) -> Iterator[float]:
    """Yields durations of mean 1 by one of the laws of `benchmarks/study.py`."""
    draw = {
        "constant": np.ones,
        "uniform": partial(rng.uniform, 0.5, 1.5),
        "exponential": partial(rng.exponential, 1.0),
        "gamma-4": partial(rng.gamma, 4.0, 0.25),
        "gamma-half": partial(rng.gamma, 0.5, 2.0),
        "log-normal": partial(rng.lognormal, -0.5, 1.0),
        "weibull": lambda size: rng.weibull(0.7, size) / math.gamma(1 + 1 / 0.7),
        "pareto": lambda size: 0.6 * (1 + rng.pareto(2.5, size)),
    }[law]
    while True:
        yield from draw(block).tolist()


def batches(
    shard: np.ndarray, batch: int, rng: np.random.Generator, block: int
) -> Iterator[np.ndarray]:
    """Yields the ids of a client's batches, drawn with replacement."""
    while True:
        yield from shard[rng.integers(0, len(shard), (block, batch))]


def evaluate(weights: np.ndarray, arrays: Arrays) -> tuple[float, float]:
    """Returns test accuracy and loss of weights `[10, P]`."""
    logits = arrays.x_test @ weights.T
    top = logits.max(axis=1)
    own = logits[np.arange(len(top)), arrays.y_test]
    loss = np.log(np.exp(logits - top[:, None]).sum(axis=1)) + top - own
    right = logits.argmax(axis=1) == arrays.y_test
    return float(right.mean()), float(loss.mean())


def run(
    arrays: Arrays,
    *,
    law: str,
    step_size: float,
    seed: int,
    clients: int,
    batch: int,
    updates: int,
    evaluate_every: int,
    block: int,
) -> list[tuple[float, int, float, float]]:
    """Plays one run; returns time, updates, accuracy and loss at its evaluations."""
    rng = np.random.default_rng(seed)
    x = arrays.x
    one_hot = np.eye(CLASSES, dtype=np.float32)[:, arrays.y]
    shards = np.array_split(rng.permutation(len(x)), clients)
    ids_of = [batches(shard, batch, rng, block) for shard in shards]
    delay_of = [delays(law, rng, block) for _ in shards]
    mean = [2 * (m + 1) / (clients + 1) for m in range(clients)]
    weights = np.zeros((CLASSES, x.shape[1]), np.float32)
    copies = [weights] * clients
    scale = np.float32(step_size / batch)
    found = [(0.0, 0, *evaluate(weights, arrays))]
    # The version breaks ties, so that the order never depends on the heap's.
    heap = [(mean[m] * next(delay_of[m]), m - clients, m) for m in range(clients)]
    heapq.heapify(heap)
    for version in range(1, updates + 1):
        now, _, m = heap[0]
        ids = next(ids_of[m])
        rows = x[ids]
        p = copies[m] @ rows.T
        p -= p.max(axis=0)
        np.exp(p, out=p)
        p /= p.sum(axis=0)
        p -= one_hot[:, ids]
        p *= scale
        weights = weights - p @ rows
        copies[m] = weights
        heapq.heapreplace(heap, (now + mean[m] * next(delay_of[m]), version, m))
        if version % evaluate_every == 0:
            found.append((now, version, *evaluate(weights, arrays)))
    return found


_held: Arrays


def _elsewhere(options: dict) -> list[tuple[float, int, float, float]]:
    return run(_held, **options)


def main() -> None:
    global _held
    source, plan, processes, out = sys.argv[1:]
    with np.load(source) as held:
        _held = Arrays(*(held[name] for name in Arrays._fields))
    runs = json.loads(Path(plan).read_text())
    # A fork shares the data.
    with multiprocessing.get_context("fork").Pool(int(processes)) as pool:
        found = pool.map(_elsewhere, runs, chunksize=1)
    with Path(out).open("w", newline="") as file:
        table = csv.writer(file)
        table.writerow(("run", "time", "commits", "test_accuracy", "test_loss"))
        for number, rows in enumerate(found):
            table.writerows((number, *row) for row in rows)


if __name__ == "__main__":
    main()
