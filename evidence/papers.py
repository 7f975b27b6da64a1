"""The papers' sentences, each once: its panels, its readings, and what was decided.

papers.csv has a line a sentence: its words, and which claims of which scenarios are
about it. readings.csv says by which choice variants of a claim read the paper. A claim
that makes no such choice is about all readings of its sentence. notes.yaml says what
would have to be different where a sentence fails or depends on the reading.
"""

import csv
import fnmatch
import itertools
import re
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

import pandas as pd
import yaml

from . import rows as experiments
from .generators.formulas import markdown
from .rows import COUNTED, FAILS, HOLDS, OPEN, ROOT, VARIANT

LISTED = Path("evidence/papers.csv")
READINGS = Path("evidence/readings.csv")
NOTES = Path("evidence/notes.yaml")
HOLD, FAIL, UNSURE, DEPENDS = "holds", "fails", "inconclusive", "depends on the reading"
VERDICTS = (HOLD, FAIL, DEPENDS, UNSURE)
WORDS = {HOLDS: HOLD, FAILS: FAIL}
"""Verdicts of claims, in words of sentences; all others are inconclusive."""
PAPERS = {"VAFL": "vafl", "MAPA": "mapa", "FedBCD": "fedbcd", "A(DP)²SGD": "adp2sgd"}
"""Papers, and the names of their pages."""
LACKING = {
    "FedBCD": "its CNNs were not yet run at their width, its other data are not public",
    "A(DP)²SGD": "a pair of its runs takes hours of a GPU, or 92 of a core",
}
"""Why a paper has few sentences that are decided."""
Reading = tuple[tuple[str, str], ...]
"""Choices of a reading, each with what it is; in the order of readings.csv."""


class Sentence(NamedTuple):
    """A sentence of a paper.

    Attributes:
        paper: Name of the paper.
        where: Figure, table or section.
        words: The sentence in short.
        scenarios: Patterns of the names of its scenarios, a panel each.
        claims: Regular expression that is found in what its claims say.
        choices: Choices that must have been made in more than one way.
    """

    paper: str
    where: str
    words: str
    scenarios: tuple[str, ...]
    claims: str
    choices: tuple[str, ...] = ()

    def has(self, scenario: str) -> bool:
        """Says whether a scenario is one of its panels."""
        return any(fnmatch.fnmatchcase(scenario, each) for each in self.scenarios)

    def is_about(self, scenario: str, says: str) -> bool:
        """Says whether a claim of a scenario is one of the sentence's."""
        return self.has(scenario) and re.search(self.claims, says) is not None


class Interpretation(NamedTuple):
    """What some variants choose where the paper can be read in several ways.

    Attributes:
        scenarios: Pattern of the names of their scenarios.
        variants: Pattern of the variants, found in a claim that names one.
        choice: Words for the choice.
        is_: What they choose.
    """

    scenarios: str
    variants: re.Pattern[str]
    choice: str
    is_: str

    def is_made(self, scenario: str, claim: str) -> bool:
        """Says whether a claim names one of the variants."""
        if not fnmatch.fnmatchcase(scenario, self.scenarios):
            return False
        return self.variants.search(claim) is not None


class Assessed(NamedTuple):
    """What is known of a sentence.

    Attributes:
        sentence: The sentence.
        verdict: One of `VERDICTS`.
        why: Reason why nothing counts; empty where something does.
        cells: A row per claim, panel and reading: scenario, data, reading, verdict,
            estimate, how (it counts).
        panels: Number of its panels, run or not.
    """

    sentence: Sentence
    verdict: str
    why: str
    cells: pd.DataFrame
    panels: int = 0

    @property
    def counted(self) -> set[str]:
        """Its panels that have claims that count."""
        return {*map(panel, self.cells.loc[self.cells["how"] == COUNTED, "scenario"])}

    def has(self, scenario: str, says: Iterable[str]) -> bool:
        """Says whether one of some claims of a scenario is the sentence's."""
        return any(self.sentence.is_about(scenario, each) for each in says)

    @property
    def decided(self) -> bool:
        """Whether it counts as decided: on real data, by all readings alike."""
        return self.verdict in (HOLD, FAIL) and not self.why


def read(root: Path = ROOT) -> list[Sentence]:
    """Returns the sentences of all papers."""
    with (root / LISTED).open(encoding="utf-8", newline="") as file:
        return [
            Sentence(
                line["paper"],
                line["where"],
                line["sentence"],
                tuple(line["scenarios"].split()),
                line["claims"],
                tuple(filter(None, line["choices"].split(";"))),
            )
            for line in csv.DictReader(file)
        ]


def readings(root: Path = ROOT) -> list[Interpretation]:
    """Returns the choices that variants make."""
    with (root / READINGS).open(encoding="utf-8", newline="") as file:
        return [
            Interpretation(
                line["scenarios"],
                re.compile(rf"(?<![\w.-])(?:{line['variants']})(?![\w.-])"),
                line["choice"],
                line["is"],
            )
            for line in csv.DictReader(file)
        ]


def notes(root: Path = ROOT) -> dict[tuple[str, str], dict[str, str]]:
    """Returns what would have to be different (`note`), and a run that shows it.

    Its keys are a paper and a sentence of it.
    """
    listed = yaml.safe_load((root / NOTES).read_text(encoding="utf-8"))
    return {(one["paper"], one["sentence"]): one for one in listed}


def claims(root: Path = ROOT) -> pd.DataFrame:
    """Returns the judged claims of papers, with their readings and how they count."""
    listed, choices = experiments.apart(root), readings(root)
    rows = experiments.read(root / experiments.LISTED)
    found = pd.concat([experiments.claims_of(row, root) for row in rows])
    found = found[found["origin"] == experiments.PAPER].drop_duplicates()
    how, reading = [], []
    for one in found.itertuples():
        kinds = {each.kind for each in listed if each.is_about(one.scenario, one.says)}
        how.append(experiments.how(kinds - {VARIANT}, one.data, one.verdict))
        made = [each for each in choices if each.is_made(one.scenario, one.claim)]
        reading.append(tuple((each.choice, each.is_) for each in made))
    return found.assign(how=how, reading=reading).reset_index(drop=True)


def judge(root: Path = ROOT) -> list[Assessed]:
    """Returns the verdict on each sentence.

    By one reading it holds if all its claims do in all panels that were run, and fails
    if one does not. It holds or fails if it does by all readings, and depends on the
    reading if it holds by one and fails by another. It is inconclusive while a choice
    that it hangs on was made in one way alone. Claims that do not count, since they are
    not at the paper's setting or without content, decide nothing.
    """
    known = claims(root)
    rows = experiments.read(root / experiments.LISTED)
    names = {name for row in rows for name in row.scenarios}
    found = []
    for sentence in read(root):
        mine = {name for name in names if sentence.has(name)}
        panels = len({*map(panel, mine)})
        found.append(_judged(sentence, known)._replace(panels=panels))
    return found


def panel(scenario: str) -> str:
    """Returns the panel of a study, of which there may be two."""
    return scenario.removesuffix("_readings")


def _judged(sentence: Sentence, known: pd.DataFrame) -> Assessed:
    mine = [sentence.is_about(one.scenario, one.says) for one in known.itertuples()]
    cells = _spread(known.loc[pd.Series(mine, known.index, dtype=bool)])
    counted = cells[cells["how"] == COUNTED]
    if not len(counted):
        return Assessed(sentence, UNSURE, _why(cells), cells)
    made = {choice for of in counted["reading"] for choice in of}
    for choice in sentence.choices:
        if sum(choice == one for one, _ in made) < 2:
            return Assessed(sentence, UNSURE, f"one reading of {choice} alone", cells)
    by = [
        WORDS.get(experiments.together([*each]), UNSURE)
        for _, each in counted.groupby("reading", sort=False)["verdict"]
    ]
    verdict = DEPENDS if {HOLD, FAIL} <= {*by} else UNSURE
    if len({*by}) == 1:
        verdict = by[0]
    real = ~counted["data"].str.startswith("synthetic")
    return Assessed(sentence, verdict, "" if real.any() else "synthetic data", cells)


def _why(cells: pd.DataFrame) -> str:
    if not len(cells):
        return "not run"
    words = {"setting": "not at the paper's setting", "content": "without content"}
    return "; ".join(words[how] for how in dict.fromkeys(cells["how"]))


def _spread(found: pd.DataFrame) -> pd.DataFrame:
    """Returns claims once for every reading of their sentence that they are about."""
    most = max((len(of) for of in found["reading"]), default=0)
    whole = dict.fromkeys(of for of in found["reading"] if len(of) == most)
    lines = [
        one._replace(reading=of)
        for one, of in itertools.product(found.itertuples(index=False), whole)
        if {*one.reading} <= {*of}
    ]
    return pd.DataFrame(lines, columns=found.columns)


def summary(judged: list[Assessed]) -> str:
    """Returns how many sentences of each paper are decided, in a paragraph."""
    parts = []
    for paper in PAPERS:
        mine = [one for one in judged if one.sentence.paper == paper]
        of = Counter(one.verdict for one in mine if one.decided)
        fail = "does not" if of[FAIL] == 1 else "do not"
        words = {HOLD: "hold", FAIL: fail}
        found = [f"{of[each]} {word}" for each, word in words.items() if of[each]]
        decided = f"{of.total()} decided ({', '.join(found)})" if of else "none decided"
        depend = sum(one.verdict == DEPENDS for one in mine)
        why = f"{depend} of them depend on the reading" if depend else ""
        why = LACKING.get(paper, why)
        left = f"{len(mine) - of.total()} open{f' ({why})' if why else ''}"
        parts.append(f"- {paper}: {decided}, {left}")
    return (
        "Only runs at a paper's settings and on real data decide one. So far:\n\n"
        + "\n".join(parts)
    )


def page(paper: str, judged: list[Assessed], note: str) -> str:
    """Returns the page of a paper: its sentences with their readings."""
    mine = [one for one in judged if one.sentence.paper == paper]
    tally = Counter(one.verdict for one in mine)
    counts = ", ".join(f"{verdict} {tally[verdict]}" for verdict in VERDICTS)
    shown = [one for one in mine if (one.cells["how"] == COUNTED).any()]
    known = notes()
    rest = [
        (one.sentence.words, one.sentence.where, one.why, _panels(one))
        for one in mine
        if one not in shown
    ]
    columns = pd.Index(["sentence", "where", "why", "panels"])
    return (
        f"# {paper}, sentence by sentence\n\n{note}\n"
        f"{len(mine)} sentences: {counts}. Each is counted once: panels are rows,\n"
        "readings of the paper are columns. A cell has how many claims hold, do not\n"
        "hold, or are open, then the smallest and largest estimate. To run a panel\n"
        "again: `stalesim run PANEL`. [The rule](../../docs/judging.md#what-is-counted)"
        ",\n[every claim](reproduction.md).\n\n"
        + "".join(_shown(one) + _noted(one, known) for one in shown)
        + "## Inconclusive, since nothing counts\n\n"
        + f"{markdown(pd.DataFrame(rest, columns=columns))}\n"
    )


def _shown(one: Assessed) -> str:
    why = f" ({one.why})" if one.why else ""
    run = len({*map(panel, one.cells["scenario"])})
    of = f", {run} of {one.panels} panels" if one.panels > 1 else ""
    head = f"**{one.verdict}**{why}, {one.sentence.where}{of}"
    lines = []
    for scenario, here in one.cells.groupby("scenario", sort=False):
        line = {"panel": _link(scenario)}
        for reading in dict.fromkeys(one.cells["reading"]):
            cell = here[here["reading"] == reading]
            line[_title(reading)] = _cell(cell) if len(cell) else "not run"
        lines.append(line)
    choices = " / ".join(choice for choice, _ in one.cells["reading"].iloc[0])
    head += f". Columns: {choices}" if choices else ""
    table = markdown(pd.DataFrame(lines))
    return f"## {one.sentence.words[:-1]}\n\n{head}.\n\n{table}\n\n"


def _noted(one: Assessed, known: dict[tuple[str, str], dict[str, str]]) -> str:
    found = known.get((one.sentence.paper, one.sentence.words))
    if found is None:
        return ""
    return f"{found['note'].strip()}\n\n    {found['run'].strip()}\n\n"


def _panels(one: Assessed) -> str:
    return ", ".join(map(_link, dict.fromkeys(one.cells["scenario"])))


def _link(scenario: object) -> str:
    return f"[{scenario}](../../scenarios/{scenario}.yaml)"


def _title(reading: Reading) -> str:
    return " / ".join(is_ for _, is_ in reading) or "as published"


def _cell(cell: pd.DataFrame) -> str:
    verdicts = Counter(WORDS.get(each, OPEN) for each in cell["verdict"])
    said = ", ".join(
        f"{verdicts[each]} {word}"
        for each, word in ((HOLD, "hold"), (FAIL, "do not"), (OPEN, "open"))
        if verdicts[each]
    )
    apart = {*cell["how"]} - {COUNTED}
    said += f" ({', '.join(sorted(apart))})" if apart else ""
    found = pd.to_numeric(cell["estimate"], errors="coerce").dropna()
    if not len(found):
        return said
    ends = dict.fromkeys(f"{each:.3g}" for each in (found.min(), found.max()))
    return f"{said}: {' to '.join(ends)}"
