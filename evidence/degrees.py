"""Degrees of freedom in the open: numbers that are ours, and those that were changed.

`assumed` takes from the scenario files every line that says so; `changed` reads
evidence/targets.yaml; `unsaid` finds claims whose number is not the one with which the
results in evidence/results were judged.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import yaml

from . import rows as experiments

LISTED = Path("evidence/targets.yaml")
ENTRIES = ("scenarios", "claim", "from", "to", "commit", "why")
ALL = "all"
"""Word in `claim` for all claims of a study."""
WORD = re.compile(r"\bassumed\b", re.IGNORECASE)
COMMENT = re.compile(r"(?:^|\s)#\s?")
NUMBERS = ("by_at_least", "is", "within", "bound")
"""Entries of a claim that its words in evidence/results have as a number."""


def files(root: Path = experiments.ROOT) -> list[Path]:
    """Returns all scenario files, sorted."""
    return sorted((root / "scenarios").rglob("*.yaml"))


def assumed(root: Path = experiments.ROOT) -> pd.DataFrame:
    """Returns the lines of the scenarios that say that a number is ours.

    Returns:
        Columns scenario (name of its file in scenarios/), line (its number), entry
        (what stands before the comment; empty if it is a comment alone) and said.
    """
    rows = []
    for path in files(root):
        name = path.relative_to(root / "scenarios").with_suffix("").as_posix()
        for number, line in enumerate(
            path.read_text(encoding="utf-8").splitlines(), start=1
        ):
            entry, *comments = COMMENT.split(line, maxsplit=1)
            if comments and WORD.search(comments[0]):
                rows.append((name, number, entry.strip(), comments[0].strip()))
    return pd.DataFrame(rows, columns=["scenario", "line", "entry", "said"])


def changed(root: Path = experiments.ROOT) -> pd.DataFrame:
    """Returns the history of targets and tolerances, a row per change.

    Raises:
        SystemExit: An entry lacks something, or names an unknown study.
    """
    listed = yaml.safe_load((root / LISTED).read_text(encoding="utf-8"))
    known = {experiments.name_of(path) for path in files(root)}
    for number, entry in enumerate(listed):
        if tuple(entry) != ENTRIES:
            raise SystemExit(
                f"{LISTED}: entry {number} must have {', '.join(ENTRIES)}, got "
                f"{', '.join(entry)}; add what is missing"
            )
        for name in entry["scenarios"]:
            if name not in known:
                raise SystemExit(
                    f"{LISTED}: entry {number} must name studies of scenarios/, got "
                    f"{name!r}; correct its name"
                )
    frame = pd.DataFrame(listed, columns=list(ENTRIES))
    return frame.assign(scenarios=frame["scenarios"].map(", ".join)).astype(str)


def unsaid(root: Path = experiments.ROOT) -> list[str]:
    """Returns claims judged by another number than they have now, in lines.

    A claim is known by what it says: one whose words were changed as well is taken for
    a new one. Studies whose results are not taken in have no numbers to compare with.
    """
    told = changed(root)
    lines = []
    for path in files(root):
        name = experiments.name_of(path)
        judged = root / experiments.RESULTS / name / "claims.csv"
        if not judged.exists():
            continue
        found = pd.read_csv(judged, keep_default_na=False)
        tree = yaml.safe_load(path.read_text(encoding="utf-8"))
        mine = told.loc[[name in n.split(", ") for n in told["scenarios"]], "claim"]
        for claim in tree.get("claims") or []:
            words = found.loc[found["says"] == claim["says"], "claim"].tolist()
            if not words or any(has(text, claim) for text in words):
                continue
            if not any(said == ALL or said in claim["says"] for said in mine):
                lines.append(
                    f"{path.relative_to(root)}: {claim['says']!r} has "
                    f"{', '.join(map(str, numbers(claim)))}, and was judged as "
                    f"{words[0]!r}; say in {LISTED} what was changed, and why"
                )
    return lines


def has(text: str, claim: dict[str, Any]) -> bool:
    """Says whether the words of a judged claim have the claim's numbers."""
    there = [float(n) for n in re.findall(r"-?\d+(?:\.\d+)?(?:e-?\d+)?", text)]
    return all(any(_same(n, one) for n in there) for one in numbers(claim))


def _same(one: float, other: float) -> bool:
    return abs(one - other) <= 1e-5 * abs(other)  # words have six digits


def numbers(claim: dict[str, Any]) -> Iterator[float]:
    """Yields the numbers of a claim that its words must have."""
    for entry in NUMBERS:
        if entry in claim and (entry, claim[entry]) != ("by_at_least", 1):
            yield float(claim[entry])
    yield from map(float, (claim.get("to") or {}).values())
