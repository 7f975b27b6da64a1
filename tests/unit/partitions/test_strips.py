"""Strips of images, and columns by patterns of their names."""

from typing import Any

import numpy as np
import pytest

from stalesim.simulator.config.errors import ScenarioError
from stalesim.simulator.data.names import RGB, pixels
from stalesim.simulator.partitions.vertical import Strips, Vertical
from tests.unit.partitions.test_partitions import dataset, lists

TAGGED = ("tag_b", "image_0", "tag_a", "image_1", "image_10", "sum")


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
    parts = config.make(dataset(3, names))
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
    halves = Strips(parties=2).make(dataset(3, pixels(2, 2)))
    blocks = Vertical(parties=2).make(dataset(3, pixels(2, 2)))
    assert lists(halves) == [[0, 2], [1, 3]]
    assert lists(blocks) == [[0, 1], [2, 3]]


@pytest.mark.parametrize(
    ("config", "columns", "says"),
    [
        (Strips(parties=4), 36, "parties must divide the images' width of 6 .* got 4;"),
        (Strips(parties=12), 36, "width of 6 pixels, got 12; take another number"),
        (Strips(parties=2), 30, "got 30 columns; set problem.partition.image to"),
        (
            Strips(parties=2, image=(6, 5, 1)),
            36,
            r"^problem.partition.image must have as many numbers .* 36, got \(6, 5, 1",
        ),
    ],
)
def test_bad_strips(config: Strips, columns: int, says: str) -> None:
    with pytest.raises(ScenarioError, match=says) as caught:
        config.make(dataset(3, tuple(f"x{i}" for i in range(columns))))
    assert "\n" not in str(caught.value)


def test_a_pattern_takes_columns_in_their_own_order() -> None:
    groups = {"words": ("tag_*",), "both": ("image_1*", "image_0")}
    config = Vertical(groups=groups)
    assert lists(config.make(dataset(3, TAGGED))) == [[0, 2], [3, 4, 1]]
    config = Vertical(groups={"rest": (5, "*_[ab]", "*_0")})
    assert lists(config.make(dataset(3, TAGGED))) == [[5, 0, 2, 1]]


@pytest.mark.parametrize(
    ("groups", "says"),
    [
        (
            {"a": ("word_*",)},
            "got 'word_.', which none is like; they are called 'tag_b' to 'sum'",
        ),
        (
            {"a": ("tag_*",), "b": ("*a*",)},
            r"groups.b must .* got column 0 \('tag_b'\) of a; take it from one",
        ),
        ({"a": ("TAG_*",)}, "got 'TAG_.', which none is like"),
        ({"a": ("image_*", "*_10")}, r"got column 4 \('image_10'\) of a"),
    ],
)
def test_bad_patterns(groups: Any, says: str) -> None:
    with pytest.raises(ScenarioError, match=says) as caught:
        Vertical(groups=groups).make(dataset(3, TAGGED))
    assert "\n" not in str(caught.value)
