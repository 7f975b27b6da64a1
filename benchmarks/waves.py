"""One run in waves, and by one gradient a round, next to the same run row by row.

    python benchmarks/waves.py [NAME ...]     # default: all settings below
    CORES=1 python benchmarks/waves.py [NAME ...]

`CORES` is how many devices of JAX there are, by default one for each core; XLA has as
many threads. Wall time and processor time of the rows of one run, with samples and
diagnostics, least of some turns; compilation is not in it. All are of one process, in
turns, and their losses are compared with those of rows whose messages are made one by
one: waves whose jobs are computed one by one, waves at once, as other devices than CPUs
have them, and one gradient of a round. Ratios are of processor time, which other work
on the machine changes least; of several devices wall time is what counts.
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

from stalesim.simulator.engine import simulation
from stalesim.simulator.engine.execute import Program
from stalesim.simulator.engine.waves import Waves
from stalesim.simulator.scenario.scenario import Scenario
from stalesim.simulator.scenario.study import Run

TURNS = 3
LOGNORMAL = {"law": "lognorm", "s": 0.25}
CNN = {"kind": "deep_cnn", "channels": [32, 32, 64, 64]}
TRANSFORMER = {"kind": "transformer", "layers": 4, "width": 128, "heads": 4}
IMAGES = {"kind": "synthetic_images", "side": 32, "channels": 3}
DIGITS = {"kind": "mnist"}
TEXT = {"kind": "text", "block": 64}
ROUNDS = {"kind": "synchronous"}
BUFFERED = {"kind": "buffered", "size": 10}
ASYNCHRONOUS = {"kind": "asynchronous"}
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
        "engine": {"chunk": commits},  # no buffer that is mostly empty
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
    print(f"{len(devices)} devices; ms a row")
    print("", "way", "wall", "cpu", "rows' cpu by it", "losses differ by", sep=" | ")
    for name in names or SETTINGS:
        run = prepared(*SETTINGS[name])
        kernel: Any = run.kernel
        ways = {
            "rows": Program(kernel, run.problem),
            "waves": Waves(kernel, run.problem, devices),
        }
        if joined := simulation._joined([run], "compiled"):
            ways["one gradient"] = Program(*joined, run.problem)
        times = {way: np.full(2, np.inf) for way in ways}
        losses = {}
        for _ in range(TURNS + 1):  # the first one compiles
            for way, program in ways.items():
                *spent, losses[way] = once(run, program)
                times[way] = np.minimum(times[way], spent)
        single = losses["rows"]
        for way, (wall, cpu) in times.items():
            print(
                name,
                way,
                *(f"{1000 * spent / len(single):.3f}" for spent in (wall, cpu)),
                f"{times['rows'][1] / cpu:.2f}",
                "same"
                if np.array_equal(losses[way], single)
                else f"{np.abs(losses[way] - single).max():.1e}",
                sep=" | ",
                flush=True,
            )


if __name__ == "__main__":
    main(sys.argv[1:])
