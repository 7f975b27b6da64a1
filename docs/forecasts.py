"""Forecasts of a review, held against the verdicts of docs/results.

A review of the first version said which claims would hold once their settings were
read anew. docs/forecasts.yaml has what it said; what our runs gave is taken from the
results.
"""

from pathlib import Path

import pandas as pd
import yaml

import rows as experiments

LISTED = Path("docs/forecasts.yaml")
ENTRIES = ("row", "forecast", "study", "once", "claims", "why")
WAITS = "waits for its run"


def read(root: Path = experiments.ROOT) -> pd.DataFrame:
    """Returns the forecasts, a row each, with what our runs say of them.

    Returns:
        Columns row (of docs/rows.csv), forecast, here (verdicts of the claims that
        judge it: hold/do not hold/undecided), measured (of the first and, where there
        is another one, the last of them) and why.

    Raises:
        SystemExit: An entry lacks something, or no claim has its words.
    """
    listed = yaml.safe_load((root / LISTED).read_text(encoding="utf-8"))
    known = {row.id for row in experiments.read(root / experiments.LISTED)}
    rows = []
    for number, entry in enumerate(listed):
        if tuple(entry) != ENTRIES:
            raise SystemExit(
                f"{LISTED}: entry {number} must have {', '.join(ENTRIES)}, got "
                f"{', '.join(entry)}; add what is missing"
            )
        if entry["row"] not in known:
            raise SystemExit(
                f"{LISTED}: entry {number} must name a row of {experiments.LISTED}, "
                f"got {entry['row']!r}; correct it"
            )
        here, measured = _answer(root, entry)
        why = "" if here == WAITS else entry["why"]
        rows.append((entry["row"], entry["forecast"], here, measured, why))
    columns = ["row", "what the review foresaw", "here", "measured", "why"]
    return pd.DataFrame(rows, columns=columns)


def _answer(root: Path, entry: dict) -> tuple[str, str]:
    """Returns the verdicts of a forecast's claims, and what was measured."""
    judged = root / experiments.RESULTS / entry["study"] / "claims.csv"
    if not judged.exists():
        return WAITS, ""
    found = pd.read_csv(judged, keep_default_na=False)
    says = found["says"]
    if not says.str.contains(entry["once"], regex=False).any():
        return WAITS, ""
    chosen = [any(said in text for said in entry["claims"]) for text in says]
    if not any(chosen):
        raise SystemExit(
            f"{LISTED}: claims of {entry['row']} must have words of a claim of "
            f"{judged}, got {entry['claims']}; correct them"
        )
    mine = found[chosen]
    counts = mine["verdict"].value_counts()
    here = "/".join(str(counts.get(verdict, 0)) for verdict in experiments.VERDICTS)
    ends = dict.fromkeys(mine["measured"].astype(str).iloc[[0, -1]])
    return here, "; last: ".join(ends)
