"""What differs between two scenarios, in words."""

import pytest

from stalesim.simulator.studies.differing import difference


@pytest.mark.parametrize(
    ("then", "now", "words"),
    [
        ({"seed": 1, "stop": {"time": 2.0}}, {"seed": 1, "stop": {"time": 2.0}}, ""),
        ({"a": {"b": 8}}, {"a": {"b": 9}}, "a.b was 8 and is 9"),
        (
            {"a": {"x": 1, "kind": "sgd", "y": 2}},
            {"a": {"kind": "vafl", "z": 2}},
            "a.kind was sgd and is vafl",
        ),
        ({"a": {"b": None}}, {"a": {"b": [1]}}, "a.b is [1] and was not set"),
        ({"a": {"b": [1]}}, {"a": {}}, "a.b was [1] and is not set"),
        ({"name": "one", "b": 1}, {"name": "two", "b": 2}, "b was 1 and is 2"),
    ],
)
def test_the_first_entry_that_differs_is_told(
    then: dict, now: dict, words: str
) -> None:
    assert difference(then, now, leaving=("name",)) == words
