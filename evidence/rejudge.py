"""Judges every published verdict again, by the claims as their scenarios have them now.

    python -m evidence.rejudge

Of most studies the numbers of their runs are kept (`values.csv`), and these are judged.

Of a study that was taken in before there was such a file, means and t-intervals of
differences are kept (`intervals.csv`). They tell mean and spread of a sample, and these
bound each of its order statistics, whatever its law: how many of its numbers lie on one
side of a border. What that does not tell (times, whose evaluations are not known, and
steps of a sweep) is undecided, with the command that would decide it.
"""

import json
import math
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import scipy.stats

from stalesim.analysis.claims import COLUMNS, judge
from stalesim.analysis.claims.findings import corrected, weighed
from stalesim.analysis.claims.groups import of_runs, points
from stalesim.analysis.claims.measured import OF_RUN, Measured, read_csv
from stalesim.simulator.scenario.claims import Claim
from stalesim.simulator.scenario.reading import read
from stalesim.simulator.scenario.study import expand

from . import rows as experiments

ROOT = experiments.ROOT
RESULTS = ROOT / experiments.RESULTS
NOT_KEPT = "not kept: run the study again"
OF_DIFFERENCE = ("higher", "no_worse", "close")
"""Kinds whose intervals are of differences of two groups."""


def main() -> int:
    """Judges again and writes; says which studies lack numbers."""
    for folder in sorted(RESULTS.iterdir()):
        if not (folder / "claims.csv").exists():
            continue
        path = ROOT / experiments.file_of(folder.name)
        scenario = read(path)
        if (folder / "values.csv").exists():
            found = again(folder, claims_of(scenario))
        else:
            found = kept(folder, scenario, path)
            lacking = sum(NOT_KEPT in why for why in found["why"])
            sys.stdout.write(f"{folder.name}: claims without numbers: {lacking}\n")
        found.to_csv(folder / "claims.csv", index=False)
    return 0


def claims_of(scenario: Any) -> list[Claim]:
    """Returns the claims of a scenario."""
    return list(scenario.claims)


def again(folder: Path, claims: list[Claim]) -> pd.DataFrame:
    """Returns the verdicts on a study whose numbers are kept."""
    about = json.loads((folder / "about.json").read_text(encoding="utf-8"))
    plan = about["replicates"], tuple(about.get("looks", ()))
    return judge(read_csv(folder / "values.csv"), claims, *plan)


def kept(folder: Path, scenario: Any, path: Path) -> pd.DataFrame:
    """Returns the verdicts on a study of which intervals alone are kept."""
    about = json.loads((folder / "about.json").read_text(encoding="utf-8"))
    asked = about["replicates"]
    old: list[Any] = pd.read_csv(folder / "intervals.csv").to_dict("records")
    rows: list[dict[str, Any]] = []
    for claim, groups in of_points(scenario):
        (made,) = weighed(groups, claim, asked)
        same = [row for row in old if _begins(row["claim"], made["claim"])]
        if same:
            old.remove(same[0])  # several claims on the same groups: in their order
        numbers = _like(groups, claim, same[0]) if same else None
        if numbers is not None:
            rows += weighed(numbers, claim, int(same[0]["replicates"]))
            continue
        why = f"{NOT_KEPT}: stalesim run {path.relative_to(ROOT)}"
        words = made["claim"], NOT_KEPT
        if same:
            words = same[0]["claim"], str(same[0]["measured"])
        claim_and_numbers = {"claim": words[0], "measured": words[1]}
        rows.append(made | claim_and_numbers | {"why": why, "p": math.nan})
    frame = pd.DataFrame(rows, columns=pd.Index(COLUMNS))
    return corrected(frame, asked)


def _like(groups: Measured, claim: Claim, row: dict[str, Any]) -> Measured | None:
    """Returns what an interval tells of its sample; none if it does not tell enough.

    Of n numbers with mean m and spread s (of the sample, by n), the i-th smallest lies
    between m - s sqrt((n - i) / i) and m + s sqrt((i - 1) / (n - i + 1)).

    Source: Hawkins, On the bounds of the range of order statistics (JASA 1971).
    """
    n, names = int(row["replicates"]), [*groups.rows]
    mean, end = float(row["estimate"]), float(row["high"])
    alone = claim.kind == "value" or (claim.kind == "slope" and len(names) == 1)
    if n < 2 or not (alone or claim.kind in OF_DIFFERENCE) or not math.isfinite(end):
        return None
    half = end - mean
    spread = half * math.sqrt(n - 1) / scipy.stats.t.ppf(0.975, n - 1)
    rank = np.arange(1.0, n + 1)
    low = mean - spread * np.sqrt((n - rank) / rank)
    high = mean + spread * np.sqrt((rank - 1) / (n - rank + 1))
    nothing = np.zeros(n)
    ends = {names[0]: (low, high)} | dict.fromkeys(names[1:], (nothing, nothing))
    table = pd.concat(
        [
            groups.table.iloc[[at] * n].assign(replicate=range(n))
            for at in range(len(names))
        ],
        ignore_index=True,
    )
    (quantity,) = claim.quantities()
    lows, highs = (
        pd.DataFrame({quantity: np.concatenate([each[k] for each in ends.values()])})
        for k in (0, 1)
    )
    return Measured(table, lows, highs)


def _begins(claim: str, groups: str) -> bool:
    """Says whether a claim in words is about these groups, named as it names them."""
    return claim.startswith(groups) and claim[len(groups) :][:1] in ("", " ", ":")


def of_points(scenario: Any) -> Iterator[tuple[Claim, Measured]]:
    """Yields each claim at each of its points, with the groups that it is about."""
    runs = expand(scenario.model_copy(update={"replicates": 1}))
    groups, variants = of_runs(runs), {run.label: run.variant for run in runs}
    for claim in claims_of(scenario):
        for names in points(groups, claim):
            rows = [(variants[n], n, groups.parameters(n), 0, "") for n in names]
            table = pd.DataFrame(rows, columns=pd.Index(OF_RUN))
            nothing = pd.DataFrame(index=table.index)
            everywhere = claim.model_copy(update={"at": {}})
            yield everywhere, Measured(table, nothing, nothing)


if __name__ == "__main__":
    raise SystemExit(main())
