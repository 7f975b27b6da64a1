"""Rows of one value of a column are one client's."""

from collections.abc import Sequence

import numpy as np

from stalesim.simulator.catalogue.partitions.natural import Natural
from stalesim.simulator.problem.data.base import Dataset
from stalesim.simulator.problem.data.groups import grouping

WRITERS = ["c", "a", "b", "a", "d", "a", "c", "a", "a", "b", "c", "d"]
HOSPITALS = np.array([2.0, 10.0, 2.0] * 4)


def dataset(**columns: Sequence[str] | np.ndarray) -> Dataset:
    x, y = np.zeros((12, 1), np.float32), np.zeros(12, np.int32)
    found = tuple(grouping(name, values) for name, values in columns.items())
    return Dataset("made", x, y, x, y, 2, ("x0",), groupings=found)


def held(config: Natural, data: Dataset, values: Sequence) -> list[list]:
    """Returns the values of each client's rows."""
    parts = config.make(data, 0)
    assert sorted(np.concatenate(parts)) == list(range(12))
    assert all((np.diff(part) > 0).all() for part in parts)
    return [[values[row] for row in part] for part in parts]


def test_a_client_for_each_value() -> None:
    config, data = Natural(clients=4), dataset(writer=WRITERS)
    assert held(config, data, WRITERS) == [["a"] * 5, ["b"] * 2, ["c"] * 3, ["d"] * 2]
    assert config.labels(data) == ("writer a", "writer b", "writer c", "writer d")


def test_values_are_dealt_out_by_size() -> None:
    """The largest first, each to the client with the fewest rows: 5 and 7."""
    config, data = Natural(clients=2), dataset(writer=WRITERS)
    first, second = held(config, data, WRITERS)
    # a: 5 rows; then c to the other, with 3; b there too, with 5; d to the first, 7.
    assert sorted(first) == ["a"] * 5 + ["d"] * 2
    assert sorted(second) == ["b"] * 2 + ["c"] * 3
    assert config.labels(data) == ("writer a, d", "writer b, c")
    assert Natural(clients=1).labels(data) == ("writer a, b, c and 1 more",)


def test_numbers_are_in_the_order_of_their_values() -> None:
    config, data = Natural(clients=2), dataset(hospital=HOSPITALS)
    assert held(config, data, HOSPITALS) == [[2.0] * 8, [10.0] * 4]
    assert config.labels(data) == ("hospital 2", "hospital 10")


def test_the_column_is_chosen() -> None:
    data = dataset(writer=WRITERS, hospital=HOSPITALS)
    assert len(Natural(clients=2, column="hospital").make(data, 0)[0]) == 8
    assert len(Natural(clients=4, column="writer").make(data, 0)[0]) == 5


def test_many_values_are_dealt_evenly() -> None:
    sizes = np.random.default_rng(0).integers(1, 40, size=200)
    data = dataset()._replace(
        groupings=(grouping("user", np.repeat(np.arange(200), sizes)),)
    )
    counts = [part.size for part in Natural(clients=10).make(data, 0)]
    assert sum(counts) == sizes.sum()
    # A client gets its last value when it has the fewest rows, and the last are small.
    assert max(counts) - min(counts) <= sizes.max()
    assert max(counts) < 1.02 * sizes.sum() / 10


def test_some_rows_of_a_grouping() -> None:
    found = grouping("writer", WRITERS).taken(np.array([0, 2, 6]))
    assert found.values == ("b", "c")
    assert found.of_row.tolist() == [1, 0, 1]
