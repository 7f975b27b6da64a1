"""Numbers that are ours, and those that were changed, are all told."""

from pathlib import Path
from typing import Any

import pytest

from evidence import degrees

ROOT = Path(__file__).parents[2]


def test_no_number_of_a_claim_was_changed_in_silence() -> None:
    assert degrees.unsaid() == []


def test_the_history_names_studies_and_commits() -> None:
    found = degrees.changed()
    assert found["commit"].str.fullmatch(r"[0-9a-f]{7}|open").all()
    assert (found["why"].str.len() > 10).all()
    first = found.iloc[0]
    assert (first["from"], first["to"]) == ("to 0.75", "to 0.73")


def test_every_line_that_says_assumed_is_listed() -> None:
    found = degrees.assumed()
    words = sum(
        "assumed" in line.partition("#")[2].lower()
        for path in degrees.files()
        for line in path.read_text(encoding="utf-8").splitlines()
    )
    assert len(found) == words > 100


STUDY = """name: some-study
problem: {x: 1}   # assumed, for time
# Assumed besides: nothing.
colour: "#fff"    # theirs
claims:
  - {faster: a, than: b, to: {test_auc: 0.8}, by_at_least: 4, says: "figure 1"}
"""
RESULTS = "claim,says\n{words},figure 1\n"
HISTORY = """- scenarios: [some-study]
  claim: figure {figure}
  from: 3 times
  to: 4 times
  commit: abcdef0
  why: to see whether it is found
"""


def _repository(root: Path, words: str, figure: int = 2, history: Any = None) -> Path:
    folder = root / "evidence" / "results" / "some-study"
    folder.mkdir(parents=True)
    (root / "scenarios" / "paper").mkdir(parents=True)
    (root / "scenarios" / "paper" / "some.yaml").write_text(STUDY)
    (folder / "claims.csv").write_text(RESULTS.format(words=words))
    text = HISTORY.format(figure=figure) if history is None else history
    (root / "evidence" / "targets.yaml").write_text(text)
    return root


@pytest.mark.parametrize(
    ("words", "figure", "told"),
    [
        ('"a faster than b to test_auc 0.8, 4 times"', 2, True),
        ('"a faster than b to test_auc 0.8, 3 times"', 2, False),
        ('"a faster than b to test_auc 0.81, 4 times"', 2, False),
        ('"a faster than b to test_auc 0.8, 3 times"', 1, True),  # has an entry
    ],
)
def test_a_changed_number_needs_an_entry(
    words: str, figure: int, told: bool, tmp_path: Path
) -> None:
    found = degrees.unsaid(_repository(tmp_path, words, figure))
    assert (found == []) is told
    if found:
        (line,) = found
        assert line.startswith("scenarios/paper/some.yaml: 'figure 1' has 4.0, 0.8, ")
        assert line.endswith("say in evidence/targets.yaml what was changed, and why")


def test_what_is_assumed_is_found_with_its_line(tmp_path: Path) -> None:
    found = degrees.assumed(_repository(tmp_path, "x"))
    assert found.to_numpy().tolist() == [
        ["paper/some", 2, "problem: {x: 1}", "assumed, for time"],
        ["paper/some", 3, "", "Assumed besides: nothing."],
    ]


@pytest.mark.parametrize(
    ("history", "said"),
    [
        ("- {scenarios: [some-study], claim: x}", "entry 0 must have scenarios, claim"),
        (
            HISTORY.format(figure=1).replace("some-study", "none"),
            "entry 0 must name studies of scenarios/, got 'none'",
        ),
    ],
)
def test_an_entry_that_makes_no_sense(history: str, said: str, tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match=said):
        degrees.changed(_repository(tmp_path, "x", history=history))
