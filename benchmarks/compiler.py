"""The cost of keeping LLVM from merging stores, and of checking a compiled program.

    python benchmarks/compiler.py [KIND...]     # default: all

For one run of each kind, in processes that take turns: processor time of a row with
what `simulator/engine/device.py` sets, in multiples of that without; seconds to compile
the program of rows; and what a guard would take that compiles it again without
optimisation and compares a row, and how far off that row is. Least of all turns;
compiled programs are not kept.
"""

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from itertools import product
from typing import Any, NamedTuple

from stalesim.simulator.engine import device

KIND: dict[str, dict[str, Any]] = {
    "sgd": {
        "problem": {
            "data": {"kind": "mnist", "scale": "unit"},
            "partition": {"kind": "iid", "clients": 10},
        },
        "algorithm": {"kind": "sgd", "step_size": 0.1, "batch": 32},
    },
    "vafl": {
        "problem": {
            "data": {"kind": "mnist", "scale": "unit"},
            "partition": {"kind": "vertical", "parties": 7},
        },
        "algorithm": {"kind": "vafl", "step_size": 0.1, "batch": 40, "upload": "batch"},
    },
    "cnn": {
        "problem": {
            "data": {"kind": "mnist", "scale": "unit"},
            "partition": {"kind": "iid", "clients": 10},
            "model": {"kind": "cnn"},
        },
        "algorithm": {"kind": "sgd", "step_size": 0.1, "batch": 12},
    },
    "lstm": {
        "problem": {
            "data": {
                "kind": "synthetic_series",
                "labels": "frame",
                "frames": 21,
                "features": 260,
                "num_classes": 64,
            },
            "partition": {"kind": "iid", "clients": 10},
            "model": {"kind": "lstm", "layers": 1, "cells": 64, "projection": 64},
        },
        "algorithm": {"kind": "sgd", "step_size": 0.1, "batch": 8},
    },
    "resnet18": {
        "problem": {
            "data": {"kind": "synthetic_images", "side": 32, "channels": 3},
            "partition": {"kind": "iid", "clients": 10},
            "model": {"kind": "cifar_net", "name": "resnet18", "width": 0.0625},
        },
        "algorithm": {"kind": "sgd", "step_size": 0.1, "batch": 16},
    },
    "fed_bcd": {
        "problem": {
            "data": {
                "kind": "synthetic_table",
                "num_samples": 20_000,
                "views": {"a": 357, "b": 357},
            },
            "partition": {"kind": "vertical", "parties": 2},
        },
        "protocol": {"kind": "rounds"},
        "algorithm": {
            "kind": "fed_bcd",
            "step_size": 0.001,
            "batch": 64,
            "local_steps": 50,
        },
    },
}
ROWS = {
    "sgd": 1000,
    "vafl": 1000,
    "cnn": 20,
    "lstm": 10,
    "resnet18": 2,
    "fed_bcd": 60,
}
REPEATS = 40
TURNS = 2


class StepTimes(NamedTuple):
    """Seconds of one process.

    Attributes:
        row: Processor seconds of a row, best of some.
        compiling: Seconds to compile the program of rows.
        guard: Seconds to compile it without optimisation, and to run a row of it.
        difference: Difference between both programs' numbers after it, over the change
            that it made.
    """

    row: float
    compiling: float
    guard: float
    difference: float


def measure(kind: str, precision: str) -> StepTimes:
    import jax
    import numpy as np

    from stalesim.simulator.engine import compiler, simulation
    from stalesim.simulator.engine.execute import Program, _run, null_events, put
    from stalesim.simulator.scenario.scenario import Scenario
    from stalesim.simulator.scenario.study import Run

    compiler.check = lambda _: None  # it refuses what is compared here
    rows = ROWS[kind]
    unit = "rounds" if kind == "fed_bcd" else "commits"
    tree = {
        "name": "compiler",
        "clients": {"compute": {"law": "constant", "value": 1}},
        "protocol": {"kind": "asynchronous"},
        "stop": {unit: rows + 1},
        "evaluate": {"every": {unit: rows + 1}},
        "engine": {"precision": precision},
        **KIND[kind],
    }
    run = simulation.prepare(Run(0, "", {}, 0, 1, Scenario.model_validate(tree)))
    with jax.enable_x64(precision == "float64"):
        program = Program(run.kernel, run.problem)
        feed = simulation._row_stream(run, rows)
        feed.next(1)
        piece = feed.next(rows)
        length = piece.rows.time.size
        events = null_events(length, run.timeline.width, run.samples)
        put(events, 0, piece)
        events = jax.device_put(events)

        def start() -> Any:
            carry = program.start(simulation.key_of(1), run.timeline.num_registers)
            return carry, program.infos(carry, events)

        def numbers(carry: Any) -> np.ndarray:
            leaves = [x for x in jax.tree.leaves(carry) if x.dtype.name == precision]
            return np.concatenate([np.asarray(leaf).ravel() for leaf in leaves])

        def after(compiled: Any) -> np.ndarray:
            carry, infos = start()
            arguments = run.kernel, run.problem, carry, events
            moved, _ = compiled(*arguments, np.int32(0), np.int32(1), infos)
            return numbers(moved)

        carry, infos = start()
        first = numbers(carry)
        lowered = _run.lower(
            run.kernel, run.problem, carry, events, np.int32(0), np.int32(1), infos,
            batched=False, shared=True,
        )  # fmt: skip
        usual, compiling = timed(lowered.compile)
        options = {"xla_backend_optimization_level": 0}
        plain, guard = timed(lambda: lowered.compile(compiler_options=options))
        wanted, running = timed(lambda: after(plain))
        difference = np.abs(after(usual) - wanted).max() / np.abs(wanted - first).max()

        def work() -> Any:
            return jax.block_until_ready(program.run(carry, events, 0, length, infos))

        carry, infos = work()
        best = float("inf")
        for _ in range(REPEATS):
            (carry, infos), seconds = timed(work)
            best = min(best, seconds)
    return StepTimes(best / length, compiling, guard + running, float(difference))


def timed(work: Callable[[], Any]) -> tuple[Any, float]:
    before = time.process_time()
    found = work()
    return found, time.process_time() - before


def in_process(kind: str, precision: str, flags: str) -> StepTimes:
    environment = os.environ | {
        "XLA_FLAGS": flags,
        "NPROC": "1",
        "JAX_PLATFORMS": "cpu",
    }
    done = subprocess.run(
        [sys.executable, __file__, "--one", kind, precision],
        env=environment, capture_output=True, text=True, check=True,
    )  # fmt: skip
    return StepTimes(*json.loads(done.stdout.splitlines()[-1]))


def main(kinds: list[str]) -> None:
    # Merging as LLVM has it, said aloud so that nothing is added to it.
    merging = device.STORES_APART.replace("=false", "=true")
    both = device.with_flags(""), device.with_flags(merging)
    print(
        "kind       precision  us a row  of merging  compile s  of merging  guard s"
        "  off"
    )
    for kind, precision in product(kinds, ("float32", "float64")):
        found: dict[str, list[StepTimes]] = {flags: [] for flags in both}
        for _ in range(TURNS):
            for flags, measured in found.items():
                measured.append(in_process(kind, precision, flags))
        apart, merged = (
            StepTimes(*map(min, zip(*found[flags], strict=True))) for flags in both
        )
        print(
            f"{kind:11}{precision:11}{apart.row * 1e6:8.1f}"
            f"{apart.row / merged.row:12.3f}{apart.compiling:11.2f}"
            f"{apart.compiling / merged.compiling:12.2f}{apart.guard:9.2f}"
            f"  {apart.difference:.0e}",
            flush=True,
        )


if __name__ == "__main__":
    if sys.argv[1:2] == ["--one"]:
        print(json.dumps(measure(*sys.argv[2:])))
    else:
        main(sys.argv[1:] or list(KIND))
