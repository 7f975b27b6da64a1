"""The README's table: a row for every experiment of the papers, as rows.csv lists them.

What is counted are the verdicts in docs/results; nothing of it is typed by hand.
"""

import csv
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pandas as pd

ROOT = Path(__file__).resolve().parent.parent
RESULTS = Path("docs/results")
LISTED = Path("docs/rows.csv")
VERDICTS = ["holds", "does not hold", "undecided"]
PAPER = "paper"
"""Origin of the claims that are counted; those of others are listed apart."""
NO_CLAIM = "-"
"""Mark in the column `claims`: the study has no claim on this experiment."""
NONE_COLLECTED = 5
"""Exit status of pytest if it finds the tests, but none of them is marked."""
NOT_RUN, NOTHING_CLAIMED = "not run", "no claim"


class Row(NamedTuple):
    """One experiment.

    Attributes:
        id: Name of the figure, table, theorem or comparison.
        what: Description in a few words.
        scenarios: its files in scenarios/, without their ending.
        claims: regular expression that is found in what the claims of this experiment
            say; empty for all claims of the files, `NO_CLAIM` for none.
        shown: tests (`FILE::NAME`), generated tables (`FILE#HEADING`) and notebooks
            that show it, besides the claims or in place of them.
    """

    id: str
    what: str
    scenarios: tuple[str, ...]
    claims: str
    shown: tuple[str, ...]

    def is_about(self, says: str) -> bool:
        """Says whether a claim of one of the files is about this experiment."""
        return self.claims != NO_CLAIM and re.search(self.claims, says) is not None


def read(path: Path) -> list[Row]:
    """Returns the experiments of a list, in its order."""
    with path.open(encoding="utf-8", newline="") as file:
        return [
            Row(
                id=row["id"],
                what=row["what"],
                scenarios=tuple(row["scenarios"].split()),
                claims=row["claims"],
                shown=tuple(row["shown"].split()),
            )
            for row in csv.DictReader(file)
        ]


def mistakes(rows: list[Row], root: Path = ROOT) -> list[str]:
    """Returns what is wrong with the tests that experiments name, in lines.

    A test must exist, and be run at every landing: those marked `long` are not.
    """
    tests = sorted({path for row in rows for path in row.shown if "::" in path})
    command = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-m", "long"]
    # What is added to the user's calls of pytest must not change what is printed.
    environment = {k: v for k, v in os.environ.items() if k != "PYTEST_ADDOPTS"}
    done = subprocess.run(
        [*command, *tests],
        cwd=root,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode == NONE_COLLECTED:
        return []
    if done.returncode == 0:
        remedy = "must not be marked long; shorten it, or name another"
        named = re.findall(r"^(tests/.*::[^\[\n]*)", done.stdout, re.MULTILINE)
    else:
        remedy = "must be a test; correct its name"
        named = re.findall(r"^ERROR: (?:not found: )?(.*)$", done.stderr, re.MULTILINE)
        named = named or [done.stdout + done.stderr]
    return [f"{LISTED}: {name} {remedy}" for name in dict.fromkeys(named)]


def table(rows: list[Row], root: Path = ROOT) -> pd.DataFrame:
    """Returns what is known of every experiment.

    Args:
        rows: the experiments.
        root: Root of the repository.
    """
    columns = ["row", "what", "study", "data", *VERDICTS, "replicates"]
    columns += ["other claims", "test or table"]
    return pd.DataFrame([_cells(row, root) for row in rows], columns=columns)


def _cells(row: Row, root: Path) -> tuple[object, ...]:
    found, data, studies, some = [], [], [], False
    for scenario in row.scenarios:
        file = f"scenarios/{scenario}.yaml"
        link = f"[{scenario.split('/')[1]}]({file})"
        folder = root / RESULTS / name_of(root / file)
        if not (folder / "about.json").exists():
            studies.append(f"{link} ({NOT_RUN})")
            continue
        some = True
        studies.append(link)
        about = json.loads((folder / "about.json").read_text(encoding="utf-8"))
        data.append(about.get("dataset", ""))  # a world without numerics has none
        found.append(_claims(row, folder / "claims.csv"))
    claims = pd.concat(found) if found else _claims(row, root / "none")
    mine = claims.loc[claims["origin"] == PAPER]
    numbers: tuple[object, ...] = tuple(_counts(mine))
    if not any(numbers):
        numbers = (_instead(row, some=some), "", "")
    others = [
        f"{origin} {'/'.join(map(str, _counts(rows)))}"
        for origin, rows in claims.groupby("origin", sort=False)
        if origin != PAPER
    ]
    known = ", ".join(dict.fromkeys(filter(None, data)))
    shown = ", ".join(dict.fromkeys(map(_link, row.shown)))
    behind = (*numbers, _span(mine["replicates"]), ", ".join(others))
    return row.id, row.what, ", ".join(studies), known, *behind, shown


def _claims(row: Row, file: Path) -> pd.DataFrame:
    """Returns the claims of a study that are about an experiment."""
    if not file.exists():
        return pd.DataFrame(columns=["says", "origin", "verdict", "replicates"])
    found = pd.read_csv(file, keep_default_na=False)
    return found.loc[[row.is_about(says) for says in found["says"]]]


def _counts(claims: pd.DataFrame) -> list[int]:
    return [int((claims["verdict"] == verdict).sum()) for verdict in VERDICTS]


def _span(replicates: pd.Series) -> str:
    """Returns how many replicates stand behind verdicts: one number, or from and to."""
    known = sorted({int(n) for n in replicates if int(n)})
    return "-".join(map(str, dict.fromkeys([known[0], known[-1]]))) if known else ""


def _instead(row: Row, *, some: bool) -> str:
    """Returns what an experiment has in place of verdicts."""
    if any(path.startswith("tests/") for path in row.shown):
        return "test"
    if row.shown:
        return "table"
    return NOTHING_CLAIMED if some else NOT_RUN


def _link(shown: str) -> str:
    """Returns a link that is named like the file; a test's own name is not in it."""
    target = shown.split("::")[0]
    return f"[{Path(target.split('#')[0]).stem}]({target})"


def others(rows: list[Row], root: Path = ROOT) -> str:
    """Returns links to the studies with results that belong to no experiment."""
    listed = {
        f"scenarios/{scenario}.yaml" for row in rows for scenario in row.scenarios
    }
    names = sorted(path.parent.name for path in (root / RESULTS).glob("*/about.json"))
    files = (file_of(name, root) for name in names)
    return ", ".join(f"[{Path(f).stem}]({f})" for f in files if f not in listed)


def name_of(scenario: Path) -> str:
    """Returns the name of the study that a file describes."""
    found = re.search(r"^name: (\S+)$", scenario.read_text(encoding="utf-8"), re.M)
    if found is None:
        raise SystemExit(f"{scenario}: has no line 'name: NAME'; add one")
    return found[1]


def file_of(name: str, root: Path = ROOT) -> str:
    """Returns where the scenario of a study is, from the root of the repository."""
    for path in sorted((root / "scenarios").rglob("*.yaml")):
        if name_of(path) == name:
            return path.relative_to(root).as_posix()
    raise SystemExit(f"{name}: no file of scenarios/ has this name; is it a new one?")
