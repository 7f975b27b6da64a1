"""The common part of the drivers of all peers; the standard library only.

A driver gets a file with arrays `x` and `y`, the number of clients, the size of a batch
and the number of client updates, and prints one line of JSON.
"""

import json
import sys
import time
from importlib.metadata import version


def arguments() -> tuple[str, int, int, int]:
    """Returns the data file, clients, samples of a batch and client updates."""
    if len(sys.argv) != 5:
        raise SystemExit(f"usage: python {sys.argv[0]} DATA.npz CLIENTS BATCH UPDATES")
    data, *counts = sys.argv[1:]
    clients, batch, updates = map(int, counts)
    return data, clients, batch, updates


class Stopwatch:
    """Processor time of all threads of this process, before and within a block."""

    def __enter__(self) -> "Stopwatch":
        self.before = time.process_time()
        return self

    def __exit__(self, *error: object) -> None:
        self.within = time.process_time() - self.before


def report(updates: int, clock: Stopwatch, *, asynchronous: bool, package: str) -> None:
    """Prints what the side-by-side runner reads."""
    found = {
        "package": package,
        "version": version(package),
        "asynchronous": asynchronous,
        "updates": updates,
        "startup_cpu_s": clock.before,
        "run_cpu_s": clock.within,
    }
    print(json.dumps(found))
