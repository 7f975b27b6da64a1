"""Who holds which columns, or which rows."""

import numpy as np
import pytest

from stalesim.simulator.config.errors import ScenarioError
from stalesim.simulator.data.base import Dataset
from stalesim.simulator.partitions.shares import Iid
from stalesim.simulator.partitions.vertical import Vertical


def dataset(
    num_rows: int = 23, columns: tuple[str, ...] = tuple("abcdefgh")
) -> Dataset:
    x = np.zeros((num_rows, len(columns)), np.float32)
    y = np.zeros(num_rows, np.int32)
    return Dataset("made", x, y, x[:2], y[:2], 2, columns)


def lists(parts: list[np.ndarray]) -> list[list[int]]:
    return [part.tolist() for part in parts]


def test_contiguous_blocks() -> None:
    parts = Vertical(parties=3).make(dataset())
    assert lists(parts) == [[0, 1, 2], [3, 4, 5], [6, 7]]


def test_images_in_equal_blocks() -> None:
    data = dataset(2, tuple(f"pixel{i}" for i in range(784)))
    parts = Vertical(parties=7).make(data)
    assert [part.size for part in parts] == [112] * 7
    assert parts[1][0] == 112


def test_groups_by_index_name_and_range() -> None:
    groups = {"bank": (7, "a"), "shop": ("2-4", "1")}
    assert lists(Vertical(groups=groups).make(dataset())) == [[7, 0], [2, 3, 4, 1]]


def test_a_columns_name_comes_before_a_range() -> None:
    data = dataset(3, ("x", "y", "0-1"))
    assert lists(Vertical(groups={"a": ("0-1",)}).make(data)) == [[2]]


@pytest.mark.parametrize(
    ("config", "says"),
    [
        (Vertical(parties=9), "parties must be at most the 8 columns of made, got 9"),
        (Vertical(groups={"p": ("bb",)}), "got 'bb'; did you mean 'b'"),
        (Vertical(groups={"p": (8,)}), "columns from 0 to 7, .* got 8"),
        (Vertical(groups={"p": (-1,)}), "columns from 0 to 7, .* got -1"),
        (Vertical(groups={"p": ("6-8",)}), "got '6-8'"),
        (Vertical(groups={"p": ("4-2",)}), "got '4-2'"),
        (Vertical(groups={"p": (1,), "q": ("0-3",)}), r"column 1 \('b'\) of p"),
        (Vertical(groups={"p": ("c", 2)}), r"column 2 \('c'\) of p"),
    ],
)
def test_bad_groups(config: Vertical, says: str) -> None:
    with pytest.raises(ScenarioError, match=says) as error:
        config.make(dataset())
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("clients", [1, 4, 23])
def test_iid_shares(clients: int) -> None:
    parts = Iid(clients=clients).make(dataset(), seed=5)
    sizes = [part.size for part in parts]
    assert len(parts) == clients
    assert max(sizes) - min(sizes) <= 1
    assert sorted(np.concatenate(parts)) == list(range(23))


def test_iid_is_keyed_by_the_seed() -> None:
    first, again, other = (
        lists(Iid(clients=4).make(dataset(), seed)) for seed in (1, 1, 2)
    )
    assert first == again != other


def test_iid_is_not_contiguous() -> None:
    parts = Iid(clients=2).make(dataset(1000), seed=0)
    # Hypergeometric: of 500 draws 250 are below 500, standard deviation 7.9.
    assert abs(int((parts[0] < 500).sum()) - 250) < 5 * 7.9


def test_more_clients_than_rows() -> None:
    with pytest.raises(ScenarioError, match="at most the 23 training rows of made"):
        Iid(clients=24).make(dataset(), seed=0)
