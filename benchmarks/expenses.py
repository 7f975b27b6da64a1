"""What it costs that a timeline ends by energy, and not by time.

    python benchmarks/expenses.py

100 clients with exponential computing and idling. Processor time of the timeline alone,
the least of four alternating turns; both ends are the same moment.
"""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))
import side_by_side

from stalesim.simulator.engine.of_run import timeline
from stalesim.simulator.scenario.setting import WorldScenario
from stalesim.simulator.scenario.study import Run

ROWS = {"fastest": 400_000, "simpy": 100_000}
"""Rows of a run, about, by what plays it."""
CLIENTS, WATTS = 100, {"idle": 1, "compute": 3}
CHUNK = 65_536


def playing(player: str, stop: dict[str, float]) -> Callable[[], Any]:
    """Returns a function that plays a timeline, and returns its rows."""
    expon = {"law": "expon"}
    tree = WorldScenario.model_validate(
        {
            "name": "benchmark",
            "clients": {
                "number": CLIENTS,
                "idle": expon,
                "compute": expon,
                "watts": WATTS,
            },
            "protocol": {"kind": "asynchronous"},
            "stop": stop,
            "timeline": {"player": player},
        }
    )

    def play() -> int:
        played = timeline(Run(0, "base", {}, 0, 1, tree))
        return sum(chunk.rows.time.size for chunk in played.chunks(CHUNK))

    return play


def main() -> None:
    """Prints a table."""
    side_by_side.REPEATS = 4
    print("| player | rows | ends by `time` | ends by `joules` | ratio |")
    print("|---|---|---|---|---|")
    for player, rows in ROWS.items():
        seconds = 2 * rows / CLIENTS  # a job takes two on average
        joules = CLIENTS * seconds * sum(WATTS.values()) / 2
        works = playing(player, {"time": seconds}), playing(player, {"joules": joules})
        found = [work() for work in works]
        time, energy = side_by_side.alternately(*works)
        cells = f"{time:.2f} s | {energy:.2f} s | {energy / time:.1f}"
        print(f"| {player} | {found[0]:,} and {found[1]:,} | {cells} |", flush=True)


if __name__ == "__main__":
    main()
