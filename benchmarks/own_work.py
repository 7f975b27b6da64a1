"""Work of a user's own on the host, against the compiled engine: time of a row.

    python benchmarks/own_work.py [ROWS]

All play the same rows of asynchronous SGD (10 clients, batch 32, MNIST's 5,000).
Everything is processor time of one core, the least of alternating turns.
"""

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from stalesim.simulator.engine import device

device.before_import()

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parents[1]))
import side_by_side

from stalesim.simulator.engine import simulation
from stalesim.simulator.engine.simulation import Prepared
from stalesim.simulator.scenario.study import merge
from tests import own_work

MODELS: dict[str, dict[str, Any]] = {
    "linear": {"kind": "linear"},
    "dense, 1,000 hidden": {"kind": "dense", "hidden": [1000]},
}
WORK: dict[str, dict[str, str]] = {
    "linear": {"nothing": "nothing", "NumPy": "linear", "PyTorch": "torch_mnist"},
    "dense, 1,000 hidden": {"nothing": "nothing", "PyTorch": "torch_dense"},
}
"""Functions of each model, in `tests/own_work.py`."""
SHARE = {"linear": 1.0, "dense, 1,000 hidden": 0.1}
"""Part of the rows that each model plays."""


def run_of(model: dict[str, Any], rows: int, work: str | None) -> Prepared:
    """Returns a run of a model, ready to be executed."""
    given = side_by_side.scenario("sgd", 10, rows)
    problem: dict[str, Any] = {"model": model, "l2": 0.0}
    if work is not None:
        problem["work"] = f"{own_work.__name__}:{work}"
    changes = {"problem": problem, "evaluate": {"every": {"commits": rows}}}
    tree = merge(given.model_dump(mode="json"), changes)
    return side_by_side.prepared(type(given).model_validate(tree))


def played(run: Prepared, mode: str) -> Callable[[], None]:
    """Returns a function that plays a run whole, in its program of before."""
    program = simulation._program([run], mode)

    def whole() -> None:
        for _ in simulation._runner([run], program).records():
            pass

    return whole


def main(most: int = 1000) -> None:
    """Prints the time of a row of each, and its ratio to the compiled engine's."""
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    side_by_side.REPEATS = 5
    print("| model | work | us a row | of the compiled engine |")
    print("|---|---|---|---|")
    for name, model in MODELS.items():
        rows, named = round(SHARE[name] * most), WORK[name]
        ours = run_of(model, rows, None)
        works = [played(ours, "compiled"), played(ours, "stepwise")]
        runs = [run_of(model, rows, each) for each in named.values()]
        works += [played(run, "host") for run in runs]
        for work in works:
            work()  # compiles
        found = side_by_side.alternately(*works)
        for what, each in zip(("compiled", "stepwise", *named), found, strict=True):
            micros, ratio = 1e6 * each / rows, each / found[0]
            print(f"| {name} | {what} | {micros:.0f} | {ratio:.1f} |", flush=True)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
