"""Our linear model and network written again as plain functions, against ours.

    python benchmarks/own_model.py [ROWS]

Both play the same rows of asynchronous SGD (10 clients, batch 32, MNIST's 5,000).
Everything is processor time of one core, the least of alternating turns.
"""

import os
import sys
from pathlib import Path

from stalesim.simulator.engine import device

device.before_import()

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parents[1]))
import side_by_side

from stalesim.simulator.engine.simulation import Prepared
from stalesim.simulator.scenario.study import merge
from tests import own_models

ROWS = {"linear": 20_000, "cnn": 400}
"""Rows of each model's run."""


def run_of(model: dict[str, str], rows: int) -> Prepared:
    """Returns a run of a model, ready to be executed."""
    tree = side_by_side.scenario("sgd", 10, rows).model_dump(mode="json")
    changes = {"problem": {"model": model}, "evaluate": {"every": {"commits": rows}}}
    kind = type(side_by_side.scenario("sgd", 10, rows))
    return side_by_side.prepared(kind.model_validate(merge(tree, changes)))


def main(rows: int | None = None) -> None:
    """Prints the time of a row of both, and the ratio."""
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    side_by_side.REPEATS = 5
    print("| model | ours, us a row | plain functions | speed |")
    print("|---|---|---|---|")
    for name, usual in ROWS.items():
        count = rows or usual
        own = {"kind": "python", "build": f"{own_models.__name__}:{name}"}
        runs = [run_of(model, count) for model in ({"kind": name}, own)]
        for run in runs:
            side_by_side.whole([run])  # compiles
        works = [lambda run=run: side_by_side.whole([run]) for run in runs]
        ours, plain = side_by_side.alternately(*works)
        micros = [1e6 * each / count for each in (ours, plain)]
        print(f"| {name} | {micros[0]:.1f} | {micros[1]:.1f} | {ours / plain:.2f} |")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
