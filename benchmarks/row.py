"""What a row of SGD (784 -> 10, batch 32) takes of what the machine allows.

    python benchmarks/row.py

The limit is the least that any program does: the rows of a batch copied out of the
data by NumPy, and the two products by BLAS into arrays that exist. Everything is
processor time of one core in microseconds, least of some alternating turns.
"""

import os

from stalesim.simulator.engine import device

device.before_import()
for _name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[_name] = "1"

import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parent))
import hand_written
import side_by_side

ROWS, BATCH, CLASSES = 4096, 32, 10
TURNS = 8
BLOCK = 1024
"""Delays and batches that the loop of NumPy draws at once."""


def pieces(num_samples: int, columns: int) -> dict[str, Callable[[], None]]:
    """Returns the parts of a row, each done `ROWS` times."""
    rng = np.random.default_rng(0)
    x = rng.random((num_samples, columns), np.float32)
    weights = rng.random((CLASSES, columns), np.float32)
    errors = rng.random((CLASSES, BATCH), np.float32)
    ids = rng.integers(0, num_samples, (ROWS, BATCH))
    batch = x[ids[0]]
    logits = np.empty((CLASSES, BATCH), np.float32)
    gradient = np.empty_like(weights)

    def gather() -> None:
        for row in ids:
            np.take(x, row, axis=0, out=batch, mode="clip")

    def forward() -> None:
        for _ in ids:
            np.matmul(weights, batch.T, out=logits)

    def backward() -> None:
        for _ in ids:
            np.matmul(errors, batch, out=gradient)

    return {"gather": gather, "forward": forward, "backward": backward}


def main() -> None:
    """Prints the limit for three sizes of data, and what the engine takes."""
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    side_by_side.REPEATS = TURNS
    run = side_by_side.prepared(side_by_side.scenario("sgd", 10))
    own = np.asarray(run.problem.x)
    x = np.ascontiguousarray(own[:, : own.shape[1] - run.problem.spare])
    y = np.asarray(run.problem.y)
    engine = side_by_side.executing(run)
    side_by_side.whole([run])
    updates = side_by_side.UPDATES
    buffers = 4096 * (updates // 4096 + 1)
    sizes = [(x.shape[0], x.shape[1]), own.shape, (60_000, own.shape[1])]
    parts = [pieces(*size) for size in sizes]
    works = [work for part in parts for work in part.values()]

    def by_hand() -> None:
        hand_written.asynchronous_sgd(x, y, 10, updates, BATCH, 0.1, 1, BLOCK)

    rows, everything, loop, *found = side_by_side.alternately(
        engine, lambda: side_by_side.whole([run]), by_hand, *works
    )
    micros = np.array(found).reshape(len(sizes), -1) / ROWS * 1e6
    print("| samples x columns | gather | forward | backward | together |")
    print("|---|---|---|---|---|")
    for size, row in zip(sizes, micros, strict=True):
        cells = [f"{size[0]:,} x {size[1]}", *(f"{v:.1f}" for v in (*row, row.sum()))]
        print(f"| {' | '.join(cells)} |")
    row, limit = rows / buffers * 1e6, micros[1].sum()
    whole, hand = (seconds / updates * 1e6 for seconds in (everything, loop))
    flops = 4 * CLASSES * BATCH * own.shape[1]
    print(
        f"\na row of the engine {row:.1f} us: {limit / row:.2f} of it is the limit of "
        f"{own.shape[0]:,} x {own.shape[1]}; {flops / row / 1e3:.0f} GFLOP/s; a run "
        f"with timeline and trace {whole:.1f}; NumPy in blocks {hand:.1f} "
        f"(x{hand / row:.2f}, x{hand / whole:.2f})"
    )


if __name__ == "__main__":
    main()
