"""The observatory of time: plays everything, judges it and writes the results.

    python -m evidence.studies.observatory FOLDER [--worlds 1000] [--processes 2]
    python -m evidence.generate

What is there already in FOLDER is not played again; the same worlds give the same
numbers. Results are tables in evidence/results/observatory, from which
evidence/generate.py makes the page observatory.md and its figures. About 25 minutes of
processor time.
"""

import argparse
from collections.abc import Callable
from pathlib import Path

import pandas as pd

from . import findings, ratios

RESULTS = Path(__file__).parents[2] / "results" / "observatory"


def kept(path: Path, make: Callable[[], pd.DataFrame]) -> pd.DataFrame:
    """Returns the table of a file, made if it is not there yet."""
    if not path.exists():
        part = path.with_suffix(".part")
        make().to_csv(part, index=False)
        part.replace(path)
    return pd.read_csv(path)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m evidence.studies.observatory")
    parser.add_argument("folder", type=Path, help="folder of what was played")
    parser.add_argument("--worlds", type=int, default=1000, help="worlds of each kind")
    parser.add_argument("--processes", type=int, default=2)
    given = parser.parse_args()
    RESULTS.mkdir(parents=True, exist_ok=True)
    found = ratios.play(given.folder / "worlds", given.worlds, given.processes)
    for name, table in (
        ("ratios", ratios.judged(found)),
        ("quantiles", ratios.quantiles(found)),
        ("mindflayer", kept(given.folder / "mindflayer.csv", findings.mindflayer)),
        ("bias", kept(given.folder / "bias.csv", findings.ends)),
    ):
        table.to_csv(RESULTS / f"{name}.csv", index=False, float_format="%.5g")


if __name__ == "__main__":
    main()
