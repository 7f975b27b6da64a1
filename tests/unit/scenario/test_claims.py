"""Claims as they are written, and what is said of those that make no sense."""

from typing import Any

import pytest
from pydantic import ValidationError

from simulator.scenario.scenario import Claim

SLOPE: dict[str, Any] = {
    "slope": "a",
    "metric": "optimality_gap",
    "is": -1,
    "within": 0.25,
    "says": "Theorem 2",
}
HIGHER: dict[str, Any] = {"higher": "a", "than": "b", "says": "figure 2"}
RISES: dict[str, Any] = {"rises": "a", "over": "seed", "says": "figure 6"}


@pytest.mark.parametrize("slope", ["a", ("a", "b")])
def test_a_slope_is_written_as_it_was_read(slope: Any) -> None:
    claim = Claim.model_validate(SLOPE | {"slope": slope})
    assert claim.slope == slope
    assert claim.is_ == -1
    tree = claim.model_dump(mode="json")
    assert tree["is"] == -1
    assert "is_" not in tree
    assert Claim.model_validate(tree) == claim


@pytest.mark.parametrize(
    ("claim", "said"),
    [
        (SLOPE | {"slope": None}, "exactly one of faster, fewer, higher, close"),
        (SLOPE | {"close": "b"}, "exactly one of faster, fewer, higher, close"),
        (SLOPE | {"than": "b"}, "than must not stand beside slope"),
        (SLOPE | {"is": None}, "must say which slope; add is: -1 and within"),
        (SLOPE | {"within": None}, "must say which slope; add is: -1 and within"),
        (SLOPE | {"is": True}, "should be a valid number"),
        (SLOPE | {"metric": "test_accuracy"}, "metric must go to zero"),
        (SLOPE | {"slope": ["a"]}, "two or more different variants, got [a]; name"),
        (SLOPE | {"slope": ["a", "a"]}, "two or more different variants, got [a, a]"),
        (HIGHER | {"than": None}, "than is missing; add the variant"),
        (HIGHER | {"is": -1}, "is belongs to slope alone; remove it"),
        (HIGHER | {"over": "seed"}, "over belongs to rises and steady"),
        (RISES | {"over": None}, "must say over what; add over: a key of the sweep"),
        (RISES | {"than": "b"}, "than must not stand beside over; remove it"),
        (RISES | {"rises": None, "steady": "a"}, "must say how steady; add within"),
    ],
)
def test_a_claim_that_makes_no_sense(claim: dict[str, Any], said: str) -> None:
    with pytest.raises(ValidationError) as caught:
        Claim.model_validate(claim)
    assert said in str(caught.value)
    assert len(caught.value.errors()) == 1
