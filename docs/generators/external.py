"""The tables of `docs/external.md`: numbers of papers outside our list, and ours.

`docs/external.csv` lists what was published; `benchmarks/external.py` measures. The
rules of verdicts stand in `verdict`, and in words on the page.
"""

from pathlib import Path

import pandas as pd

from generators.formulas import markdown
from stalesim.analysis.markup import literal
from stalesim.analysis.speeds import MEASURES
from stalesim.analysis.statistics import ROUNDING, Interval

MARK = "<!-- external: generated -->\n"
LISTED = Path("docs/external.csv")
MEASURED = Path("docs/results/external/measured.csv")
EQUALS, AT_MOST, APART = "equals", "at most", "not comparable"
RULES = (EQUALS, AT_MOST, APART)
AGREES, CONTAINED, DIFFERS = "agrees", "within the interval", "differs"
MET, OPEN, NOT_MET = "met", "undecided", "not met"
KEYS = ["scenario", "group", "quantity", "over"]
NUMBERS = ["replicates", "mean", "low", "high"]
WORDS = (
    "Virtual seconds, after the start of each run; means and 95 % t-intervals over\n"
    "replicates. A commit of reinforcement learning is a step of the trainer, a\n"
    "contribution a sample. With a problem, over the whole run.\n"
)


def verdict(rule: str, published: float, within: float, found: Interval) -> str:
    """Returns what an interval says of a published number.

    Args:
        rule: `equals`, `at most` (it is a bound) or `not comparable`.
        published: The number.
        within: Tolerance, as a share of it.
        found: Mean over replicates and 95 % interval.
    """
    room = (within + ROUNDING) * abs(published)
    if rule == APART:
        return APART
    if rule == AT_MOST:
        if found.high <= published + ROUNDING * abs(published):
            return MET
        return NOT_MET if found.low > published else OPEN
    if published - room <= found.low and found.high <= published + room:
        return AGREES
    return CONTAINED if found.low <= published <= found.high else DIFFERS


def compared(root: Path) -> pd.DataFrame:
    """Returns the published numbers, each with what was measured and its verdict.

    Args:
        root: Folder of the repository.

    Raises:
        SystemExit: A line has another rule than `RULES`, or was not measured.
    """
    listed = pd.read_csv(root / LISTED, keep_default_na=False)
    listed["within"] = pd.to_numeric(listed["within"]).fillna(0.0)
    measured = pd.read_csv(root / MEASURED, keep_default_na=False)
    measured = measured.drop_duplicates(KEYS)
    found = listed.merge(measured, on=KEYS, how="left", validate="many_to_one")
    for row in found.itertuples():
        if row.rule not in RULES:
            raise SystemExit(
                f"{LISTED}: rule must be {', '.join(RULES)}, got {row.rule!r}; "
                "correct it"
            )
    unknown = found.loc[found["replicates"].isna(), "scenario"]
    if len(unknown):
        raise SystemExit(
            f"{LISTED}: {unknown.iloc[0]} has quantities that were not measured; run "
            f"python benchmarks/external.py {unknown.iloc[0]}"
        )
    intervals = [Interval(*each) for each in found[NUMBERS[1:]].to_numpy()]
    given = zip(
        found["rule"], found["published"], found["within"], intervals, strict=True
    )
    found["verdict"] = [verdict(*each) for each in given]
    found["interval"] = pd.Series(intervals, dtype=object)
    return found


def document(root: Path) -> str:
    """Returns the page; what stands above its mark is typed by hand.

    Args:
        root: Folder of the repository.
    """
    page = (root / "docs" / "external.md").read_text(encoding="utf-8")
    found = compared(root)
    tally = found["verdict"].value_counts(sort=False)
    counts = ", ".join(f"{number} {name}" for name, number in tally.items())
    parts = [
        page.partition(MARK)[0] + MARK,
        f"{len(found)} numbers of {found['scenario'].nunique()} scenarios: {counts}.\n",
    ]
    for name, mine in found.groupby("scenario", sort=False):
        parts += [f"### {_link(str(name))}\n", markdown(_rows(mine)), ""]
    parts += [
        "## Seconds a commit, contributions a second\n",
        WORDS,
        markdown(_speeds(root)),
    ]
    return "\n".join(parts) + "\n"


def _link(name: str) -> str:
    return f"[{name}](../scenarios/external/{name}.yaml)"


def _rows(mine: pd.DataFrame) -> pd.DataFrame:
    rows = []
    for row in mine.to_dict("records"):
        over = f" over that of {row['over']}" if row["over"] else ""
        bound = "at most " if row["rule"] == AT_MOST else ""
        why = f": {row['why']}" if row["why"] else ""
        tolerance = f"{100 * row['within']:g} %" if row["rule"] == EQUALS else ""
        rows.append(
            {
                "variant": literal(row["group"]),
                "quantity": f"`{row['quantity']}`{over}",
                "published": f"{bound}{row['published']:.6g}",
                "from": literal(row["source"]),
                "here": row["interval"],
                "replicates": row["replicates"],
                "tolerance": tolerance,
                "verdict": row["verdict"] + why,
            }
        )
    return pd.DataFrame(rows)


def _speeds(root: Path) -> pd.DataFrame:
    measured = pd.read_csv(root / MEASURED, keep_default_na=False)
    rows = {}
    for row in measured.to_dict("records"):
        if row["over"] or row["quantity"] not in MEASURES:
            continue
        mine = rows.setdefault(
            (row["scenario"], row["group"]),
            {
                "scenario": row["scenario"],
                "variant": literal(row["group"]),
                "replicates": row["replicates"],
            },
        )
        mine[MEASURES[row["quantity"]]] = Interval(row["mean"], row["low"], row["high"])
    return pd.DataFrame([*rows.values()])
