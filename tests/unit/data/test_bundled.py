"""Data that ships: shapes, scales, and the fixed shuffle."""

import numpy as np
import pytest
from sklearn.datasets import load_digits

from stalesim.simulator.catalogue.data import bundled
from stalesim.simulator.catalogue.data.bundled import BreastCancer, Digits
from stalesim.simulator.catalogue.data.mnist import Mnist
from stalesim.simulator.parts.errors import DataError


def test_digits() -> None:
    data = Digits().make()
    assert (data.x_train.shape, data.x_test.shape) == ((1437, 64), (360, 64))
    assert (data.name, data.num_classes) == ("digits", 10)
    assert (data.x_train.min(), data.x_train.max()) == (0, 1)
    assert data.columns[9] == "pixel_1_1"
    raw = Digits(scale="raw").make()
    np.testing.assert_array_equal(raw.x_train, 16 * data.x_train)


def test_digits_are_those_that_scikit_learn_loads() -> None:
    bunch, found = load_digits(), bundled.read()
    for ours, theirs in zip(found, (bunch.data, bunch.target), strict=True):
        np.testing.assert_array_equal(ours, theirs, strict=True)
    assert list(Digits().make().columns) == bunch.feature_names


def test_digits_where_scikit_learn_has_them_elsewhere(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(bundled, "FILE", bundled.FILE.with_name("none.csv.gz"))
    with pytest.raises(DataError, match=r"none\.csv\.gz, which is not there"):
        Digits().make()


def test_breast_cancer() -> None:
    data = BreastCancer(scale="standard").make()
    assert (data.x_train.shape, data.x_test.shape) == ((455, 30), (114, 30))
    assert (data.num_classes, len(data.columns)) == (2, 30)
    assert data.columns[0] == "mean_radius"
    np.testing.assert_allclose(data.x_train.std(axis=0), 1, rtol=1e-4)
    labels = np.concatenate([data.y_train, data.y_test])
    assert labels.mean() == pytest.approx(357 / 569)


def test_mnist5k() -> None:
    data = Mnist().make()
    assert (data.x_train.shape, data.x_test.shape) == ((4000, 784), (1000, 784))
    assert (data.name, data.num_classes) == ("mnist5k", 10)
    assert data.x_train.max() == 1
    assert data.columns[29] == "pixel_1_1"
    counts = np.bincount(np.concatenate([data.y_train, data.y_test]))
    np.testing.assert_array_equal(counts, 500)
    # It ships sorted by digit: of 4,000 shuffled rows, any 100 hold every digit.
    assert len(np.unique(data.y_train[:100])) == 10
    again = Mnist(source="bundled", limit=50).make()
    np.testing.assert_array_equal(again.x_train, data.x_train[:50])
    np.testing.assert_array_equal(again.x_test, data.x_test)
