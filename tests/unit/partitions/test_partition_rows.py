"""Who holds which rows: labels, Dirichlet proportions, sizes and columns."""

from collections import Counter
from typing import Any

import numpy as np
import pytest
from scipy import stats

from stalesim.simulator.catalogue.partitions.classes import Dirichlet, Labels
from stalesim.simulator.catalogue.partitions.shares import Iid, Sizes
from stalesim.simulator.parts.base import LocatedError
from stalesim.simulator.problem.column import ByColumn
from stalesim.simulator.problem.data.base import Dataset

USERS = [30, 10, 10, 20, 30, 10, 20, 20, 40, 10, 10, 50]


def dataset(y: Any, x: Any = None, num_classes: int = 10) -> Dataset:
    y = np.asarray(y, np.int32)
    x = np.zeros((y.size, 2), np.float32) if x is None else np.asarray(x, np.float32)
    return Dataset("made", x, y, x[:2], y[:2], num_classes, ("age", "user"))


def users() -> Dataset:
    return dataset(np.zeros(12), np.stack([np.zeros(12), USERS], axis=1))


def held(parts: list[np.ndarray]) -> list[list[int]]:
    """Returns the values of the column `user` that each client holds."""
    return [sorted(USERS[row] for row in part) for part in parts]


@pytest.mark.parametrize("clients", [1, 4, 23])
def test_iid_shares(clients: int) -> None:
    parts = Iid(clients=clients).make(dataset(np.zeros(23)), seed=5)
    sizes = [part.size for part in parts]
    assert len(parts) == clients
    assert max(sizes) - min(sizes) <= 1
    assert sorted(np.concatenate(parts)) == list(range(23))


def test_iid_is_not_contiguous() -> None:
    parts = Iid(clients=2).make(dataset(np.zeros(1000)), seed=0)
    # Hypergeometric: of 500 draws 250 are below 500, standard deviation 7.9.
    assert abs(int((parts[0] < 500).sum()) - 250) < 5 * 7.9


def test_labels_deals_pure_shards() -> None:
    y = np.random.default_rng(0).permutation(np.arange(600) % 10)
    parts = Labels(clients=15, classes_per_client=2).make(dataset(y), seed=3)
    assert sorted(np.concatenate(parts)) == list(range(600))
    # 30 shards of 20 rows, three of each class: shards are pure.
    shards = Counter()
    for part in parts:
        assert part.size == 40
        assert (np.diff(part) > 0).all()
        counts = np.bincount(y[part], minlength=10)
        assert set(counts.tolist()) <= {0, 20, 40}
        shards.update(dict(enumerate((counts // 20).tolist())))
    assert set(shards.values()) == {3}


def test_labels_deals_at_random() -> None:
    """Two of a client's two shards are of one class with the chance of a deal."""
    y = np.repeat(np.arange(10), 20)
    config, same = Labels(clients=100, classes_per_client=2), 0
    for seed in range(100):
        parts = config.make(dataset(y), seed)
        same += sum(np.unique(y[part]).size == 1 for part in parts)
    # 200 shards of one row, 20 a class: the other one is of the class of the first
    # with chance 19/199. Deals are exchangeable; 5 standard errors of independent ones.
    expected = 19 / 199
    error = np.sqrt(expected * (1 - expected) / 10_000)
    assert abs(same / 10_000 - expected) < 5 * error


def test_labels_with_shards_across_borders() -> None:
    y = np.repeat([0, 1, 2], [5, 9, 8])
    parts = Labels(clients=4, classes_per_client=1).make(dataset(y), seed=0)
    assert sorted(part.size for part in parts) == [5, 5, 6, 6]
    assert sorted(np.concatenate(parts)) == list(range(22))


def test_dirichlet_has_the_laws_mean_and_variance() -> None:
    clients, alpha, runs, rows = 5, 0.7, 400, 400
    y = np.repeat(np.arange(3), rows)
    config = Dirichlet(clients=clients, alpha=alpha)
    share = np.array(
        [
            [np.bincount(y[part], minlength=3) / rows for part in parts]
            for parts in (config.make(dataset(y), seed) for seed in range(runs))
        ]
    )
    np.testing.assert_allclose(share.sum(axis=1), 1)
    # A marginal of Dir(a, ..., a) is Beta(a, (M - 1) a). Rows are whole: within 1/400
    # of it. A client has no row at all with a chance below 1e-4 (three of that law
    # below 1/400), so that `least` changes nothing that can be seen.
    mean, variance, kurtosis = map(
        float, stats.beta(alpha, (clients - 1) * alpha).stats("mvk")
    )
    assert variance == pytest.approx(mean * (1 - mean) / (clients * alpha + 1))
    num = runs * 3
    error = np.sqrt(variance / num)
    assert np.abs(share.mean(axis=(0, 2)) - mean).max() < 4 * error + 1 / rows
    error = variance * np.sqrt((kurtosis + 2) / num)
    assert np.abs(share.var(axis=(0, 2)) - variance).max() < 4 * error
    # Proportions of two classes are independent.
    between = np.corrcoef(share[:, 0, 0], share[:, 0, 1])[0, 1]
    assert abs(between) < 4 / np.sqrt(runs)


def test_dirichlet_of_extreme_concentrations() -> None:
    y = np.arange(1000) % 10
    equal = Dirichlet(clients=4, alpha=1e9).make(dataset(y), seed=1)
    for part in equal:
        assert np.abs(np.bincount(y[part]) - 25).max() <= 1
    single = Dirichlet(clients=4, alpha=1e-6).make(dataset(y), seed=1)
    counts = np.array([np.bincount(y[part], minlength=10) for part in single])
    assert set(counts.ravel().tolist()) == {0, 100}


def test_dirichlet_rows_of_a_class_are_random() -> None:
    parts = Dirichlet(clients=2, alpha=1e9).make(dataset(np.zeros(1000)), seed=0)
    # Hypergeometric: of 500 draws 250 are below 500, standard deviation 7.9.
    assert abs(int((parts[0] < 500).sum()) - 250) < 5 * 7.9


def test_dirichlet_draws_until_every_client_has_the_least() -> None:
    y = np.arange(200) % 2
    some = [
        min(p.size for p in config.make(dataset(y), seed))
        for seed in range(20)
        for config in (Dirichlet(clients=5, alpha=0.5, least=20),)
    ]
    free = Dirichlet(clients=5, alpha=0.5)
    assert min(some) >= 20
    assert min(p.size for s in range(20) for p in free.make(dataset(y), s)) < 20


@pytest.mark.parametrize(
    ("weights", "expected"),
    [
        ((1, 2, 3), [10, 20, 30]),
        ("m", [10, 20, 30]),
        ("1/m", [33, 16, 11]),
        (5, [20, 20, 20]),
        ((1, 1, 1e-1), [29, 28, 3]),
        ((10**40, 10**40, 2 * 10**40), [15, 15, 30]),
    ],
)
def test_sizes_follow_the_weights(weights: Any, expected: list[int]) -> None:
    config = Sizes(clients=3, weights=weights)
    parts = config.make(dataset(np.zeros(60)), seed=2)
    assert [part.size for part in parts] == expected
    assert sorted(np.concatenate(parts)) == list(range(60))


def test_sizes_shares_are_random() -> None:
    config = Sizes(clients=2, weights=(1, 3))
    parts = config.make(dataset(np.zeros(1000)), seed=0)
    # Hypergeometric: of 250 draws 125 are below 500, standard deviation 6.8.
    assert abs(int((parts[0] < 500).sum()) - 125) < 5 * 6.8


def test_column_groups_equal_values() -> None:
    config = ByColumn(clients=5, column="user")
    assert held(config.make(users(), 0)) == [
        [10] * 5,
        [20] * 3,
        [30] * 2,
        [40],
        [50],
    ]
    two = ByColumn(clients=2, column=1).make(users(), seed=7)
    assert held(two) == [[10] * 5, [20] * 3 + [30] * 2 + [40, 50]]
    assert all((np.diff(part) > 0).all() for part in two)


def test_column_of_distinct_values_makes_equal_groups() -> None:
    values = np.random.default_rng(1).permutation(103).astype(np.float32)
    data = dataset(np.zeros(103), np.stack([values, values], axis=1))
    parts = ByColumn(clients=10, column="age").make(data, seed=0)
    assert {part.size for part in parts} <= {10, 11}
    sorted_values = np.concatenate([np.sort(values[part]) for part in parts])
    np.testing.assert_array_equal(sorted_values, np.arange(103))


def test_column_leaves_a_value_for_every_client() -> None:
    values = np.repeat([1, 2, 3, 4], [1, 1, 1, 97])
    data = dataset(np.zeros(100), np.stack([values, values[::-1]], axis=1))
    for name, expected in (("age", [1, 1, 1, 97]), ("user", [1, 1, 1, 97])):
        parts = ByColumn(clients=4, column=name).make(data, seed=0)
        assert [part.size for part in parts] == expected


@pytest.mark.parametrize(
    "config",
    [
        Labels(clients=4, classes_per_client=2),
        Dirichlet(clients=4, alpha=0.5),
        Sizes(clients=4, weights="m"),
        Iid(clients=4),
    ],
)
def test_keyed_by_the_seed(config: Any) -> None:
    data = dataset(np.arange(100) % 3)
    first, again, other = (
        [part.tolist() for part in config.make(data, seed)] for seed in (1, 1, 2)
    )
    assert first == again != other
    assert config.num_clients == 4
    assert config.family == "horizontal"


def test_weights_for_every_client() -> None:
    with pytest.raises(ValueError, match=r"one entry per client \(3\), got 2") as error:
        Sizes(clients=3, weights=(1, 2))
    cause = error.value.errors()[0]["ctx"]["error"]  # pyright: ignore
    assert isinstance(cause, LocatedError)
    assert cause.keys == ("weights",)
