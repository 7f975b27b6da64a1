"""The papers' sentences: each claim is of one, and how readings make a verdict."""

import csv
import json
import re
import shlex
from collections import Counter
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from evidence import papers, rows
from stalesim.simulator.scenario.reading import read_any

ROOT = Path(__file__).parents[2]
SENTENCES = papers.read()
SCENARIOS = {name for row in rows.read(ROOT / rows.LISTED) for name in row.scenarios}


@cache
def _scenario(name: str) -> Any:
    return read_any(ROOT / f"scenarios/{name}.yaml")


def _said() -> list[tuple[str, str]]:
    """Returns what the papers' claims say, also of studies that were not run."""
    found = (
        (name, claim.says)
        for name in sorted(SCENARIOS)
        for claim in getattr(_scenario(name), "claims", ())
        if claim.origin == rows.PAPER
    )
    return list(dict.fromkeys(found))


def test_every_claim_of_a_paper_is_of_a_sentence_and_every_sentence_has_one() -> None:
    said = _said()
    assert [one for one in said if not any(s.is_about(*one) for s in SENTENCES)] == []
    without = [s.words for s in SENTENCES if not any(s.is_about(*one) for one in said)]
    assert without == []


def test_every_reading_is_of_some_claim() -> None:
    judged = [(one.scenario, one.claim) for one in papers.claims().itertuples()]
    variants = [
        (name, variant)
        for name in SCENARIOS
        for variant in getattr(
            read_any(ROOT / f"scenarios/{name}.yaml"), "variants", ()
        )
    ]
    for choice in papers.readings():
        assert any(choice.is_made(*one) for one in judged + variants), choice


def test_what_does_not_hold_has_a_note_whose_run_can_be_started() -> None:
    judged = {(one.sentence.paper, one.sentence.words): one for one in papers.judge()}
    known = papers.notes()
    asked = {
        key
        for key, one in judged.items()
        if one.verdict in (papers.FAIL, papers.DEPENDS)
    }
    assert asked <= {*known}, "add to evidence/notes.yaml what would have to differ"
    for key, noted in known.items():
        assert rows.COUNTED in {*judged[key].cells["how"]}, "its page does not show it"
        program, command, name, *options = shlex.split(noted["run"])
        assert (program, command) == ("stalesim", "run")
        assert {*options[::2]} == {"-s"}
        assert read_any(name, options[1::2]).replicates >= 3


def _claims(*lines: tuple[str, str, str, tuple[tuple[str, str], ...]]) -> pd.DataFrame:
    columns = ["scenario", "verdict", "how", "reading"]
    return pd.DataFrame(lines, columns=pd.Index(columns)).assign(
        says="it is so", data="mnist", claim="", estimate=1.0
    )


A, B = (("bound", "a"),), (("bound", "b"),)
HOLDS, FAILS, OPEN, COUNTED = rows.HOLDS, rows.FAILS, rows.OPEN, rows.COUNTED


@pytest.mark.parametrize(
    ("lines", "verdict"),
    [
        ([("p/a", HOLDS, COUNTED, A), ("p/b", HOLDS, COUNTED, B)], papers.HOLD),
        ([("p/a", HOLDS, COUNTED, A), ("p/a", FAILS, COUNTED, B)], papers.DEPENDS),
        ([("p/a", FAILS, COUNTED, A), ("p/b", FAILS, COUNTED, B)], papers.FAIL),
        # By a the first panel fails, by b the second.
        (
            [(f"p/{x}", FAILS if x == y[0][1] else HOLDS, COUNTED, y)
             for x in "ab" for y in (A, B)],
            papers.FAIL,
        ),
        ([("p/a", FAILS, COUNTED, A), ("p/a", OPEN, COUNTED, B)], papers.UNSURE),
        # A claim without the choice is about both readings.
        (
            [("p/a", FAILS, COUNTED, ()), ("p/a", HOLDS, COUNTED, A),
             ("p/a", HOLDS, COUNTED, B)],
            papers.FAIL,
        ),
        ([("p/a", HOLDS, rows.SETTING, ())], papers.UNSURE),
        ([], papers.UNSURE),
    ],
)  # fmt: skip
def test_a_sentence_is_judged_by_all_its_readings(lines: Any, verdict: str) -> None:
    sentence = papers.Sentence("P", "figure 1", "It is so.", ("p/*",), "it is so")
    found = papers._judged(sentence, _claims(*lines))
    assert found.verdict == verdict
    assert found.decided == (verdict in (papers.HOLD, papers.FAIL))


@cache
def _table(name: str) -> list[dict[str, str]]:
    with (ROOT / name).open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


@cache
def _judged() -> list[tuple[str, str, dict[str, str]]]:
    """Returns scenario, data and line of every claim of a paper that was judged."""
    found = []
    for path in sorted((ROOT / "scenarios").glob("*/*.yaml")):
        name = re.search(r"^name: (\S+)", path.read_text(encoding="utf-8"), re.M)
        folder = ROOT / f"evidence/results/{name and name[1]}"
        if not (folder / "claims.csv").exists():
            continue
        data = json.loads((folder / "about.json").read_text())["dataset"] or ""
        scenario = f"{path.parent.name}/{path.stem}"
        lines = _table(f"evidence/results/{folder.name}/claims.csv")
        own = (line for line in lines if line["origin"] == "paper")
        found += [(scenario, data, line) for line in own]
    return found


def _counts(scenario: str, data: str, line: dict[str, str]) -> bool:
    """Says whether a claim counts, by apart.csv."""
    kinds = {
        one["as"]
        for one in _table("evidence/apart.csv")
        if fnmatchcase(scenario, one["scenario"])
        and re.search(one["claims"], line["says"])
    }
    empty = "content" in kinds and line["verdict"] == "holds"
    return not (empty or "setting" in kinds or data.startswith("mnist5k"))


def _made(scenario: str, claim: str) -> frozenset[tuple[str, str]]:
    """Returns the readings that a claim takes, by readings.csv."""
    return frozenset(
        (one["choice"], one["is"])
        for one in _table("evidence/readings.csv")
        if fnmatchcase(scenario, one["scenarios"])
        and re.search(rf"(?<![\w.-])({one['variants']})(?![\w.-])", claim)
    )


def _recount(
    lines: list[dict[str, str]],
) -> dict[tuple[str, str, str], tuple[str, bool]]:
    """Returns verdict on, and whether it is of real data, each sentence of some lines.

    Nothing of `papers` is used: only committed tables.
    """
    found = {}
    for line in lines:
        cells = [
            (_made(name, of["claim"]), of["verdict"], _counts(name, data, of), data)
            for name, data, of in _judged()
            if any(fnmatchcase(name, each) for each in line["scenarios"].split())
            and re.search(line["claims"], of["says"])
        ]
        most = max((len(made) for made, *_ in cells), default=0)
        by = {}
        for whole in {made for made, *_ in cells if len(made) == most}:
            here = {v for made, v, counts, _ in cells if counts and made <= whole}
            if here:
                held = "holds" if here == {"holds"} else "inconclusive"
                by[whole] = "fails" if "does not hold" in here else held
        asked = filter(None, line["choices"].split(";"))
        seen = [choice for choice, _ in {one for whole in by for one in whole}]
        words = {*by.values()} or {"inconclusive"}
        verdict = words.pop() if len(words) == 1 else "inconclusive"
        if {"holds", "fails"} <= {*by.values()}:
            verdict = "depends on the reading"
        if any(seen.count(choice) < 2 for choice in asked):
            verdict = "inconclusive"
        real = any(counts and data[:9] != "synthetic" for *_, counts, data in cells)
        found[line["paper"], line["where"], line["sentence"]] = verdict, real
    return found


def test_pages_have_what_an_independent_recount_finds() -> None:
    found = _recount(_table("evidence/papers.csv"))
    assert {whose for whose, *_ in found} == {*papers.PAPERS}
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    for paper, name in papers.PAPERS.items():
        mine = [of for (whose, *_), of in found.items() if whose == paper]
        tally = Counter(verdict for verdict, _ in mine)
        counts = ", ".join(f"{each} {tally[each]}" for each in papers.VERDICTS)
        page = (ROOT / f"evidence/pages/{name}.md").read_text(encoding="utf-8")
        assert f"\n{len(mine)} sentences: {counts}. " in page
        shown, rest = page.split("\n## Inconclusive, since")
        listed = rest.count("\n| ") - 2  # without head and rule
        assert shown.count("\n## ") + listed == len(mine)
        decided = [v for v, real in mine if real and v in ("holds", "fails")]
        assert f"\n- {paper}: {len(decided) or 'none'} decided" in readme


def _same(lines: list[dict[str, str]]) -> list[list[str]]:
    """Returns sentences, as numbers of lines, that are on the very same claims."""
    by: dict[tuple[str, frozenset[tuple[str, str]]], list[str]] = {}
    for line in lines:
        of = frozenset(
            (name, says)
            for name, says in _said()
            if any(fnmatchcase(name, each) for each in line["scenarios"].split())
            and re.search(line["claims"], says)
        )
        by.setdefault((line["paper"], of), []).append(line["sentence"])
    return [words for words in by.values() if len(words) > 1]


def test_a_sentence_that_is_listed_twice_is_found_out() -> None:
    lines = _table("evidence/papers.csv")
    assert _same(lines) == []
    assert len(_recount(lines)) == len(lines)
    again = lines[4]
    assert len(_recount([*lines, again])) == len(lines)
    other = again | {"sentence": "The same in other words."}
    assert _same([*lines, other]) == [[again["sentence"], other["sentence"]]]
