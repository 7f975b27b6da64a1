"""Ratios that should not move: each to something that runs in turn with it.

    python benchmarks/ratios.py            # how fast commands start: two minutes
    python benchmarks/ratios.py --all      # also quickstart and training: fifteen
    python benchmarks/ratios.py --keep     # adds them to evidence/ratios.csv, too

Commands are compared with a process that imports JAX, pandas, SciPy's statistics and
Matplotlib, by processor seconds of all processes; programs print their own ratios. All
take turns. A figure has moved if its range over turns does not meet that of the last
kept line of the same processor. Bytecode and compiled programs are there before the
first turn, as on the second call of a user.
"""

import argparse
import csv
import platform
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

from commands import measure

HERE, ROOT = Path(__file__).parent, Path(__file__).parents[1]
KEPT = ROOT / "evidence" / "ratios.csv"
QUICKSTART = str(ROOT / "scenarios" / "quickstart.yaml")
UNIT = [sys.executable, "-c", "import jax, pandas, scipy.stats, matplotlib.figure"]
STALESIM = [sys.executable, "-m", "stalesim"]
START = {
    "--help": ["--help"],
    "data list": ["data", "list"],
    "run quickstart --dry-run": ["run", QUICKSTART, "--dry-run"],
    "timeline quickstart": ["timeline", QUICKSTART, "-o", "{out}"],
    "report quickstart": ["report", "{study}"],
}
WHOLE = {
    "run quickstart": ["run", QUICKSTART, "-o", "{out}"],
    "the same, without figures": ["run", QUICKSTART, "--no-plots", "-o", "{out}"],
}
PROGRAMS = {
    "side_by_side.py one_run": {
        "NumPy in blocks / one run, 10 clients": r"engine, x([\d.]+)\)\s",
        "NumPy / VAFL, 7 clients": r"vafl, .* trace [\d.]+ us \(x([\d.]+)\)",
    },
    "side_by_side.py gossip": {
        "NumPy / gossip, 10 workers": r"layers \(\): .*\(x([\d.]+)\)",
    },
    "study.py laws --singles 0": {
        "NumPy in blocks / 64 timelines": r"in blocks \|.* ([\d.]+) \|",
    },
    "study.py steps --singles 0": {
        "NumPy in blocks / 8 shared timelines": r"in blocks \|.* ([\d.]+) \|",
    },
    "own_work.py": {
        "PyTorch's row / compiled, linear": r"linear \| PyTorch.*\| ([\d.]+) \|",
    },
    "timelines.py 1,000": {
        "SimPy / arrays, 1,000 clients": r"1,000 \|.*?\*\*([\d.]+)\*\*",
    },
}


class TurnRange(NamedTuple):
    """Range of a ratio over turns."""

    low: float
    high: float


def of_commands(commands: dict[str, list[str]], turns: int) -> dict[str, TurnRange]:
    """Returns the processor seconds of commands over those of bare imports."""
    found: dict[str, list[float]] = {name: [] for name in commands}
    with tempfile.TemporaryDirectory(prefix="benchmark-") as name:
        folder = Path(name)
        log, study = folder / "log", folder / "study"
        measure([*STALESIM, "run", QUICKSTART, "-o", str(study)], log)
        for turn in range(turns + 1):
            unit = measure(UNIT, log).cpu
            for number, (name, command) in enumerate(commands.items()):
                out = folder / f"{turn}-{number}"
                words = [word.format(out=out, study=study) for word in command]
                cost = measure([*STALESIM, *words], log).cpu
                if turn:
                    found[name].append(cost / unit)
    return {name: TurnRange(min(each), max(each)) for name, each in found.items()}


def of_program(
    command: str, figures: dict[str, str], turns: int
) -> dict[str, TurnRange]:
    """Returns the ratios that a program prints."""
    name, *options = command.split()
    words = [sys.executable, str(HERE / name), *options]
    told = [
        subprocess.run(words, capture_output=True, text=True, check=True).stdout
        for _ in range(turns)
    ]
    found = {}
    for figure, pattern in figures.items():
        each = [float(match[1]) for text in told if (match := re.search(pattern, text))]
        found[figure] = TurnRange(min(each), max(each))
    return found


def kept(processor: str) -> dict[str, TurnRange]:
    """Returns the last kept ratios of a processor."""
    if not KEPT.exists():
        return {}
    with KEPT.open(newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["processor"] == processor]
    return {
        row["figure"]: TurnRange(float(row["low"]), float(row["high"])) for row in rows
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--all", action="store_true", help="fifteen minutes")
    parser.add_argument("--keep", action="store_true", help="add to evidence/")
    parser.add_argument("--turns", type=int, default=2)
    options = parser.parse_args()
    found = of_commands(START | WHOLE if options.all else START, options.turns)
    for command, figures in PROGRAMS.items() if options.all else ():
        found |= of_program(command, figures, options.turns)
    cpu = Path("/proc/cpuinfo")
    told = re.search("model name.*: (.*)", cpu.read_text() if cpu.exists() else "")
    processor = told[1] if told else platform.processor()
    before = kept(processor)
    for figure, (low, high) in found.items():
        said, old = f"{figure}: {low:.2f} to {high:.2f}", before.get(figure)
        if old and (high < old.low or low > old.high):
            said += f", MOVED from {old.low:.2f} to {old.high:.2f}"
        print(said)
    if options.keep:
        git = ["git", "-C", str(ROOT), "rev-parse", "--short=8", "HEAD"]
        commit = subprocess.run(git, capture_output=True, text=True, check=True).stdout
        new = not KEPT.exists()
        with KEPT.open("a", newline="") as file:
            writer = csv.writer(file, lineterminator="\n")
            if new:
                writer.writerow(["commit", "processor", "figure", "low", "high"])
            for figure, (low, high) in found.items():
                line = [commit.strip(), processor, figure, f"{low:.3f}", f"{high:.3f}"]
                writer.writerow(line)


if __name__ == "__main__":
    main()
