"""Claims as they are written, and what is said of those that make no sense."""

from typing import Any

import pytest
from pydantic import ValidationError

from stalesim.simulator.scenario.claims import is_at, read
from stalesim.simulator.scenario.reading import loads
from tests.support import table
from tests.unit.scenario.mistakes import TABLES

TABLE = table(__file__)
CLAIMS: dict[str, dict[str, Any]] = TABLE["good"]
SLOPE, HIGHER, NO_WORSE = (CLAIMS[name] for name in ("slope", "higher", "no_worse"))


def test_claims_are_of_the_paper_that_a_scenario_follows_or_its_own() -> None:
    text = (
        TABLES["scenario methods"]["good"]
        + """\
claims:
  - {value: base, is: 0.9, within: 0.1, says: one}
  - {value: base, is: 0.9, within: 0.1, says: two, origin: identity}
"""
    )
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


@pytest.mark.parametrize(("kind", "changes", "said"), TABLE["bad"])
def test_a_claim_that_makes_no_sense(
    kind: str, changes: dict[str, Any], said: str
) -> None:
    with pytest.raises(ValidationError) as caught:
        read(CLAIMS[kind] | changes)
    assert said in str(caught.value)
    assert len(caught.value.errors()) == 1


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


@pytest.mark.parametrize("kind", CLAIMS)
def test_a_manifest_has_the_entries_of_a_claim_s_kind(kind: str) -> None:
    typed = read(CLAIMS[kind])
    assert typed.kind == kind
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
