"""Judges every published verdict again, by the claims as their scenarios have them now.

python docs/rejudge.py

Of most studies the numbers of their runs are kept (`values.csv`), and these are judged.
Of one that was taken in before there was such a file the verdicts stay as they are,
under the words and the origin that their claims have now; a claim without a verdict is
undecided, with the command that would decide it.
"""

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd

import rows as experiments
from analysis.claims import Finding, ReplicatePlan, judge
from analysis.claims import measured as measuring
from analysis.claims.findings import points, weighed
from analysis.claims.measured import Measured, read_csv
from simulator.claims import Claim
from simulator.scenario.reading import read
from simulator.scenario.study import expand

ROOT = experiments.ROOT
RESULTS = ROOT / experiments.RESULTS
NOT_KEPT = "not kept: run the study again"


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
            sys.stdout.write(f"{folder.name}: verdicts kept, for want of numbers\n")
        found.to_csv(folder / "claims.csv", index=False)
    return 0


def claims_of(scenario: Any) -> list[Claim]:
    """Returns the claims of a scenario."""
    return list(scenario.claims)


def again(folder: Path, claims: list[Claim]) -> pd.DataFrame:
    """Returns the verdicts on a study whose numbers are kept."""
    about = json.loads((folder / "about.json").read_text(encoding="utf-8"))
    plan = ReplicatePlan(about["replicates"], tuple(about.get("looks", ())))
    return judge(read_csv(folder / "values.csv"), claims, plan)


def kept(folder: Path, scenario: Any, path: Path) -> pd.DataFrame:
    """Returns the verdicts that are kept of a study without numbers."""
    old = pd.read_csv(folder / "claims.csv", keep_default_na=False).to_dict("records")
    rows = []
    for made in _unmeasured(scenario):
        same = [row for row in old if _begins(row["claim"], made.claim)]
        if same:
            old.remove(same[0])  # several claims on the same groups: in their order
        why = f"{NOT_KEPT}: stalesim run {path.relative_to(ROOT)}"
        lacking = made._replace(measured=NOT_KEPT, why=why)._asdict()
        row = same[0] if same else lacking
        rows.append(row | {"says": made.says, "origin": made.origin})
    return pd.DataFrame(rows, columns=pd.Index(Finding._fields))


def _begins(claim: str, groups: str) -> bool:
    """Says whether a claim in words is about these groups, named as it names them."""
    return claim.startswith(groups) and claim[len(groups) :][:1] in ("", " ", ":")


def _unmeasured(scenario: Any) -> Iterator[Finding]:
    """Yields a finding for each claim at each of its points, without any number."""
    runs = [
        (run.variant, run.label, json.loads(json.dumps(run.parameters)), 0, "time")
        for run in expand(scenario)
        if run.replicate == 0
    ]
    table = pd.DataFrame(runs, columns=pd.Index(measuring.OF_RUN))
    groups = Measured(table, pd.DataFrame(index=table.index), pd.DataFrame())
    for claim in claims_of(scenario):
        for names in points(groups, claim):
            mine = table[table["group"].isin(names)].reset_index(drop=True)
            nothing = Measured(mine, pd.DataFrame(index=mine.index), pd.DataFrame())
            everywhere = claim.model_copy(update={"at": {}})
            yield from weighed(nothing, everywhere, scenario.replicates)


if __name__ == "__main__":
    raise SystemExit(main())
