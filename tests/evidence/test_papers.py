"""The papers' sentences: each claim is of one, and how readings make a verdict."""

import csv
import io
from collections import Counter
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


def test_no_sentence_is_counted_twice() -> None:
    keys = Counter((one.paper, one.where, one.words) for one in SENTENCES)
    assert max(keys.values()) == 1
    assert {one.paper for one in SENTENCES} == {*papers.PAPERS}


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


def test_an_independent_count_of_what_is_decided() -> None:
    """Counts again from the files alone, sentence by sentence, with other code."""
    apart, choices = rows.apart(), papers.readings()
    counts: Counter[tuple[str, str]] = Counter()
    for sentence in SENTENCES:
        by: dict[tuple[str, ...], set[str]] = {}
        for name in SCENARIOS:
            folder = ROOT / rows.RESULTS / rows.name_of(ROOT / f"scenarios/{name}.yaml")
            if not (folder / "claims.csv").exists():
                continue
            if '"dataset": "synthetic' in (folder / "about.json").read_text():
                continue
            mnist5k = '"dataset": "mnist5k' in (folder / "about.json").read_text()
            text = (folder / "claims.csv").read_text(encoding="utf-8")
            for line in csv.DictReader(io.StringIO(text)):
                says, verdict = line["says"], line["verdict"]
                if line["origin"] != "paper" or not sentence.is_about(name, says):
                    continue
                kinds = {one.kind for one in apart if one.is_about(name, says)}
                vacuous = "content" in kinds and verdict == HOLDS
                if mnist5k or "setting" in kinds or vacuous:
                    continue
                of = [c for c in choices if c.is_made(name, line["claim"])]
                by.setdefault(tuple(f"{c.choice} {c.is_}" for c in of), set())
                by[tuple(f"{c.choice} {c.is_}" for c in of)].add(verdict)
        most = max(map(len, by), default=0)
        columns = [
            set().union(*(v for k, v in by.items() if {*k} <= {*of}))
            for of in by
            if len(of) == most
        ]
        made = {one for of in by for one in of}
        if any(sum(one.startswith(c) for one in made) < 2 for c in sentence.choices):
            continue
        if columns and all(each == {HOLDS} for each in columns):
            counts[sentence.paper, papers.HOLD] += 1
        elif columns and all(FAILS in each for each in columns):
            counts[sentence.paper, papers.FAIL] += 1
    judged = [one for one in papers.judge() if one.decided]
    assert counts == Counter((one.sentence.paper, one.verdict) for one in judged)
