"""Who holds which columns: blocks, groups, strips of images, views."""

from typing import Any

import numpy as np
import pytest
from pydantic import ValidationError

from stalesim.simulator.catalogue.partitions.vertical import Strips, Vertical, Views
from stalesim.simulator.problem.data.base import RGB, Dataset, pixels

TAGGED = ("tag_b", "image_0", "tag_a", "image_1", "image_10", "sum")


def columned(
    num_rows: int = 23, columns: tuple[str, ...] = tuple("abcdefgh")
) -> Dataset:
    x = np.zeros((num_rows, len(columns)), np.float32)
    y = np.zeros(num_rows, np.int32)
    return Dataset("made", x, y, x[:2], y[:2], 2, columns)


def lists(parts: list[np.ndarray]) -> list[list[int]]:
    return [part.tolist() for part in parts]


def test_contiguous_blocks() -> None:
    parts = Vertical(parties=3).make(columned())
    assert lists(parts) == [[0, 1, 2], [3, 4, 5], [6, 7]]


def test_images_in_equal_blocks() -> None:
    data = columned(2, tuple(f"pixel{i}" for i in range(784)))
    parts = Vertical(parties=7).make(data)
    assert [part.size for part in parts] == [112] * 7
    assert parts[1][0] == 112


def test_groups_by_index_name_and_range() -> None:
    groups = {"bank": (7, "a"), "shop": ("2-4", "1")}
    assert lists(Vertical(groups=groups).make(columned())) == [[7, 0], [2, 3, 4, 1]]


def test_a_columns_name_comes_before_a_range() -> None:
    data = columned(3, ("x", "y", "0-1"))
    assert lists(Vertical(groups={"a": ("0-1",)}).make(data)) == [[2]]


@pytest.mark.parametrize(
    ("parties", "image", "channels"),
    [(2, None, ("pixel",)), (3, None, RGB), (4, (3, 8), ("pixel",)), (1, None, RGB)],
)
def test_a_strip_is_upright(
    parties: int, image: tuple[int, ...] | None, channels: tuple[str, ...]
) -> None:
    height, width = image or (6, 6)
    depth = len(channels)
    names = pixels(height, width, channels)
    whole = None if image is None else (height, width, depth)
    config = Strips(parties=parties, image=whole)
    parts = config.make(columned(3, names))
    assert sorted(np.concatenate(parts)) == list(range(len(names)))
    side = width // parties
    for party, part in enumerate(parts):
        held = range(party * side, (party + 1) * side)
        # Plane by plane, row by row: again an image, only narrower.
        expected = [
            f"{channel}_{row}_{column}"
            for channel in channels
            for row in range(height)
            for column in held
        ]
        assert [names[column] for column in part] == expected


def test_strips_are_no_blocks() -> None:
    halves = Strips(parties=2).make(columned(3, pixels(2, 2)))
    blocks = Vertical(parties=2).make(columned(3, pixels(2, 2)))
    assert lists(halves) == [[0, 2], [1, 3]]
    assert lists(blocks) == [[0, 1], [2, 3]]


def test_a_pattern_takes_columns_in_their_own_order() -> None:
    groups = {"words": ("tag_*",), "both": ("image_1*", "image_0")}
    config = Vertical(groups=groups)
    assert lists(config.make(columned(3, TAGGED))) == [[0, 2], [3, 4, 1]]
    config = Vertical(groups={"rest": (5, "*_[ab]", "*_0")})
    assert lists(config.make(columned(3, TAGGED))) == [[5, 0, 2, 1]]


def seen(*views: str) -> Dataset:
    names = tuple(map(str, range(len(views))))
    return columned(4, names)._replace(views=views)


def columns(data: Dataset, **options: Any) -> list[list[int]]:
    return [part.tolist() for part in Views(**options).make(data)]


def test_a_party_has_whole_views_in_the_order_of_the_columns() -> None:
    data = seen("a", "b", "c", "a", "b", "c")
    assert columns(data, parties=3) == [[0, 3], [1, 4], [2, 5]]
    assert columns(data, parties=2) == [[0, 1, 3, 4], [2, 5]]
    groups = {"one": ["c", "a"], "two": ["b"]}
    assert columns(data, parties=2, groups=groups) == [[0, 2, 3, 5], [1, 4]]
    assert Views(parties=2, groups=groups).num_clients == 2


def test_views_that_no_group_names_stay_unused() -> None:
    groups = {"one": ["b"]}
    assert columns(seen("a", "b", "b"), parties=1, groups=groups) == [[1, 2]]


def test_groups_are_as_many_as_parties() -> None:
    with pytest.raises(ValidationError, match="an entry for each of the 3 parties"):
        Views(parties=3, groups={"p": ["a"]})
