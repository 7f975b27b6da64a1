"""What the stage `compress` adds to a row, with error feedback.

    python benchmarks/compressors.py [--rows N]

Processor time of asynchronous rows of one contribution, batches of 32 digits, dense
networks of two sizes, least of alternating turns (the larger one: of a seventh of the
rows) in one process; whole runs without their preparation and compilation.
"""

import argparse
import sys
from pathlib import Path
from typing import Any

from stalesim.simulator.engine import device

device.before_import()
sys.path.insert(0, str(Path(__file__).parent))
from side_by_side import Nowhere, alternately

from stalesim.simulator.engine import simulation
from stalesim.simulator.scenario.reading import validated
from stalesim.simulator.scenario.study import Run

NETWORKS = {"2,410": ([32], 1), "50,826": ([256, 128], 7)}
"""Hidden layers by the number of weights, and by what rows are divided."""
COMPRESSORS: dict[str, dict[str, Any]] = {
    "`signs`": {"kind": "signs"},
    "`low_rank`, rank 2": {"kind": "low_rank", "rank": 2},
    "`qsgd`, 7 levels, buckets of 256": {"kind": "qsgd", "levels": 7, "bucket": 256},
    "`top_k`, 1 %": {"kind": "top_k", "keep": 0.01},
    "`random_k`, 1 %": {"kind": "random_k", "keep": 0.01},
}


def work(hidden: list[int], rows: int, compressor: dict[str, Any] | None) -> Any:
    """Returns a run, prepared and compiled."""
    chain = [{"kind": kind} for kind in ("local_work", "weigh", "mean", "step")]
    if compressor is not None:
        stage = {"kind": "compress", "compressor": compressor, "feedback": "ef"}
        chain.insert(1, stage)
    tree = validated(
        {
            "name": "benchmark",
            "problem": {
                "data": {"kind": "digits"},
                "partition": {"kind": "iid", "clients": 10},
                "model": {"kind": "dense", "hidden": hidden},
            },
            "clients": {"compute": {"law": "expon"}},
            "protocol": {"kind": "asynchronous"},
            "algorithm": {
                "kind": "chained",
                "step_size": 0.01,
                "batch": 32,
                "chain": chain,
            },
            "stop": {"commits": rows},
            "evaluate": {"every": {"commits": rows}},
        }
    )
    prepared = simulation.prepare(Run(0, "base", {}, 0, 1, tree))

    def run() -> None:
        simulation.execute([prepared], "compiled", Nowhere())  # pyright: ignore

    run()
    return run


def main() -> None:
    """Prints a table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=1500)
    rows = parser.parse_args().rows
    columns = []
    for hidden, part in NETWORKS.values():
        number = rows // part
        works = [work(hidden, number, one) for one in (None, *COMPRESSORS.values())]
        columns.append([time / number * 1e6 for time in alternately(*works)])
    heads = [f"{size} weights: us a row | ratio" for size in NETWORKS]
    print(f"| | {' | '.join(heads)} |")
    print(f"| --- |{' --- | --- |' * len(columns)}")
    for place, name in enumerate(["without", *COMPRESSORS]):
        cells = [
            f"{times[place]:.0f} | {times[place] / times[0]:.1f}" for times in columns
        ]
        print(f"| {name} | {' | '.join(cells)} |")


if __name__ == "__main__":
    main()
