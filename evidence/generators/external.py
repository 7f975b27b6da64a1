"""The tables of `evidence/pages/external.md`: claims and numbers of papers, and ours.

What was published stands in the scenarios' files (`sheets`);
`evidence/studies/external.py` measures. The rules of verdicts stand in `verdict` and
`of_claim`, and in words on the page.
"""

from pathlib import Path

import pandas as pd

from stalesim.analysis.markup import literal
from stalesim.analysis.speeds import MEASURES
from stalesim.analysis.statistics import ROUNDING, Interval

from . import sheets
from .formulas import markdown
from .sheets import APART, AT_LEAST, AT_MOST, EQUALS

MARK = "<!-- external: generated -->\n"
MEASURED = Path("evidence/results/external/measured.csv")
AGREES, CONTAINED, DIFFERS = "agrees", "within the interval", "differs"
MET, OPEN, NOT_MET = "met", "undecided", "not met"
HOLDS, KEPT, FAILS = "holds", "not contradicted", "does not hold here"
MEMORY = "; from memory: "
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
        rule: `equals`, `at most` or `at least` (it is a bound), or `not comparable`.
        published: The number.
        within: Tolerance, as a share of it.
        found: Mean over replicates and 95 % interval.
    """
    room = (within + ROUNDING) * abs(published)
    if rule == APART:
        return APART
    if rule in (AT_MOST, AT_LEAST):
        sign = 1 if rule == AT_MOST else -1
        ends = sorted((sign * found.low, sign * found.high))
        if ends[1] <= sign * published + ROUNDING * abs(published):
            return MET
        return NOT_MET if ends[0] > sign * published else OPEN
    if published - room <= found.low and found.high <= published + room:
        return AGREES
    return CONTAINED if found.low <= published <= found.high else DIFFERS


def of_claim(verdicts: set[str]) -> str:
    """Returns what the verdicts of its numbers say of a claim.

    Args:
        verdicts: Those of all its numbers.
    """
    if verdicts & {DIFFERS, NOT_MET}:
        return FAILS
    if verdicts <= {APART}:
        return APART
    return HOLDS if verdicts <= {AGREES, MET, APART} else KEPT


def compared(root: Path) -> pd.DataFrame:
    """Returns the published numbers, each with what was measured and its verdict.

    Args:
        root: Folder of the repository.

    Raises:
        SystemExit: A file says it wrongly, or its numbers were not measured.
    """
    listed = sheets.numbers(root)
    measured = pd.read_csv(root / MEASURED, keep_default_na=False)
    measured = measured.drop_duplicates(KEYS)
    found = listed.merge(measured, on=KEYS, how="left", validate="many_to_one")
    unknown = found.loc[found["replicates"].isna(), "scenario"]
    if len(unknown):
        raise SystemExit(
            f"{sheets.FOLDER}/{unknown.iloc[0]}.yaml: has quantities that were not "
            f"measured; run python -m evidence.studies.external {unknown.iloc[0]}"
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
    page = (root / "evidence/pages/external.md").read_text(encoding="utf-8")
    found, claims = compared(root), sheets.claims(root)
    verdicts = found.groupby("scenario")["verdict"].agg(set).map(of_claim)
    claims["verdict"] = claims["scenario"].map(verdicts)
    titles = {paper.partition("(")[0] for paper in claims["paper"]}
    sources = f"{len(claims)} claims of {len(titles)} papers and programs"
    parts = [
        page.partition(MARK)[0] + MARK,
        f"{sources}: {_tally(claims['verdict'])}.\n",
        markdown(_tallies(claims)),
        "",
        markdown(_claims(claims, found)),
        "",
        "## Number by number\n",
        f"{len(found)} numbers: {_tally(found['verdict'])}.\n",
    ]
    by_name = dict([*found.groupby("scenario", sort=False)])
    for name in claims["scenario"]:
        parts += [f"### {_link(name)}\n", markdown(_rows(by_name[name])), ""]
    parts += [
        "## Seconds a commit, contributions a second\n",
        WORDS,
        markdown(_speeds(root)),
    ]
    return "\n".join(parts) + "\n"


def _link(name: str) -> str:
    return f"[{name}](../../{sheets.FOLDER}/{name}.yaml)"


def _tally(verdicts: pd.Series) -> str:
    counts = verdicts.value_counts(sort=False)
    return ", ".join(f"{number} {name}" for name, number in counts.items())


def _tallies(claims: pd.DataFrame) -> pd.DataFrame:
    """Returns the numbers of claims by what they are about, and by setting."""
    kinds = claims["setting"].str.partition(":")[0].rename("setting")
    counts = pd.crosstab([claims["of"], kinds], claims["verdict"])
    return counts.reset_index()


def _claims(claims: pd.DataFrame, found: pd.DataFrame) -> pd.DataFrame:
    counts = found.groupby("scenario").size()
    rows = []
    for row in claims.to_dict("records"):
        memory = MEMORY + row["recalled"] if row["recalled"] else ""
        rows.append(
            {
                "year": row["year"],
                "claim": literal(row["claim"]),
                "source": literal(row["paper"]),
                "of": row["of"],
                "setting": literal(row["setting"] + memory),
                "numbers": counts[row["scenario"]],
                "verdict": row["verdict"],
                "file": _link(row["scenario"]),
            }
        )
    return pd.DataFrame(rows)


def _rows(mine: pd.DataFrame) -> pd.DataFrame:
    rows = []
    for row in mine.to_dict("records"):
        over = f" over that of {row['over']}" if row["over"] else ""
        bound = f"{row['rule']} " if row["rule"] in (AT_MOST, AT_LEAST) else ""
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
