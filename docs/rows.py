"""The table of experiments: a row for each of the papers', as rows.csv lists them.

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
PAPER, IDENTITY = "paper", "identity"
"""Origin of the claims that are counted; those of others are listed apart."""
NO_CLAIM = "-"
"""Mark in the column `claims`: the study has no claim on this experiment."""
NONE_COLLECTED = 5
"""Exit status of pytest if it finds the tests, but none of them is marked."""
NOT_RUN, NOTHING_CLAIMED = "not run", "no claim"
PAPERS = {
    "VAFL": "VAFL (Chen, Jin, Sun, Yin)",
    "MAPA": "MAPA (Li, Yang, Ren, Zhao)",
    "BCD": "FedBCD (Liu, Kang, Zhang, Li, Cheng, Chen, Hong, Yang)",
    "ADP": "A(DP)²SGD (Xu, Zhang, Wang)",
    "PRIV": "statements on privacy that we refute",
    "X": "papers compared: equal by algebra",
}
"""Papers and other families of experiments, by the first part of their ids."""


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


def by_paper(rows: list[Row], root: Path = ROOT) -> pd.DataFrame:
    """Returns a line per paper: its experiments, and verdicts on its own claims.

    A claim counts once, also where several experiments share it. Where a family of
    experiments has no claims but identities, these are counted.

    Args:
        rows: the experiments.
        root: Root of the repository.
    """
    columns = ["paper", "experiments", *VERDICTS, "shown by a test or table", NOT_RUN]
    lines = []
    for family, title in PAPERS.items():
        mine = [row for row in rows if row.id.split("-")[0] == family]
        claims = _of_all(mine, root)
        for origin in (PAPER, IDENTITY):
            counted = claims.loc[claims["origin"] == origin]
            if len(counted):
                break
        firsts = [_cells(row, root)[4] for row in mine]
        instead = sum(first in ("test", "table") for first in firsts)
        waiting = sum(first == NOT_RUN for first in firsts)
        numbers = (len(mine), *_counts(counted), instead, waiting)
        if mine:
            lines.append((title, *numbers))
    return pd.DataFrame(lines, columns=pd.Index(columns))


def _of_all(rows: list[Row], root: Path) -> pd.DataFrame:
    """Returns the claims of some experiments, each once."""
    found = {
        (scenario, number): claim
        for row in rows
        for scenario in row.scenarios
        for number, claim in _of_file(row, scenario, root).iterrows()
    }
    columns = ["says", "origin", "verdict", "replicates"]
    return pd.DataFrame(found.values(), columns=pd.Index(columns))


def _of_file(row: Row, scenario: str, root: Path) -> pd.DataFrame:
    folder = root / RESULTS / name_of(root / "scenarios" / f"{scenario}.yaml")
    return _claims(row, folder / "claims.csv")


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


def from_pages(text: str) -> str:
    """Returns a table with links as a page in docs/ has them."""
    return re.sub(r"\]\((docs/)?", lambda m: "](" if m[1] else "](../", text)


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
