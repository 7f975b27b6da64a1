"""Claims as they are written, and what is said of those that make no sense."""

from typing import Any

import pytest
from pydantic import ValidationError

from stalesim.simulator.claims import is_at, read
from stalesim.simulator.scenario.reading import loads

SLOPE: dict[str, Any] = {
    "slope": "a",
    "metric": "optimality_gap",
    "is": -1,
    "within": 0.25,
    "says": "Theorem 2",
}
HIGHER: dict[str, Any] = {"higher": "a", "than": "b", "says": "figure 2"}
NO_WORSE: dict[str, Any] = {
    "no_worse": "a",
    "than": "b",
    "within": 0.01,
    "at": {"x": 1, "y": [2, 3]},
    "origin": "specification",
    "says": "figure 2",
}
MONOTONE: dict[str, Any] = {"monotone": "a", "over": "x", "says": "figure 6"}
CRITICAL: dict[str, Any] = {
    "critical": "a",
    "than": "b",
    "over": "x",
    "within": 0.1,
    "says": "figure 4",
}
MEAN: dict[str, Any] = {
    "no_worse_mean": "a",
    "than": "b",
    "over": "x",
    "within": 0.01,
    "says": "table 1",
}
RATIO: dict[str, Any] = {
    "ratio": "a",
    "than": "b",
    "of": "virtual_s",
    "is": 2,
    "within": 0.5,
    "says": "table 1",
}
BELOW: dict[str, Any] = {"below": "a", "bound": 2.5, "says": "theorem 2"}
AHEAD: dict[str, Any] = {"ahead": "a", "than": "b", "after": {"time": 60}, "says": "x"}
VALUE: dict[str, Any] = {"value": "a", "is": 0.9, "within": 0.1, "says": "table 2"}


def test_claims_are_of_the_paper_that_a_scenario_follows_or_its_own() -> None:
    text = """\
name: study
problem:
  data: {kind: digits}
  partition: {kind: iid, clients: 4}
protocol: {kind: asynchronous}
clients: {compute: {law: expon}}
algorithm: {kind: sgd, step_size: 0.1, batch: 8}
stop: {commits: 10}
evaluate: {every: {commits: 5}}
claims:
  - {value: base, is: 0.9, within: 0.1, says: one}
  - {value: base, is: 0.9, within: 0.1, says: two, origin: identity}
"""
    own = loads(text, "study.yaml")
    assert [claim.origin for claim in own.claims] == ["own", "identity"]
    again = own.model_dump(mode="json", exclude_unset=True)
    assert [claim["origin"] for claim in again["claims"]] == ["own", "identity"]
    papers = loads(f"source: Chen et al. (2020)\n{text}", "study.yaml")
    assert [claim.origin for claim in papers.claims] == ["paper", "identity"]


@pytest.mark.parametrize("slope", ["a", ("a", "b")])
def test_a_slope_is_written_as_it_was_read(slope: Any) -> None:
    claim = read(SLOPE | {"slope": slope})
    assert claim.slope == slope
    assert claim.is_ == -1
    tree = claim.model_dump(mode="json")
    assert tree["is"] == -1
    assert "is_" not in tree
    assert read(tree) == claim


@pytest.mark.parametrize(
    ("claim", "said"),
    [
        (SLOPE | {"slope": None}, "exactly one of faster, fewer, higher, no_worse"),
        (SLOPE | {"close": "b"}, "exactly one of faster, fewer, higher, no_worse"),
        (SLOPE | {"than": "b"}, "than belongs to faster, fewer, higher, no_worse"),
        (SLOPE | {"is": None}, "must say which slope; add is: -1 and within"),
        (SLOPE | {"within": None}, "must say which slope; add is: -1 and within"),
        (SLOPE | {"is": True}, "should be a valid number"),
        (SLOPE | {"metric": "test_accuracy"}, "metric must go to zero"),
        (SLOPE | {"slope": ["a"]}, "two or more different variants, got [a]; name"),
        (SLOPE | {"slope": ["a", "a"]}, "two or more different variants, got [a, a]"),
        (HIGHER | {"than": None}, "than is missing; add the variant"),
        (HIGHER | {"is": -1}, "is belongs to ratio, value and slope, not to higher"),
        (
            HIGHER | {"over": "seed"},
            "over belongs to monotone, steady, critical and no_",
        ),
        (HIGHER | {"to": {"test_auc": 1}}, "to belongs to faster, not to higher"),
        (HIGHER | {"direction": "falling"}, "direction belongs to monotone, not to"),
        (NO_WORSE | {"within": None}, "must say how much worse at most; add within"),
        (NO_WORSE | {"within": -1}, "greater than or equal to 0"),
        (NO_WORSE | {"at": {"x": []}}, "at least 1 item"),
        (NO_WORSE | {"at": 1}, "should be a valid dictionary"),
        (NO_WORSE | {"origin": "me"}, "'paper', 'specification', 'own' or 'identity'"),
        (MONOTONE | {"over": None}, "must say over what; add over: a key of the"),
        (MONOTONE | {"direction": "up"}, "'rising' or 'falling'"),
        (MONOTONE | {"monotone": None, "steady": "a"}, "must say over what, how stead"),
        (
            CRITICAL | {"over": None},
            "must say of what, how near the best; add over: KEY",
        ),
        (CRITICAL | {"within": None}, "must say of what, how near the best; add over"),
        (CRITICAL | {"by_at_least": 0}, "greater than 0"),
        (MEAN | {"over": None}, "must say over what, by how much; add over: KEY, with"),
        (MEAN | {"within": -1}, "greater than or equal to 0"),
        (CRITICAL | {"than": None}, "than is missing; add the variant"),
        (RATIO | {"than": None}, "than is missing; add the variant"),
        (RATIO | {"of": None}, "must say of what; add of: virtual_s, is: 2, within"),
        (RATIO | {"of": "speed"}, "of must be a metric, or what else a run comes to"),
        (RATIO | {"of": "commit"}, "got 'commit'; did you mean 'commits'?"),
        (RATIO | {"is": 0}, "is must be > 0 for a ratio, got 0"),
        (RATIO | {"within": -1}, "greater than or equal to 0"),
        (RATIO | {"metric": "test_auc"}, "metric belongs to higher, no_worse, close"),
        ({"below": "a", "says": "theorem 2"}, "must say which bound; add bound: 0.5"),
        (BELOW | {"bound": "2"}, "should be a valid number"),
        (BELOW | {"metric": "test_auc"}, "metric must be one that is small at best"),
        (BELOW | {"is": 1}, "is belongs to ratio, value and slope, not to below"),
        (
            {k: v for k, v in AHEAD.items() if k != "after"},
            "must say after how much time; add after: {time",
        ),
        (AHEAD | {"after": {}}, "must say after how much time; add after: {time"),
        (AHEAD | {"after": {"time": 1, "commits": 1}}, "must say after how much time"),
        (AHEAD | {"after": {"tme": 1}}, "got 'tme'; did you mean 'time'?"),
        (AHEAD | {"after": {"time": -1}}, "greater than or equal to 0"),
        (AHEAD | {"by": -0.1}, "greater than or equal to 0"),
        (AHEAD | {"within": 1}, "within belongs to "),
        (VALUE | {"is": None}, "must say which value; add is: 0.9 and within: 0.01"),
        (VALUE | {"within": None}, "must say which value; add is: 0.9 and within"),
        (VALUE | {"than": "b"}, "than belongs to faster, fewer, higher, no_worse"),
    ],
)
def test_a_claim_that_makes_no_sense(claim: dict[str, Any], said: str) -> None:
    with pytest.raises(ValidationError) as caught:
        read(claim)
    assert said in str(caught.value)
    assert len(caught.value.errors()) == 1


@pytest.mark.parametrize(
    ("claim", "kind"),
    [
        (SLOPE, "slope"),
        (RATIO, "ratio"),
        (BELOW, "below"),
        (VALUE, "value"),
        (MONOTONE, "monotone"),
        (NO_WORSE, "no_worse"),
        (AHEAD, "ahead"),
    ],
)
def test_what_is_dumped_is_read_again(claim: dict[str, Any], kind: str) -> None:
    found = read(claim)
    assert found.kind == kind
    dumped = found.model_dump(mode="json")
    assert read(dumped) == found


def test_a_single_value_is_a_list_of_one() -> None:
    claim = read(NO_WORSE)
    assert claim.at == {"x": (1,), "y": (2, 3)}
    assert read(HIGHER).at == {}
    assert read(HIGHER).origin == "paper"


@pytest.mark.parametrize(
    ("parameters", "about"),
    [
        ({"x": 1, "y": 2}, True),
        ({"x": 1, "y": 3, "z": 0}, True),
        ({"x": 2, "y": 2}, False),
        ({"x": 1, "y": 4}, False),
        ({}, True),  # what is not swept stands beside every point
        ({"y": 3}, True),
    ],
)
def test_which_runs_a_claim_is_about(parameters: dict[str, Any], about: bool) -> None:
    assert is_at(parameters, read(NO_WORSE).at) is about


CLAIMS = (SLOPE, HIGHER, NO_WORSE, MONOTONE, CRITICAL, MEAN, RATIO, BELOW, AHEAD, VALUE)


@pytest.mark.parametrize("claim", CLAIMS, ids=lambda claim: next(iter(claim)))
def test_a_manifest_has_the_entries_of_a_claim_s_kind(claim: dict[str, Any]) -> None:
    typed = read(claim)
    written = typed.model_dump(mode="json")
    assert next(iter(written)) == typed.kind
    assert [*written][-3:] == ["at", "origin", "says"]
    own = {"is" if name == "is_" else name for name in type(typed).model_fields}
    assert {*written} == own
    assert read(written) == typed
    assert type(typed).judge.__module__ == type(typed).__module__


def test_a_word_of_another_kind_is_refused_unless_it_says_nothing() -> None:
    assert read(HIGHER | {"direction": None, "within": None}) == read(HIGHER)
    for key, value in {"direction": "rising", "within": 0.0}.items():
        with pytest.raises(ValidationError, match=f"{key} belongs to"):
            read(HIGHER | {key: value})
