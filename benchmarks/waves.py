"""One run in waves, next to the same run row by row.

    python benchmarks/waves.py [NAME ...]     # default: all settings below
    CORES=1 python benchmarks/waves.py [NAME ...]

`CORES` is how many devices of JAX there are, by default one for each core; XLA has as
many threads. Wall time and processor time of the rows of one run, with samples and
diagnostics, least of some turns; compilation is not in it. Both are of one process, in
turns, and their losses are compared: rows, waves whose jobs are computed one by one,
and waves at once, as other devices than CPUs have them. Ratios are wall time row by
row, by wall time in waves: where other work runs on the machine they say nothing.
"""

import os
import sys
import time
from typing import Any

from stalesim.simulator.engine import device

device.before_import()
device.use_cores(int(os.environ.get("CORES", len(os.sched_getaffinity(0)))))

import jax
import numpy as np

from stalesim.simulator import simulation
from stalesim.simulator.engine.execute import Program
from stalesim.simulator.engine.waves import Waves
from stalesim.simulator.scenario.scenario import Scenario
from stalesim.simulator.scenario.study import Run

TURNS = 3
LOGNORMAL = {"law": "lognorm", "s": 0.25}
CNN = {"kind": "deep_cnn", "channels": [32, 32, 64, 64]}
TRANSFORMER = {"kind": "transformer", "layers": 4, "width": 128, "heads": 4}
IMAGES, DIGITS = {"kind": "cifar10"}, {"kind": "mnist"}
TEXT = {"kind": "text", "block": 64}
ROUNDS = {"kind": "synchronous"}
BUFFERED = {"kind": "buffered", "size": 10}
ASYNCHRONOUS = {"kind": "asynchronous"}
WAYS = "rows", "waves", "waves at once"
SETTINGS: dict[str, tuple[Any, ...]] = {
    # data, model, protocol, clients, batch, commits
    "cnn": (IMAGES, CNN, ASYNCHRONOUS, 16, 32, 64),
    "transformer": (TEXT, TRANSFORMER, ASYNCHRONOUS, 16, 8, 96),
    "linear": (DIGITS, {"kind": "linear"}, ASYNCHRONOUS, 16, 32, 2000),
    "dense": (DIGITS, {"kind": "dense"}, ASYNCHRONOUS, 16, 32, 1000),
    "dense, batch 256": (DIGITS, {"kind": "dense"}, ASYNCHRONOUS, 16, 256, 200),
    "rounds, linear": (DIGITS, {"kind": "linear"}, ROUNDS, 100, 32, 60),
    "rounds, dense": (DIGITS, {"kind": "dense"}, ROUNDS, 100, 32, 20),
    "buffers, linear": (DIGITS, {"kind": "linear"}, BUFFERED, 100, 32, 300),
    "buffers, dense": (DIGITS, {"kind": "dense"}, BUFFERED, 100, 32, 60),
}


def prepared(
    data: Any, model: Any, protocol: Any, clients: int, batch: int, commits: int
) -> simulation.Prepared:
    how = "contiguous" if data is TEXT else "iid"
    tree = {
        "name": "waves",
        "problem": {
            "data": data,
            "partition": {"kind": how, "clients": clients},
            "model": model,
            "l2": 0.0,
        },
        "clients": {"compute": LOGNORMAL},
        "protocol": protocol,
        "algorithm": {"kind": "sgd", "step_size": 0.01, "batch": batch},
        "stop": {"commits": commits},
        "evaluate": {"every": {"commits": commits}, "metrics": ["test_loss"]},
    }
    run = Run(0, "base", {}, 0, 1, Scenario.model_validate(tree))
    return simulation.prepare(run)


def once(run: simulation.Prepared, program: Program) -> tuple[float, float, Any]:
    """Returns wall and processor time of all rows, and their losses."""
    runner = simulation._runner([run], program)
    wall, cpu = time.perf_counter(), time.process_time()
    records = [record for record in runner.records() if record]
    spent = time.perf_counter() - wall, time.process_time() - cpu
    return *spent, np.concatenate([record.infos["loss"] for record in records])


def main(names: list[str]) -> None:
    devices = jax.local_devices()
    print(f"{len(devices)} devices; ms a row: wall, processor")
    print(" | ".join(("", *WAYS, "ratios", "losses differ by")))
    for name in names or SETTINGS:
        run = prepared(*SETTINGS[name])
        kernel: Any = run.kernel
        ways = [Program(kernel, run.problem)]
        ways += [Waves(kernel, run.problem, devices, at_once=w) for w in (False, True)]
        times, losses = np.full((len(ways), 2), np.inf), [np.zeros(0)] * len(ways)
        for _ in range(TURNS + 1):  # the first one compiles
            for place, program in enumerate(ways):
                *spent, losses[place] = once(run, program)
                times[place] = np.minimum(times[place], spent)
        each = 1000 * times / len(losses[0])
        print(
            name,
            *(f"{wall:.3f}, {cpu:.3f}" for wall, cpu in each),
            ", ".join(f"{ratio:.2f}" for ratio in times[0, 0] / times[1:, 0]),
            ", ".join(f"{np.abs(losses[0] - other).max():.1e}" for other in losses[1:]),
            sep=" | ",
            flush=True,
        )


if __name__ == "__main__":
    main(sys.argv[1:])
