"""Updates per second on quadratics with exact gradients, one run and many at once.

    python benchmarks/quadratics.py

Asynchronous SGD, 10 clients, the data set `quadratic` with the model `diagonal` and no
noise; runs that are executed together share a timeline and differ in the step size.
Processor time of the loop of rows alone, and of a whole run with its timeline and
record but without files; least of some turns. Updates are those of all runs.
"""

import os

from stalesim.simulator.engine import device

device.before_import()

import sys
import time
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

sys.path.insert(0, str(Path(__file__).parent))
import side_by_side

from stalesim.simulator.engine import execute, simulation
from stalesim.simulator.scenario.scenario import Scenario

LENGTH, TURNS, UPDATES = 4096, 3, 40_000
DIMENSIONS, RUNS = (10, 100), (1, 16, 256)


def scenario(dimension: int, step_size: float) -> Scenario:
    tree: dict[str, Any] = {
        "name": "quadratics",
        "problem": {
            "data": {
                "kind": "quadratic",
                "clients": 10,
                "dimension": dimension,
                "condition": 10,
            },
            "partition": {"kind": "natural", "clients": 10},
            "model": {"kind": "diagonal"},
            "loss": "squared",
        },
        "clients": {"compute": {"law": "expon"}},
        "protocol": {"kind": "asynchronous"},
        "algorithm": {"kind": "sgd", "step_size": step_size, "batch": 1},
        "stop": {"commits": UPDATES},
        "evaluate": {"every": {"commits": 4000}, "metrics": ["gradient_norm_squared"]},
    }
    return Scenario.model_validate(tree)


def rows(runs: list[simulation.Prepared]) -> float:
    """Returns the processor time of a row of all runs together, seconds."""
    first = runs[0]
    feed = simulation._row_stream(first, LENGTH)
    events = execute.null_events(LENGTH, first.timeline.width, first.samples)
    execute.put(events, 0, feed.next(LENGTH))
    events = jax.device_put(events)
    shared = len(runs) > 1
    kernel = first.kernel
    keys = simulation.key_of(1)
    if shared:
        kernel = jax.tree.map(lambda *x: jnp.stack(x), *(run.kernel for run in runs))
        keys = jnp.stack([keys] * len(runs))
    program = execute.Program(kernel, first.problem, batched=shared, shared=True)
    carry = program.start(keys, first.timeline.num_registers)
    held = [carry, program.infos(carry, events)]
    best = np.inf
    for _ in range(TURNS + 1):  # the first compiles
        started = time.process_time()
        held[:] = program.run(held[0], events, 0, LENGTH, held[1])
        jax.block_until_ready(held)
        best = min(best, time.process_time() - started)
    return best / LENGTH


def whole(runs: list[simulation.Prepared]) -> float:
    """Returns the processor time of an update of each run, with timeline and record."""
    mode, best = "shared" if len(runs) > 1 else "compiled", np.inf
    for _ in range(2):  # the first compiles
        started = time.process_time()
        side_by_side.whole(runs, mode)
        best = min(best, time.process_time() - started)
    return best / UPDATES


def main() -> None:
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    print("| d | runs at once | us a row | updates/s | us with timeline | updates/s |")
    print("| --- | --- | --- | --- | --- | --- |", flush=True)
    for dimension in DIMENSIONS:
        for number in RUNS:
            steps = np.geomspace(1e-3, 5e-2, number)
            configs = [scenario(dimension, float(step)) for step in steps]
            runs = [side_by_side.prepared(c, number=i) for i, c in enumerate(configs)]
            row, full = rows(runs), whole(runs)
            print(
                f"| {dimension} | {number} | {row * 1e6:.1f} | {number / row:,.0f} | "
                f"{full * 1e6:.1f} | {number / full:,.0f} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
