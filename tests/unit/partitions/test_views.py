"""Views of a data set as parties: blocks, named groups, and what is refused."""

from typing import Any

import numpy as np
import pytest
from pydantic import ValidationError

from stalesim.simulator.config.errors import ScenarioError
from stalesim.simulator.data.base import Dataset
from stalesim.simulator.partitions.vertical import Views


def made(*views: str) -> Dataset:
    x, y = np.zeros((4, len(views)), np.float32), np.zeros(4, np.int32)
    return Dataset("made", x, y, x, y, 2, tuple(map(str, range(len(views)))), views)


def columns(data: Dataset, **options: Any) -> list[list[int]]:
    return [part.tolist() for part in Views(**options).make(data)]


def test_a_party_has_whole_views_in_the_order_of_the_columns() -> None:
    data = made("a", "b", "c", "a", "b", "c")
    assert columns(data, parties=3) == [[0, 3], [1, 4], [2, 5]]
    assert columns(data, parties=2) == [[0, 1, 3, 4], [2, 5]]
    groups = {"one": ["c", "a"], "two": ["b"]}
    assert columns(data, parties=2, groups=groups) == [[0, 2, 3, 5], [1, 4]]
    assert Views(parties=2, groups=groups).num_clients == 2


def test_views_that_no_group_names_stay_unused() -> None:
    groups = {"one": ["b"]}
    assert columns(made("a", "b", "b"), parties=1, groups=groups) == [[1, 2]]


@pytest.mark.parametrize(
    ("data", "options", "says"),
    [
        (made("a", "b"), {"parties": 3}, r"of made, got 3 where it has 2 \(a, b\); ta"),
        (made(), {"parties": 1}, "got 1 where it has none"),
        (made("fou", "fac"), {"parties": 1, "groups": {"p": ["fuo"]}}, "mean 'fou'"),
        (
            made("a", "b"),
            {"parties": 2, "groups": {"p": ["a"], "q": ["b", "a"]}},
            "groups.q must hold views that no party has yet, got 'a' of p",
        ),
    ],
)
def test_refused(data: Dataset, options: dict[str, Any], says: str) -> None:
    with pytest.raises(ScenarioError, match=says) as error:
        columns(data, **options)
    assert "\n" not in str(error.value)


def test_groups_are_as_many_as_parties() -> None:
    with pytest.raises(ValidationError, match="an entry for each of the 3 parties"):
        Views(parties=3, groups={"p": ["a"]})
