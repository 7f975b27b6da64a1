"""The table of experiments: a row for each of the papers', as rows.csv lists them.

What is counted are the verdicts in evidence/results; nothing of it is typed by hand.
"""

import csv
import fnmatch
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd

ROOT = Path(__file__).resolve().parent.parent
RESULTS = Path("evidence/results")
LISTED = Path("evidence/rows.csv")
APART = Path("evidence/apart.csv")
VERDICTS = ["holds", "does not hold", "undecided", "not decidable"]
HOLDS, FAILS, OPEN, UNDECIDABLE = VERDICTS
PAPER, IDENTITY = "paper", "identity"
"""Origin of the claims that are counted; those of others are listed apart."""
COUNTED, SETTING, CONTENT, VARIANT = "counted", "setting", "content", "variant"
"""How a paper's sentence counts; docs/judging.md has the rule."""
SENTENCE = "sentence"
"""Word in apart.csv: its claims are one sentence together."""
KINDS = (SENTENCE, VARIANT, CONTENT, SETTING)
PARTIAL = re.compile(r"^mnist5k")
"""Found in the names of data that are a part of a paper's."""
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

    A test must exist, and must not be marked `long`.
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


class Apart(NamedTuple):
    """Claims that do not count each by itself.

    Attributes:
        scenario: their files in scenarios/, without the ending, `*` for anything.
        claims: regular expression that is found in what they say; empty for all.
        kind: one of `KINDS`.
        why: Reason.
    """

    scenario: str
    claims: str
    kind: str
    why: str

    def is_about(self, scenario: str, says: str) -> bool:
        """Says whether a claim of a file is one of these."""
        if not fnmatch.fnmatchcase(scenario, self.scenario):
            return False
        return re.search(self.claims, says) is not None


def apart(root: Path = ROOT) -> list[Apart]:
    """Returns what evidence/apart.csv lists; nothing if there is none.

    Raises:
        SystemExit: A line has another kind than `KINDS`.
    """
    path = root / APART
    if not path.exists():
        return []
    with path.open(encoding="utf-8", newline="") as file:
        found = [Apart(*line.values()) for line in csv.DictReader(file)]
    for one in found:
        if one.kind not in KINDS:
            raise SystemExit(
                f"{APART}: as must be {', '.join(KINDS)}, got {one.kind!r}; correct it"
            )
    return found


def sentences(rows: list[Row], root: Path = ROOT) -> pd.DataFrame:
    """Returns the sentences of papers that were judged, a row each.

    Claims that say the same, or that apart.csv joins, are one sentence. It holds if all
    of them do at all of their swept values, does not hold if one does not, and is
    undecided otherwise, or not decidable where only such are left.

    Args:
        rows: the experiments; a sentence that several share is one of the first.
        root: Root of the repository.

    Returns:
        Columns row, scenario, data, says (of the first claim), how (counted, setting,
        content or variant), verdict, replicates (a tuple).
    """
    listed = apart(root)
    found: dict[tuple[str, str], tuple[Any, ...]] = {}
    lines = []
    for row in rows:
        claims = claims_of(row, root)
        mine = claims.loc[claims["origin"] == PAPER]
        of = ["scenario", "data", "says", "verdict", "replicates"]
        for scenario, data, says, *judged in mine[of].itertuples(index=False):
            kinds = {one.kind: one for one in listed if one.is_about(scenario, says)}
            joined = kinds.get(SENTENCE)
            key = scenario, joined.claims if joined else says
            new = (row.id, scenario, data, says, {*kinds}, [])
            if key not in found:
                lines.append(new)
            first = found.setdefault(key, new)
            if first[0] == row.id:
                first[-1].append(judged)
    rows_ = [
        (*line, how(kinds, data, verdict), verdict, tuple(n for _, n in judged))
        for *line, kinds, judged in lines
        for data, verdict in [(line[2], together([one for one, _ in judged]))]
    ]
    columns = ["row", "scenario", "data", "says", "how", "verdict", "replicates"]
    return pd.DataFrame(rows_, columns=pd.Index(columns))


def together(verdicts: list[str]) -> str:
    """Returns the verdict on claims that are all to hold."""
    if FAILS in verdicts:
        return FAILS
    left = {*verdicts} - {HOLDS}
    return UNDECIDABLE if left == {UNDECIDABLE} else OPEN if left else HOLDS


def how(kinds: set[str], data: str, verdict: str) -> str:
    """Returns how a verdict counts, by what apart.csv says of its claim."""
    if VARIANT in kinds:
        return VARIANT
    if CONTENT in kinds and verdict == HOLDS:
        return CONTENT
    if SETTING in kinds or PARTIAL.search(data):
        return SETTING
    return COUNTED


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
    """Returns a line per paper: its experiments, and verdicts on its own sentences.

    A sentence counts once, also where several experiments share it. Where a family of
    experiments has no claims but identities, these are counted.

    Args:
        rows: the experiments.
        root: Root of the repository.
    """
    columns = ["paper", "experiments", *VERDICTS, "not at the paper's setting"]
    columns += ["holds without content", "shown by a test or table", NOT_RUN]
    lines = []
    for family, title in PAPERS.items():
        mine = [row for row in rows if row.id.split("-")[0] == family]
        if not mine:
            continue
        judged = sentences(mine, root)
        counted = judged[judged["how"] == COUNTED]
        if not len(judged):
            claims = pd.concat([claims_of(row, root) for row in mine])
            counted = claims.loc[claims["origin"] == IDENTITY]
        elsewhere = _slashed(judged[judged["how"] == SETTING])
        empty = int((judged["how"] == CONTENT).sum())
        firsts = [_cells(row, root)[4] for row in mine]
        instead = sum(first in ("test", "table") for first in firsts)
        waiting = sum(first == NOT_RUN for first in firsts)
        verdicts = _counts(counted)
        lines.append((title, len(mine), *verdicts, elsewhere, empty, instead, waiting))
    return pd.DataFrame(lines, columns=pd.Index(columns))


def _cells(row: Row, root: Path) -> tuple[object, ...]:
    studies, some = [], False
    for scenario in row.scenarios:
        file = f"scenarios/{scenario}.yaml"
        link = f"[{scenario.split('/')[1]}]({file})"
        there = (root / RESULTS / name_of(root / file) / "about.json").exists()
        studies.append(link if there else f"{link} ({NOT_RUN})")
        some |= there
    judged, claims = sentences([row], root), claims_of(row, root)
    mine = judged[judged["how"] == COUNTED]
    numbers: tuple[object, ...] = tuple(_counts(mine))
    if not any(numbers):
        instead = _instead(row, some=some, claimed=len(judged) > 0)
        numbers = (instead, *[""] * (len(VERDICTS) - 1))
    others = [
        f"{how} {_slashed(judged[judged['how'] == how])}"
        for how in (SETTING, CONTENT, VARIANT)
        if (judged["how"] == how).any()
    ]
    others += [
        f"{origin} {_slashed(claims[claims['origin'] == origin])}"
        for origin in dict.fromkeys(claims["origin"])
        if origin != PAPER
    ]
    known = ", ".join(dict.fromkeys(filter(None, _data(row, root))))
    shown = ", ".join(dict.fromkeys(map(_link, row.shown)))
    replicates = [n for each in mine["replicates"] for n in each]
    behind = (*numbers, _span(replicates), ", ".join(others))
    return row.id, row.what, ", ".join(studies), known, *behind, shown


def _data(row: Row, root: Path) -> list[str]:
    """Returns the data of the studies that have results, "" where there are none."""
    names = (name_of(root / f"scenarios/{scenario}.yaml") for scenario in row.scenarios)
    files = (root / RESULTS / name / "about.json" for name in names)
    return [
        json.loads(file.read_text(encoding="utf-8")).get("dataset") or ""
        for file in files
        if file.exists()
    ]


def claims_of(row: Row, root: Path) -> pd.DataFrame:
    """Returns the claims of its studies that are about an experiment."""
    columns = ["scenario", "data", "says", "claim", "origin", "verdict"]
    columns += ["estimate", "replicates"]
    frames = [pd.DataFrame(columns=pd.Index(columns))]
    for scenario in row.scenarios:
        name = name_of(root / f"scenarios/{scenario}.yaml")
        file = root / RESULTS / name / "claims.csv"
        if not file.exists():
            continue
        found = pd.read_csv(file, keep_default_na=False)
        about = json.loads(file.with_name("about.json").read_text(encoding="utf-8"))
        data = about.get("dataset") or ""
        own = found.loc[[row.is_about(says) for says in found["says"]]]
        if len(own):
            own = own.assign(scenario=scenario, data=data)
            frames.append(own.reindex(columns=columns))
    return pd.concat(frames[1:] or frames)


def _counts(claims: pd.DataFrame) -> list[int]:
    return [int((claims["verdict"] == verdict).sum()) for verdict in VERDICTS]


def _slashed(claims: pd.DataFrame) -> str:
    """Returns how many have each of `VERDICTS`; empty if there are no claims."""
    return "/".join(map(str, _counts(claims))) if len(claims) else ""


def _span(replicates: Iterable[Any]) -> str:
    """Returns how many replicates stand behind verdicts: one number, or from and to."""
    known = sorted({int(n) for n in replicates if int(n)})
    return "-".join(map(str, dict.fromkeys([known[0], known[-1]]))) if known else ""


def _instead(row: Row, *, some: bool, claimed: bool) -> str:
    """Returns what an experiment has in place of verdicts that count."""
    if claimed:
        return "apart"
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
    """Returns a table with links as a page in evidence/pages/ has them."""
    pages = "evidence/pages/"
    return re.sub(rf"\]\(({pages})?", lambda m: "](" if m[1] else "](../../", text)


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
