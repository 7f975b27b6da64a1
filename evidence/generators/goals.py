"""What users of other simulators can say, and whether they can here: `goals.md`.

The answers are typed in `evidence/goals.yaml`. Each of ours names scenarios and tests
that must exist; those of others name a file of a release, which nothing here can look
up.
"""

import re
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd
import yaml

from stalesim.analysis.markup import literal

from .formulas import markdown

LISTED = Path("evidence/goals.yaml")
OURS = "stalesim"
YES, PARTLY, NO = "yes", "partly", "no"
INTRODUCTION = """\
What users of other programs can say in an experiment, row by row, and whether it can
be said here. We chose the rows: those that users of these programs asked for, whether
we have them or not. So a count of them says nothing about a program. Each answer was
looked up in the code of one release:

{releases}

*Yes*: there is a key, a class or a shipped example; that it could be programmed is no
yes, neither there nor here. *Partly*: something is missing, which the lists below name.
*No*: the release was searched for words of the row, and what was found does something
else; it may have been missed, and later releases may have it. None of these programs
was run for this page. The files are [below](#where-it-is), ours in the last column. If
a cell is wrong, correct `evidence/goals.yaml`.

Not in the table are simulators of other questions that were held against real systems
as well: FedDES (time of federated runs), RLSim and Frontier (clusters for language
models). By their papers they come within 2 to 5 % of throughput.

To train on real devices, use one of the others: stalesim is a simulator.
"""


class Goals(NamedTuple):
    """The table.

    Attributes:
        systems: `name` of each other program, and the release it is `of`.
        rows: What can be said: `topic`, `what`, the words that were `sought`, `ours`,
            and the cell of each system.
    """

    systems: dict[str, dict[str, str]]
    rows: list[dict[str, Any]]


class Answered(NamedTuple):
    """An answer.

    Attributes:
        answer: `YES`, `PARTLY` or `NO`.
        shown: Files that show it.
        but: What is missing; empty unless the answer is `PARTLY`.
    """

    answer: str
    shown: tuple[str, ...] = ()
    but: str = ""


def read(root: Path) -> Goals:
    """Returns the table.

    Args:
        root: Folder of the repository.
    """
    return Goals(**yaml.safe_load((root / LISTED).read_text(encoding="utf-8")))


def ours(row: dict[str, Any]) -> Answered:
    """Returns our answer; YAML reads the words yes and no as truth values."""
    said = row["ours"]
    if said is False:
        return Answered(NO)
    if True in said:
        return Answered(YES, tuple(said[True]))
    return Answered(PARTLY, tuple(said[PARTLY]), said["but"])


def theirs(row: dict[str, Any], system: str) -> Answered:
    """Returns the answer for another system."""
    said = row[system]
    if said is False:
        return Answered(NO)
    answer, path, *but = said
    return Answered(YES if answer is True else answer, (path,), *but)


def mistakes(root: Path) -> list[str]:
    """Returns what is wrong with the table, in lines.

    Args:
        root: Folder of the repository.
    """
    found = []
    goals = read(root)
    for row in goals.rows:
        cells = [ours(row), *(theirs(row, system) for system in goals.systems)]
        for cell in cells:
            good = cell.answer == NO or cell.shown
            if not good or (cell.answer == PARTLY) != bool(cell.but):
                found.append(
                    f"{LISTED}: {row['what']}: a cell must be no, yes with a file, or "
                    f"partly with a file and what is missing, got {cell}; correct it"
                )
        found += [
            f"{LISTED}: {row['what']}: {shown} must exist; correct it, or say no"
            for shown in cells[0].shown
            if not _exists(shown, root)
        ]
    return found


def _exists(shown: str, root: Path) -> bool:
    path, _, test = shown.partition("::")
    if not (root / path).is_file():
        return False
    if not test:
        return path.startswith("scenarios/")
    return f"\ndef {test}(" in (root / path).read_text(encoding="utf-8")


def document(root: Path, note: str) -> str:
    """Returns the page.

    Args:
        root: Folder of the repository.
        note: Note below the title.
    """
    goals = read(root)
    releases = "\n".join(f"- {of['name']}: {of['of']}" for of in goals.systems.values())
    introduction = INTRODUCTION.format(releases=releases)
    parts = [f"# Compared with other simulators\n\n{note}\n{introduction}"]
    for topic in dict.fromkeys(row["topic"] for row in goals.rows):
        mine = [row for row in goals.rows if row["topic"] == topic]
        parts.append(f"## {topic}\n\n{markdown(_answers(goals, mine))}\n")
    parts.append("## Where it is\n")
    for system, of in goals.systems.items():
        parts.append(f"### {of['name']}\n\n{markdown(_files(goals, system))}\n")
    return "\n".join(parts)


def _answers(goals: Goals, rows: list[dict[str, Any]]) -> pd.DataFrame:
    lines = []
    for row in rows:
        mine = ours(row)
        line = {"": row["what"], OURS: mine.answer}
        for system, of in goals.systems.items():
            line[of["name"]] = theirs(row, system).answer
        line["shown here by"] = ", ".join(
            [*dict.fromkeys(map(_link, mine.shown)), *filter(None, [mine.but])]
        )
        lines.append(line)
    return pd.DataFrame(lines)


def _link(shown: str) -> str:
    path = shown.partition("::")[0]
    return f"[{Path(path).stem}](../../{path})"


def _files(goals: Goals, system: str) -> pd.DataFrame:
    lines = []
    for row in goals.rows:
        cell = theirs(row, system)
        said = [f"searched for `{row['sought']}`"] if row["sought"] else []
        where = [f"`{path}`" for path in cell.shown] or said
        lines.append((row["what"], cell.answer, *where, cell.but))
    columns = ["", "answer", "where", "but"]
    return pd.DataFrame(lines, columns=pd.Index(columns)).map(_escaped)


def _escaped(cell: str) -> str:
    """Returns a cell with the bars of a pattern as a table shows them."""
    return re.sub(r"\|", ", ", cell) if "`" in cell else literal(cell)
