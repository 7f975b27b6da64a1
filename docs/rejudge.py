"""Judges every published verdict again, and tells what became of those of a commit.

python docs/rejudge.py [COMMIT]     # by default the last one that was judged otherwise

A study of which `values.csv` is kept is judged by the numbers of its runs. Of one that
was taken in before there was such a file there are only intervals. A t-test sees no
more of a sample than its mean, its spread and its size, so a sample that has those of
the interval is put before the same judges. What an interval does not tell (how far a
step of a sweep goes down, any pair but the worst) is left undecided, with the command
that would tell it.
"""

import io
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import scipy.stats

import rows as experiments
from analysis.bounds import AT_LEAST, EXACT
from analysis.claims import Finding, ReplicatePlan, judge
from analysis.claims import measured as measuring
from analysis.claims.findings import corrected, points, weighed
from analysis.claims.measured import Measured, read_csv
from analysis.claims.verdict import HOLDS, OPEN
from generators.formulas import markdown
from simulator.claims import Claim
from simulator.scenario.reading import loads, read
from simulator.scenario.study import expand

ROOT = experiments.ROOT
RESULTS = ROOT / experiments.RESULTS
BEFORE = "7542d8a"
"""Commit whose verdicts dropped diverged runs and were corrected for nothing."""
PAGE = ROOT / "docs" / "rejudged.md"
NOT_KEPT = "not kept: run the study again"
OF_INTERVAL = ("claim", "measured", "estimate", "low", "high", "replicates")
"""Columns that are kept of a verdict that cannot be judged again."""
OF_DIFFERENCE = ("higher", "no_worse", "close")
BECAME = {"close": ("close", "no_worse")}
"""Kinds that a claim of another kind may have become."""
DROPPED = {
    "the error grows with D": "in neither theorem: O(1/sqrt(K)) and O(1/k)",
    "about 2 orders fewer than ASGD": "the paper says it of K = 100 and 1,000",
    "1 to 2 orders of magnitude fewer": "the paper says it of K = 10 and 100",
    "approaches ASGD as epsilon grows": "said of the largest epsilon",
    "as edges are added, MAPA overtakes": "said of the most edges",
    "AUDP ends near CSGD": "Table II's AUDP is tuned; that one is claimed now",
    "with weight 3 also at Q = 100": "said of Q = 100",
}
"""Why a claim of before is no longer made of a point, by what it says."""


class Said(NamedTuple):
    """A verdict of before: the claim, the groups that it is about, and its row."""

    claim: Claim
    names: tuple[str, ...]
    row: dict[str, Any]


def main(arguments: list[str]) -> int:
    """Judges again and writes; says which studies do not suffice."""
    commit = arguments[0] if arguments else BEFORE
    changes, missing, judged = [], [], {}
    for folder in sorted(RESULTS.iterdir()):
        if not (folder / "claims.csv").exists():
            continue
        path = ROOT / experiments.file_of(folder.name)
        claims = claims_of(read(path))
        old = list(before(commit, folder.name, path))
        if (folder / "values.csv").exists():
            found = again(folder, claims)
        else:
            found = reconstructed(folder, path, claims, old)
        found.to_csv(folder / "claims.csv", index=False)
        rows = list(compared(folder.name, path, claims, old, found))
        changes += [row for row in rows if row[-1]]
        unkept = sum(NOT_KEPT in str(why) for why in found["why"])
        if unkept:
            missing.append((folder.name, unkept))
        judged[folder.name] = old, found
    PAGE.write_text(page(commit, changes, missing, judged), encoding="utf-8")
    for name, number in missing:
        sys.stdout.write(f"{name}: claims that cannot be judged again: {number}\n")
    return 0


def claims_of(scenario: Any) -> list[Claim]:
    """Returns the claims of a scenario."""
    return list(scenario.claims)


def before(commit: str, name: str, path: Path) -> Iterator[Said]:
    """Yields the verdicts of a commit, with the claims and groups that they are of."""
    relative = path.relative_to(ROOT).as_posix()
    table = _shown(commit, f"docs/results/{name}/claims.csv")
    text = _shown(commit, relative)
    if table is None or text is None:
        return
    rows = pd.read_csv(io.StringIO(table)).to_dict("records")
    scenario = loads(text, relative)
    groups = _groups(scenario)
    left = iter(rows)
    for claim in claims_of(scenario):
        for names in points(groups, claim):
            yield Said(claim, names, next(left))
    if next(left, None) is not None:
        raise SystemExit(f"{name}: has more verdicts at {commit} than its claims have")


def _shown(commit: str, file: str) -> str | None:
    """Returns a file as it was at a commit; none if it was not there."""
    done = subprocess.run(
        ["git", "show", f"{commit}:{file}"],
        capture_output=True,
        text=True,
        check=False,
        cwd=ROOT,
    )
    return done.stdout if done.returncode == 0 else None


def again(folder: Path, claims: list[Claim]) -> pd.DataFrame:
    """Returns the verdicts on a study whose numbers are kept."""
    about = json.loads((folder / "about.json").read_text(encoding="utf-8"))
    plan = ReplicatePlan(about["replicates"], tuple(about.get("looks", ())))
    return judge(read_csv(folder / "values.csv"), claims, plan)


def reconstructed(
    folder: Path, path: Path, claims: list[Claim], old: list[Said]
) -> pd.DataFrame:
    """Returns the verdicts on a study of which intervals alone are kept."""
    about = json.loads((folder / "about.json").read_text(encoding="utf-8"))
    summary = pd.read_csv(folder / "summary.csv", index_col="group")
    groups, known = _groups(read(path)), {_key(s.claim, s.names): s for s in old}
    rows: list[Finding] = []
    for claim in claims:
        for names in points(groups, claim):
            said = known.get(_key(claim, names))
            sample = None if said is None else _sample(groups, claim, names, said)
            asked, rounded = about["replicates"], None
            if sample is None:
                rounded = _of_summary(groups, claim, names, summary, asked)
            numbers = sample or rounded or _nothing(groups, names)
            rows += weighed(numbers, claim.model_copy(update={"at": {}}), asked)
            if rounded:
                why = f"{rows[-1].why}; by the closing table, which is rounded"
                rows[-1] = rows[-1]._replace(why=why)
            elif sample is None:
                why = f"{NOT_KEPT}: stalesim run {path.relative_to(ROOT)}"
                rows[-1] = _unmeasured(rows[-1], said, why)
    frame = pd.DataFrame(rows, columns=pd.Index(Finding._fields))
    return corrected(frame, ReplicatePlan(about["replicates"]))


def _unmeasured(finding: Finding, said: Said | None, why: str) -> Finding:
    """Returns a finding that has no numbers, with what was measured before.

    What was undecided along a sweep before steps and pairs were corrected is so now.
    """
    if said is None:
        return finding._replace(measured=NOT_KEPT, why=why)
    row = {key: said.row[key] for key in OF_INTERVAL}
    if said.row["verdict"] == OPEN:
        why = "undecided before any correction"
    return finding._replace(**row, why=why)


def _key(claim: Claim, names: tuple[str, ...]) -> tuple[Any, ...]:
    """Returns what was measured of which groups; alike for kinds that share it."""
    kind = claim.kind
    way = "difference" if kind in OF_DIFFERENCE else kind
    return way, tuple(claim.quantities()), names


def _sample(
    groups: Measured, claim: Claim, names: tuple[str, ...], said: Said
) -> Measured | None:
    """Returns numbers with the interval of before; none if that does not suffice."""
    row, kind = said.row, claim.kind
    n = int(row["replicates"])
    logarithmic = kind in ("faster", "fewer", "ratio")
    values = _like(row, n, logarithmic=logarithmic)
    reached = re.search(r"reached (\d+)/\d+ and (\d+)/\d+", str(row["measured"]))
    if values is None and reached and f"{n}" not in reached.groups():
        values = np.ones(n)  # neither side always arrived, whatever the times
    if values is None:
        return None
    quantity = next(iter(claim.quantities()))
    numbers = {name: np.zeros(n) for name in names}
    bounds = {name: np.full(n, EXACT) for name in names}
    if kind in OF_DIFFERENCE or kind == "value":
        numbers[names[0]] = values
    elif logarithmic:
        numbers = {names[0]: np.ones(n), names[1]: np.exp(values)}
        for name, count in zip(names, reached.groups() if reached else (), strict=True):
            bounds[name][int(count) :] = AT_LEAST
    elif kind == "slope":
        return _of_slopes(groups, names, quantity, values)
    elif (
        kind == "monotone" and row["verdict"] == HOLDS
    ):  # so no step went the other way
        ranks = np.arange(len(names)) - (len(names) - 1) / 2
        numbers = {name: rank * values for name, rank in zip(names, ranks, strict=True)}
    else:
        return None
    return _measured(groups, quantity, numbers, bounds)


def _like(row: dict[str, Any], n: int, *, logarithmic: bool) -> np.ndarray | None:
    """Returns numbers with the mean and the t-interval of a row."""
    ends = np.array([row["estimate"], row["low"], row["high"]], np.float64)
    if n < 2 or not np.isfinite(ends).all():
        return None
    mean, low, high = np.log(ends) if logarithmic else ends
    half = (high - low) / 2
    spread = half * np.sqrt(n) / scipy.stats.t.ppf(0.975, n - 1)
    steps = np.arange(n) - (n - 1) / 2
    return mean + spread * steps / steps.std(ddof=1)


def _of_slopes(
    groups: Measured, names: tuple[str, ...], quantity: str, slopes: np.ndarray
) -> Measured:
    """Returns numbers that fall with these slopes, over one run or several horizons."""
    if len(names) == 1:
        ends = {names[0]: np.full(slopes.size, EXACT)}
        return _measured(groups, quantity, {names[0]: slopes}, ends)
    horizons = {name: 10.0 ** (1 + k) for k, name in enumerate(names)}
    ends = {name: np.full(slopes.size, EXACT) for name in names}
    means = {name: horizon**slopes for name, horizon in horizons.items()}
    found = _measured(groups, quantity, means, ends)
    column = measuring.horizon(quantity)
    found.numbers[column] = found.table["group"].map(horizons)
    found.bounds[column] = EXACT
    return Measured(found.table, found.numbers, found.bounds)


def _of_summary(
    groups: Measured,
    claim: Claim,
    names: tuple[str, ...],
    summary: pd.DataFrame,
    asked: int,
) -> Measured | None:
    """Returns final accuracies where some runs diverged, from the closing table.

    It tells mean and interval of those that did not; the others count as zero. Only of
    pairs whose one side diverged always: their differences are then the other side's.
    """
    if claim.kind not in OF_DIFFERENCE or _metric(claim) != "test_accuracy":
        return None
    numbers = {}
    for name in names:
        values = _finals(str(summary["final"][name]), asked)
        if values is None:
            return None
        numbers[name] = values
    if all(values.any() for values in numbers.values()):
        return None
    found = _measured(groups, measuring.final(_metric(claim)), numbers, {})
    lost = (found.numbers == 0).any(axis=1)
    table = found.table.assign(stop=np.where(lost, "diverged", "time"))
    return Measured(table, found.numbers, found.bounds)


def _metric(claim: Claim) -> str:
    """Returns the metric of a claim on final values."""
    return getattr(claim, "metric", "")


def _finals(cell: str, asked: int) -> np.ndarray | None:
    """Returns final values from a cell such as `0.28 ±0.35 (2/3)` or `none (0/3)`."""
    found = re.fullmatch(r"(none|[\d.]+)(?: ±([\d.]+))?(?: \((\d+)/\d+\))?", cell)
    if found is None:
        return None
    mean, half, known = found.groups()
    if mean == "none":
        return np.zeros(asked)
    if half is None:
        return None
    number = int(known or asked)
    ends = {"low": float(mean) - float(half), "high": float(mean) + float(half)}
    values = _like({"estimate": float(mean)} | ends, number, logarithmic=False)
    return None if values is None else np.append(values, np.zeros(asked - number))


def _measured(
    groups: Measured,
    quantity: str,
    numbers: dict[str, np.ndarray],
    bounds: dict[str, np.ndarray],
) -> Measured:
    """Returns one quantity of some groups."""
    rows = [
        (variant, group, groups.parameters(group), replicate, "time", value, bound)
        for variant, group in _variants(groups, numbers)
        for replicate, (value, bound) in enumerate(
            zip(numbers[group], bounds.get(group, 0 * numbers[group]), strict=True)
        )
    ]
    columns = [*measuring.OF_RUN, "value", "bound"]
    frame = pd.DataFrame(rows, columns=pd.Index(columns))
    values = pd.DataFrame({quantity: frame["value"].astype(float)})
    ends = pd.DataFrame({quantity: frame["bound"].astype(int)})
    return Measured(frame[measuring.OF_RUN], values, ends)


def _nothing(groups: Measured, names: tuple[str, ...]) -> Measured:
    """Returns some groups without any number."""
    rows = [
        (variant, group, groups.parameters(group), 0, "time")
        for variant, group in _variants(groups, dict.fromkeys(names))
    ]
    frame = pd.DataFrame(rows, columns=pd.Index(measuring.OF_RUN))
    return Measured(frame, pd.DataFrame(index=frame.index), pd.DataFrame())


def _variants(groups: Measured, wanted: dict[str, Any]) -> Iterator[tuple[str, str]]:
    for group in wanted:
        rows = groups.rows[group]
        yield str(groups.table["variant"].iloc[rows[0]]), group


def _groups(scenario: Any) -> Measured:
    """Returns the groups of a scenario, without any number."""
    rows = [
        (run.variant, run.label, json.loads(json.dumps(run.parameters)), 0, "")
        for run in expand(scenario)
        if run.replicate == 0
    ]
    frame = pd.DataFrame(rows, columns=pd.Index(measuring.OF_RUN))
    return Measured(frame, pd.DataFrame(index=frame.index), pd.DataFrame())


def compared(
    name: str,
    path: Path,
    claims: list[Claim],
    old: list[Said],
    found: pd.DataFrame,
) -> Iterator[tuple[str, ...]]:
    """Yields what became of each verdict of before, and which ones are new.

    Columns study, claim, before, now, origin, why; why is empty where nothing changed.
    """
    groups, now = _groups(read(path)), {}
    rows = iter(found.to_dict("records"))
    for claim in claims:
        for names in points(groups, claim):
            now.setdefault(_key(claim, names), []).append((claim, next(rows)))
    seen: list[int] = []
    for said in old:
        verdict = str(said.row["verdict"])
        same = [
            (claim, row)
            for claim, row in now.get(_key(said.claim, said.names), ())
            if claim.kind in BECAME.get(said.claim.kind, (said.claim.kind,))
        ]
        if not same:
            why = next((w for t, w in DROPPED.items() if t in said.row["says"]), "")
            why = f"no longer claimed: {why}" if why else "no longer claimed"
            yield name, str(said.row["claim"]), verdict, "-", "-", why
        for claim, row in same:
            seen.append(id(row))
            why = _why(said, claim, row)
            origin, words = str(row["origin"]), str(row["claim"])
            yield name, words, verdict, str(row["verdict"]), origin, why
    for entries in now.values():
        for _, row in entries:
            if id(row) not in seen:
                words, verdict = str(row["claim"]), str(row["verdict"])
                why = "; ".join(["a new claim", *[NOT_KEPT] * (NOT_KEPT in row["why"])])
                yield name, words, "-", verdict, str(row["origin"]), why


def _why(said: Said, claim: Claim, row: dict[str, Any]) -> str:
    """Returns why a verdict changed, or what else did; empty if nothing did."""
    then, kind = said.claim, claim.kind
    parts = []
    if kind != then.kind:
        parts.append("one-sided: better is not worse")
    for entry, what in (("within", "tolerance"), ("by_at_least", "border")):
        old, new = (getattr(one, entry, None) for one in (then, claim))
        if old is not None and new is not None and new != old:
            parts.append(f"{what} {old:g}, now {new:g}")
    if row["origin"] not in ("paper", "identity"):
        parts.append(f"not the paper's: {row['origin']}")
    if NOT_KEPT in str(row["why"]):
        return "; ".join([*parts, NOT_KEPT])
    if "diverged" in str(row["why"]):
        parts.append("a run that diverged counts as the worst value")
    changed = row["verdict"] != said.row["verdict"]
    asked, had = int(row["replicates"]), int(said.row["replicates"])
    if asked != had and not np.isnan(float(said.row["estimate"])):
        parts.append(f"{asked} replicates, before {had}")
    if changed and row["verdict"] == OPEN and float(row["p"]) <= 0.05:
        parts.append(
            f"Holm: p = {float(row['p']):.2g}, corrected {row['corrected']:.2g}"
        )
    if changed and not parts:
        parts.append("pairs and steps within the claim are corrected, too")
    return "; ".join(parts)


def page(
    commit: str,
    changes: list[tuple[str, ...]],
    missing: list[tuple[str, int]],
    judged: dict[str, tuple[list[Said], pd.DataFrame]],
) -> str:
    """Returns the page on what changed."""
    then = [said.row["verdict"] for old, _ in judged.values() for said in old]
    rows = [("all, before", *_numbers(then))]
    found = pd.concat([frame for _, frame in judged.values()])
    for origin, mine in found.groupby("origin", sort=False):
        rows.append((f"now: {origin}", *_numbers(mine["verdict"].to_list())))
    table = pd.DataFrame(rows, columns=["verdicts", *experiments.VERDICTS])
    columns = ["study", "claim", "before", "now", "origin", "why"]
    again_ = pd.DataFrame(
        [
            (name, number, f"`stalesim run {experiments.file_of(name)} -o {name}`")
            for name, number in missing
        ],
        columns=["study", "claims not decided for want of numbers", "to be run again"],
    )
    return (
        "# Verdicts judged again\n\n"
        "Generated by `python docs/rejudge.py`; do not edit.\n\n"
        f"What became of the verdicts of commit {commit}. Since then a run that\n"
        "diverged counts as the worst value, claims that say *at least as good* are\n"
        "one-sided, a claim names its swept values and its origin, and\n"
        "the claims of one origin in a study are corrected by Holm\n"
        "([judging.md](judging.md)). Studies that were not run again are judged by\n"
        "the intervals that were kept of them. Claims whose verdict, words and origin\n"
        "are as before are left out, and so are identities.\n\n"
        f"{markdown(table)}\n\n## Row by row\n\n"
        "Rows of the README's table: hold/do not hold/undecided.\n\n"
        f"{markdown(_by_row(judged))}\n\n## What intervals do not tell\n\n"
        "Undecided until they are run again: after the command, `python\n"
        "docs/generate.py NAME` and `python docs/rejudge.py`.\n\n"
        f"{markdown(again_)}\n\n## Claim by claim\n\n"
        f"{markdown(pd.DataFrame(changes, columns=columns))}\n"
    )


def _by_row(judged: dict[str, tuple[list[Said], pd.DataFrame]]) -> pd.DataFrame:
    """Returns the verdicts of before and of now on each experiment that has some."""
    cells = []
    for row in experiments.read(ROOT / experiments.LISTED):
        names = [
            experiments.name_of(ROOT / f"scenarios/{s}.yaml") for s in row.scenarios
        ]
        mine = [judged[name] for name in names if name in judged]
        then = [s.row for old, _ in mine for s in old if row.is_about(s.row["says"])]
        now = [
            each
            for _, found in mine
            for each in found.to_dict("records")
            if row.is_about(str(each["says"]))
        ]
        paper = [each for each in now if each["origin"] == experiments.PAPER]
        others = [each for each in now if each["origin"] != experiments.PAPER]
        if then or now:
            parts = (
                [str(each["verdict"]) for each in x] for x in (then, paper, others)
            )
            counts = ["/".join(map(str, _numbers(part))) for part in parts]
            cells.append((row.id, row.what, *counts))
    columns = ["row", "what", "before", "now: the paper's", "now: others'"]
    return pd.DataFrame(cells, columns=columns)


def _numbers(verdicts: list[str]) -> list[int]:
    return [verdicts.count(verdict) for verdict in experiments.VERDICTS]


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
