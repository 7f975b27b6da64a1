"""How long commands take from starting Python to their end, next to bare imports.

    python benchmarks/starting.py [REPEATS]     # default: 3

Processor time of all processes, and wall time; best of some repeats in turns. Next
to them stands a process that imports JAX, pandas, SciPy's statistics and Matplotlib and
does nothing. A first quickstart compiles its programs, a second one finds them in the
cache. Bytecode is kept in a folder of its own, as an installed package has it.
"""

import shutil
import sys
import tempfile
from pathlib import Path

from commands import Cost, best, measure

ROOT = Path(__file__).parents[1]
QUICKSTART = str(ROOT / "scenarios" / "quickstart.yaml")
NETWORK = str(ROOT / "scenarios" / "adp2sgd" / "table1_rescnn.yaml")
STALESIM = [sys.executable, "-m", "stalesim"]
WORLD = """
name: world
seed: 1
clients: {number: 100, compute: {law: expon}}
protocol: {kind: asynchronous}
stop: {commits: 600000}
"""
IMPORTS = "bare imports"
COMMANDS = {
    IMPORTS: [
        sys.executable,
        "-c",
        "import jax, pandas, scipy.stats, matplotlib.figure",
    ],
    "--help": [*STALESIM, "--help"],
    "list": [*STALESIM, "list"],
    "data list": [*STALESIM, "data", "list"],
    "timeline, quickstart": [*STALESIM, "timeline", QUICKSTART, "-o", "{out}"],
    "the same, --no-plots": [
        *STALESIM,
        "timeline",
        QUICKSTART,
        "--no-plots",
        "-o",
        "{out}",
    ],
    "timeline, 600,000 commits": [*STALESIM, "timeline", "{world}", "-o", "{out}"],
    "run, convolutions, --dry-run": [*STALESIM, "run", NETWORK, "--dry-run"],
    "run, quickstart, first": [*STALESIM, "run", QUICKSTART, "-o", "{out}"],
    "run, quickstart, again": [*STALESIM, "run", QUICKSTART, "-o", "{out}"],
    "the same, one process": [*STALESIM, "run", QUICKSTART, "-o", "{out}", "-j", "1"],
}


def main(repeats: int) -> None:
    """Prints a line for each command."""
    costs: dict[str, list[Cost]] = {name: [] for name in COMMANDS}
    with tempfile.TemporaryDirectory(prefix="benchmark-") as name:
        folder = Path(name)
        world = folder / "world.yaml"
        world.write_text(WORLD, encoding="utf-8")
        environment = {
            "PYTHONPYCACHEPREFIX": str(folder / "bytecode"),
            "PYTHONDONTWRITEBYTECODE": "",
            "PYTHONPATH": str(ROOT),
            "STALESIM_CACHE": str(folder / "programs"),
            "JAX_COMPILATION_CACHE_DIR": "",
        }
        for turn in range(repeats + 1):  # the first one writes the bytecode
            for number, (title, command) in enumerate(COMMANDS.items()):
                if title.endswith("first"):
                    shutil.rmtree(folder / "programs", ignore_errors=True)
                out = str(folder / f"{turn}-{number}")
                words = [word.format(out=out, world=world) for word in command]
                cost = measure(words, folder / "log", environment)
                if turn:
                    costs[title].append(cost)
    unit = best(costs[IMPORTS])
    print("| command | wall s | CPU s | wall / imports | CPU / imports |")
    print("|---|---|---|---|---|")
    for title, found in costs.items():
        least = best(found)
        print(
            f"| {title} | {least.wall:.2f} | {least.cpu:.2f} | "
            f"{least.wall / unit.wall:.2f} | {least.cpu / unit.cpu:.2f} |"
        )


if __name__ == "__main__":
    main(int(sys.argv[1]) if sys.argv[1:] else 3)
