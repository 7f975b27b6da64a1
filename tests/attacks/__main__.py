"""Attacks the program and writes the tables of the outcomes."""

import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

from tests.attacks import damages, disks, fuzzing, interruptions, load, settings
from tests.attacks.cases import OUTCOMES, ROOT, Case

SEED = 20261122
AREAS: dict[str, tuple[str, Callable[[Path], Iterator[Case]]]] = {
    "interruptions": (
        "studies killed or interrupted, once or twice, and run to their end",
        lambda folder: interruptions.studies(folder, 12, SEED),
    ),
    "writers": (
        "report, plot, timeline killed and repeated",
        lambda folder: interruptions.writers(folder, 8, SEED),
    ),
    "disks": ("disks, paths, two writers", disks.attacks),
    "damage": ("files damaged, data changed", damages.attacks),
    "reading": (
        "changed scenarios read and planned",
        lambda folder: fuzzing.reading(folder, 3300, SEED),
    ),
    "running": (
        "changed scenarios that were accepted, run for six commits",
        lambda folder: fuzzing.running(folder, 8, SEED),
    ),
    "settings": ("settings that must not matter", settings.attacks),
    "worlds": (
        "timelines of many clients",
        lambda folder: load.worlds(folder, (5_000, 100_000, 1_000_000)),
    ),
    "studies": (
        "many variants, long runs",
        lambda folder: load.studies(folder, 500, 200_000),
    ),
}
"""Areas by their names: what is done, and the cases in a folder of their own."""
PAGE = ROOT / "evidence" / "pages" / "attacked.md"


def main(names: list[str]) -> int:
    """Attacks the named areas, or all; returns 1 where one did not stand."""
    bad = 0
    for name in names or AREAS:
        title, attack = AREAS[name]
        with tempfile.TemporaryDirectory(prefix="attack-") as folder:
            cases = []
            for case in attack(Path(folder)):
                cases.append(case)
                sys.stdout.write(f"{name}: {case.what}: {case.outcome} {case.note}\n")
                sys.stdout.flush()
                # After each, so that what was shown stays when the rest is cut short.
                PAGE.write_text(
                    replaced(PAGE.read_text(), name, _section(name, title, cases))
                )
        bad += sum(case.outcome not in OUTCOMES[:2] for case in cases)
    return 1 if bad else 0


def replaced(page: str, name: str, section: str) -> str:
    """Returns the page with another section of an area, up to the next area's mark."""
    before, mark, rest = page.partition(f"<!-- {name} -->\n")
    _, following, after = rest.partition("\n<!-- ")
    return f"{before}{mark}{section}{following}{after}"


def _section(name: str, title: str, cases: list[Case]) -> str:
    """Returns what an area has shown, as Markdown."""
    kinds = [case.what for case in cases]
    if name in ("reading", "running"):
        kinds = ["scenarios"] * len(cases)
    counts = Counter(zip(kinds, (case.outcome for case in cases), strict=True))
    lines = [
        f"## {title.capitalize()}",
        "",
        f"`python -m tests.attacks {name}`: {len(cases)} cases.",
        "",
    ]
    lines += [f"| what | cases | {' | '.join(OUTCOMES)} |", "| --- |" + " ---: |" * 5]
    for kind in dict.fromkeys(kinds):
        mine = [counts[kind, outcome] for outcome in OUTCOMES]
        lines.append(f"| {kind} | {sum(mine)} | {' | '.join(map(str, mine))} |")
    total = [sum(counts[kind, o] for kind in dict.fromkeys(kinds)) for o in OUTCOMES]
    lines.append(f"| **all** | {sum(total)} | {' | '.join(map(str, total))} |")
    said = [
        f"- {case.what}: {case.outcome}: {case.note}"
        for case in cases
        if case.outcome not in OUTCOMES[:2]
    ]
    return "\n".join([*lines, *(["", *said] if said else []), ""])


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
