"""A study of 64 runs: against 64 single calls, and against a loop written by hand.

    python benchmarks/study.py                     # both studies, a sample of calls
    python benchmarks/study.py laws --singles 64   # every single call
    python benchmarks/study.py --updates 500       # only to see that it works

Asynchronous logistic regression on mnist5k, 784 -> 10, batch 32, 10 clients whose
means differ. `laws`: 8 laws of delays of equal mean, 8 replicates; `steps`: 8 step
sizes, 8 replicates, so that 8 runs share each timeline. Everything counts: starting
Python, loading, compiling, evaluating, writing. The loop (`peers/numpy_loop.py`) is
spread over as many processes, and writes evaluations only; the calls come one after the
other. All are run in turns; the ratios are the result. A program that was compiled
before is found in the user's cache: STALESIM_CACHE=off compiles in every process.
"""

import argparse
import json
import math
import os
import statistics
import sys
import tempfile
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from commands import Cost, best, measure

from stalesim.simulator.problem.learning import dataset
from stalesim.simulator.scenario.scenario import Scenario

CLIENTS, BATCH, STEP_SIZE = 10, 32, 0.05
MEAN = "2*m/(M + 1)"
"""Seconds of client m's job; 1 over all clients."""
LAWS: dict[str, dict[str, Any]] = {
    "constant": {"law": "constant", "value": MEAN},
    "uniform": {"law": "uniform", "loc": f"0.5*{MEAN}", "scale": MEAN},
    "exponential": {"law": "expon", "scale": MEAN},
    "gamma-4": {"law": "gamma", "a": 4, "scale": f"0.25*{MEAN}"},
    "gamma-half": {"law": "gamma", "a": 0.5, "scale": f"2*{MEAN}"},
    "log-normal": {"law": "lognorm", "s": 1, "scale": f"{math.exp(-0.5)}*{MEAN}"},
    "weibull": {
        "law": "weibull_min",
        "c": 0.7,
        "scale": f"{1 / math.gamma(1 + 1 / 0.7)}*{MEAN}",
    },
    "pareto": {"law": "pareto", "b": 2.5, "scale": f"0.6*{MEAN}"},
}
STEP_SIZES = [0.005, 0.01, 0.02, 0.03, 0.05, 0.08, 0.12, 0.2]
REPLICATES = 8
STALESIM = [sys.executable, "-m", "stalesim"]
LOOP = str(Path(__file__).parent / "peers" / "numpy_loop.py")
COMPILED = "Finished XLA compilation of jit(_run)"
"""JAX's log of the program that executes rows, compiled or found in the cache."""


def base(updates: int) -> dict[str, Any]:
    """Returns a scenario of one run."""
    return {
        "name": "benchmark-study",
        "seed": 1,
        "problem": {
            "data": {"kind": "mnist", "source": "bundled"},
            "partition": {"kind": "iid", "clients": CLIENTS},
        },
        "clients": {"compute": LAWS["exponential"]},
        "protocol": {"kind": "asynchronous"},
        "algorithm": {
            "kind": "sgd",
            "step_size": STEP_SIZE,
            "batch": BATCH,
            "sampling": "replacement",
        },
        "stop": {"commits": updates},
        "evaluate": {"every": {"commits": max(updates // 4, 1)}},
    }


class Variant(NamedTuple):
    """The entries of one run of the study, apart from its seed."""

    law: str
    step_size: float


class Comparison(NamedTuple):
    """A study in the terms of the simulator and of the loop.

    Attributes:
        scenario: Scenario of all runs.
        points: Points of its variants or sweep, each replicated.
    """

    scenario: dict[str, Any]
    points: list[Variant]


def laws(updates: int) -> Comparison:
    """8 laws x 8 replicates."""
    variants = {name: {"clients": {"compute": law}} for name, law in LAWS.items()}
    scenario = base(updates) | {"replicates": REPLICATES, "variants": variants}
    return Comparison(scenario, [Variant(name, STEP_SIZE) for name in LAWS])


def steps(updates: int) -> Comparison:
    """8 step sizes x 8 replicates; the step sizes of a replicate share its timeline."""
    swept = {"sweep": {"algorithm.step_size": STEP_SIZES}}
    scenario = base(updates) | {"replicates": REPLICATES} | swept
    return Comparison(scenario, [Variant("exponential", size) for size in STEP_SIZES])


STUDIES = {"laws": laws, "steps": steps}


def measured(command: list[str], log: Path) -> Cost:
    """Runs a command with libraries of one thread, and JAX's log of compilations."""
    threads = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")
    return measure(
        command, log, dict.fromkeys(threads, "1") | {"JAX_LOG_COMPILES": "1"}
    )


def study(scenario: dict[str, Any], processes: int) -> tuple[Cost, int]:
    """Runs a scenario; returns what it cost and how often rows were compiled."""
    with tempfile.TemporaryDirectory(prefix="benchmark-") as name:
        folder = Path(name)
        file = folder / "scenario.json"  # JSON is YAML
        file.write_text(json.dumps(scenario))
        command = [*STALESIM, "run", str(file), "--no-plots", "-j", str(processes)]
        log = folder / "log"
        cost = measured([*command, "-o", str(folder / "study")], log)
        _check(folder / "study", scenario)
        return cost, log.read_text().count(COMPILED)


def _check(folder: Path, scenario: dict[str, Any]) -> None:
    """Sees that all runs were executed to their end."""
    runs = json.loads((folder / "manifest.json").read_text())["runs"]
    made = {run.get("commits") for run in runs}
    if made != {scenario["stop"]["commits"]}:
        raise SystemExit(f"the runs of {folder} made {made} commits")


def loop(chosen: Comparison, arrays: Path, processes: int, block: int) -> Cost:
    """Runs the loop written by hand over the same runs."""
    scenario = chosen.scenario
    runs = [
        {
            **point._asdict(),
            "seed": replicate,
            "clients": CLIENTS,
            "batch": BATCH,
            "updates": scenario["stop"]["commits"],
            "evaluate_every": scenario["evaluate"]["every"]["commits"],
            "block": block,
        }
        for point in chosen.points
        for replicate in range(REPLICATES)
    ]
    with tempfile.TemporaryDirectory(prefix="benchmark-") as name:
        folder = Path(name)
        (folder / "runs.json").write_text(json.dumps(runs))
        command = [sys.executable, LOOP, str(arrays), str(folder / "runs.json")]
        out = folder / "evaluations.csv"
        cost = measured([*command, str(processes), str(out)], folder / "log")
        evaluated = len(out.read_text().splitlines()) - 1
        if evaluated != 5 * len(runs):
            raise SystemExit(f"the loop evaluated {evaluated} times")
        return cost


def singles(chosen: Comparison, sample: int, processes: int) -> Cost:
    """Returns the mean cost of calls of one run each, spread over the points."""
    costs = []
    for number in np.linspace(0, len(chosen.points) * REPLICATES - 1, sample):
        point = chosen.points[int(number) // REPLICATES]
        one = base(chosen.scenario["stop"]["commits"])
        one["seed"] = 1 + int(number) % REPLICATES
        one["clients"] = {"compute": LAWS[point.law]}
        one["algorithm"]["step_size"] = point.step_size
        costs.append(study(one, processes)[0])
    return Cost(*(statistics.mean(column) for column in zip(*costs, strict=True)))


def write_arrays(path: Path) -> None:
    """Writes the data that the simulator loads, for the loop to load at once."""
    data = dataset(Scenario.model_validate(base(1)).problem.data)
    np.savez(
        path,
        x=data.x_train.astype(np.float32),
        y=data.y_train,
        x_test=data.x_test.astype(np.float32),
        y_test=data.y_test,
    )


def compare(name: str, options: argparse.Namespace, arrays: Path) -> None:
    """Measures one study and its alternatives in turns, and prints the table."""
    chosen, processes = STUDIES[name](options.updates), options.processes
    count = len(chosen.points) * REPLICATES
    ours, drawn = [], []
    compiled = 0
    for _ in range(options.repeats):
        cost, compiled = study(chosen.scenario, processes)
        ours.append(cost)
        blocks = (loop(chosen, arrays, processes, block) for block in (1024, 1))
        drawn.append(tuple(blocks))
    calls = singles(chosen, options.singles, processes) if options.singles else None
    least = best(ours)
    print(
        f"\n{name}: {count} runs of {options.updates:,} updates, {processes} "
        f"processes; the loop of rows was compiled {compiled} times in all; best of "
        f"{options.repeats}\n"
    )
    print("| | wall s | CPU s | CPU us an update | wall / study's | CPU / study's |")
    print("|---|---|---|---|---|---|")
    rows = {"one study": least}
    for title, column in zip(LOOPS, zip(*drawn, strict=True), strict=True):
        rows[title] = best(list(column))
    if calls is not None:
        measured = f"{options.singles} of them measured"
        rows[f"{count} single calls ({measured})"] = calls.times(count)
    updates = count * options.updates
    for title, cost in rows.items():
        print(
            f"| {title} | {cost.wall:.1f} | {cost.cpu:.1f} | "
            f"{cost.cpu / updates * 1e6:.1f} | {cost.wall / least.wall:.2f} | "
            f"{cost.cpu / least.cpu:.2f} |",
            flush=True,
        )


LOOPS = ("NumPy loop, draws in blocks", "NumPy loop, draws one by one")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("studies", nargs="*", help=f"some of {', '.join(STUDIES)}")
    parser.add_argument("--updates", type=int, default=20_000, help="of a run")
    parser.add_argument("--singles", type=int, default=6, help="calls of one run")
    parser.add_argument("--repeats", type=int, default=1, help="of study and loop")
    cores = len(os.sched_getaffinity(0))
    parser.add_argument("--processes", type=int, default=cores)
    options = parser.parse_args()
    chosen = options.studies or list(STUDIES)
    if unknown := set(chosen) - set(STUDIES):
        parser.error(f"there is no study {', '.join(sorted(unknown))}")
    with tempfile.TemporaryDirectory(prefix="benchmark-") as folder:
        arrays = Path(folder) / "arrays.npz"
        write_arrays(arrays)
        for name in chosen:
            compare(name, options, arrays)


if __name__ == "__main__":
    main()
