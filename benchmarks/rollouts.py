"""Worlds of samples: how many are played per second of processor time.

    python benchmarks/rollouts.py [NAME...]     # default: all worlds
    python benchmarks/rollouts.py command       # 4,096 slots, a million samples

Processor time of a run with its whole record (samples, steps, loads), each in a process
of its own; SciPy is imported before; the better one of two. `command` is the whole
`stalesim timeline`, from starting Python to its last figure.
"""

import json
import subprocess
import sys
import tempfile
import time
from importlib import import_module
from pathlib import Path
from typing import Any

from timelines import STALESIM, finished

LENGTHS = {"law": "lognorm", "s": 0.8, "scale": 1000}
STEP = {"law": "constant", "value": 12}
MANY: dict[str, Any] = {
    "generation": {"slots": 4096, "tokens": LENGTHS, "group": 8},
    "queue": {"capacity": 1},
    "trainer": {"samples": 4096, "step": STEP},
    "stop": {"samples": 1_000_000},
}
"""What issue 20 asks for: 4,096 slots and a million samples in under a minute."""


def changed(samples: int, **options: dict[str, Any]) -> dict[str, Any]:
    """Returns that world with other options, until enough samples are trained."""
    parts = {key: part | options.get(key, {}) for key, part in MANY.items()}
    return parts | {
        "stop": {"samples": samples},
        **{key: part for key, part in options.items() if key not in MANY},
    }


WORLDS = {
    "4,096 slots, groups of 8": MANY,
    "4,096 slots, groups of 1": changed(100_000, generation={"group": 1}),
    "128 slots, batches of 128": changed(
        100_000, generation={"slots": 128}, trainer={"samples": 128}
    ),
    "the freshest first": changed(100_000, queue={"capacity": 4, "order": "freshest"}),
    "in order": changed(100_000, queue={"capacity": None, "order": "in_order"}),
    "pacing": changed(100_000, generation={"max_async_level": 1}),
    "weights abort": changed(100_000, weights={"mode": "abort"}),
}
ROUNDS = 2


def measure(name: str) -> None:
    import_module("scipy.stats")  # takes longer than some of these worlds

    from stalesim.simulator.extras.rl.world import RolloutOptions, play

    world = RolloutOptions.model_validate(WORLDS[name])
    started = time.process_time()
    found = play(world, 1)
    print(time.process_time() - started, found.samples["group"].size)


def main(names: list[str]) -> None:
    print("| world | samples | samples/s |")
    print("| --- | ---: | ---: |")
    for name in names or WORLDS:
        command = [sys.executable, __file__, "--measure", name]
        best, size = 1e9, 0
        for _ in range(ROUNDS):
            run = subprocess.run(command, capture_output=True, text=True, check=True)
            seconds, samples = run.stdout.split()
            best, size = min(best, float(seconds)), int(samples)
        print(f"| {name} | {size:,} | {size / best:,.0f} |", flush=True)


def whole_command() -> None:
    with tempfile.TemporaryDirectory() as place:
        file = Path(place) / "many.json"
        file.write_text(json.dumps({"name": "many"} | MANY))
        finished([*STALESIM, "timeline", str(file), "-o", f"{place}/out"])


if __name__ == "__main__":
    if sys.argv[1:2] == ["--measure"]:
        measure(sys.argv[2])
    elif sys.argv[1:] == ["command"]:
        whole_command()
    else:
        main(sys.argv[1:])
