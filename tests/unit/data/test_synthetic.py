"""Drawn data: shape, balance, determinism, planted signal."""

import hashlib
import subprocess
import sys
import warnings
from typing import Any

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from threadpoolctl import threadpool_limits

from stalesim.simulator.catalogue.data.synthetic import (
    NORM,
    SyntheticImages,
    SyntheticLogistic,
    SyntheticSeries,
    SyntheticTable,
)
from stalesim.simulator.catalogue.partitions.vertical import Views
from stalesim.simulator.problem.data.base import Dataset


def sha(*arrays: np.ndarray) -> str:
    return hashlib.sha256(b"".join(a.tobytes() for a in arrays)).hexdigest()


def accuracy(data: Dataset, iterations: int) -> float:
    """Test accuracy of logistic regression with the regulariser 0.001/2 * |w|^2."""
    mean = data.x_train.mean(axis=0)
    model = LogisticRegression(
        C=1 / (0.001 * len(data.y_train)), max_iter=iterations, tol=1e-3
    )
    # One thread: several fight over the cores with the other tests.
    with warnings.catch_warnings(), threadpool_limits(1):
        # Stopped early on purpose, as the docstrings say.
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(data.x_train - mean, data.y_train)
    return float(model.score(data.x_test - mean, data.y_test))


def test_synthetic_logistic() -> None:
    config = SyntheticLogistic(num_samples=5000, num_features=8, data_seed=3)
    data = config.make()
    assert (data.x_train.shape, data.x_test.shape) == ((4000, 8), (1000, 8))
    assert (data.num_classes, data.columns[-1]) == (2, "x7")
    # Raw by default: standard normal. Five standard errors of 32,000 entries.
    assert abs(data.x_train.mean()) < 5 / np.sqrt(32_000)
    assert abs(data.x_train.var() - 1) < 5 * np.sqrt(2 / 32_000)
    # Without an intercept either class has probability 1/2.
    assert abs(data.y_train.mean() - 0.5) < 5 * 0.5 / np.sqrt(4000)
    other = config.replaced(data_seed=4).make()
    assert sha(data.x_train) == sha(config.make().x_train)
    assert sha(data.x_train) != sha(other.x_train)


def test_synthetic_logistic_has_the_planted_norm() -> None:
    config = SyntheticLogistic(num_samples=40_000, num_features=3)
    data = config.make()
    model = LogisticRegression(C=1e6).fit(data.x_train, data.y_train)
    # The estimate's standard error along w is about 0.03: E[x^2 p (1 - p)] = 0.03.
    assert np.linalg.norm(model.coef_) == pytest.approx(NORM, abs=0.15)


def test_a_table_has_columns_of_views() -> None:
    data = SyntheticTable(num_samples=5000, views={"a": 12, "long": 3}).make()
    assert (data.x_train.shape, data.x_test.shape) == ((4000, 15), (1000, 15))
    assert (data.name, data.num_classes) == ("synthetic_table", 2)
    assert data.columns[11:13] == ("a_11", "long_0")
    assert data.views == ("a",) * 12 + ("long",) * 3
    parts = Views(parties=2).make(data)
    assert [part.tolist() for part in parts] == [[*range(12)], [12, 13, 14]]
    # Factors of variance 1 in a class, and between the two means; noise of 0.5.
    assert 1.1 < data.x_train.var(axis=0).mean() < 2.5


def test_images_have_pixels_in_planes() -> None:
    config = SyntheticImages(num_samples=100, side=8, channels=3)
    data = config.make()
    assert (data.x_train.shape, data.x_test.shape) == ((80, 192), (20, 192))
    assert (data.num_classes, data.views) == (10, ())
    assert data.columns[64] == "green_0_0"
    assert data.scaling == "unit: 0 to 255 become 0 to 1"
    raw = config.replaced(scale="raw").make().x_train
    assert (raw == np.rint(raw)).all()
    assert 0 <= raw.min() < 30 < 225 < raw.max() <= 255
    # Smooth: neighbours in a row are alike, pixels four apart less so.
    rows = raw.reshape(-1, 8)
    near, far = (np.corrcoef(rows[:, 0], rows[:, k])[0, 1] for k in (1, 4))
    assert near > max(0.6, far + 0.1)


def test_images_have_views() -> None:
    data = SyntheticImages(num_samples=100, side=8, views=12, num_classes=40).make()
    assert data.x_train.shape == (80, 12 * 64)
    assert data.views[63:65] == ("view1", "view2")
    assert data.columns[64] == "view2_pixel_0_0"
    assert len(set(data.columns)) == 12 * 64
    assert not np.array_equal(data.x_train[:, :64], data.x_train[:, 64:128])


@pytest.mark.parametrize("labels", ["row", "frame"])
def test_series_are_frames_of_features(labels: Any) -> None:
    config = SyntheticSeries(num_samples=500, frames=6, features=4, labels=labels)
    data = config.replaced(scale="standard", num_classes=5).make()
    assert data.x_train.shape == (400, 24)
    assert data.num_frames == (6 if labels == "frame" else None)
    assert data.columns[3:6] == (
        *("feature_3_frame_0", "feature_0_frame_1", "feature_1_frame_1"),
    )
    parts = Views(parties=2).make(data)
    assert parts[0].tolist() == [4 * t + f for t in range(6) for f in (0, 1)]
    # A feature has one scale in all frames.
    features = data.x_train.reshape(-1, 4)
    np.testing.assert_allclose(features.mean(axis=0), 0, atol=1e-5)
    np.testing.assert_allclose(features.std(axis=0), 1, atol=1e-5)


def test_frames_keep_their_class_for_a_while() -> None:
    data = SyntheticSeries(num_classes=10, labels="frame", frames=50).make()
    same = (data.y_train[:, 1:] == data.y_train[:, :-1]).mean()
    # Another class is drawn with chance 0.25, nine times of ten.
    assert same == pytest.approx(0.75 + 0.25 / 10, abs=0.01)
    with pytest.raises(ValueError, match="classes must not be set if every frame has"):
        SyntheticSeries(labels="frame", classes=(0, 1))


KINDS = [SyntheticTable(), SyntheticImages(num_samples=300), SyntheticSeries()]


@pytest.mark.parametrize("config", KINDS)
def test_drawn_sets_are_the_same_twice(config: Any) -> None:
    data, again = config.make(), config.make()
    assert sha(*data[1:5]) == sha(*again[1:5])
    assert sha(data.x_train) != sha(config.replaced(data_seed=1).make().x_train)
    counts = np.bincount(np.concatenate([data.y_train, data.y_test]))
    assert counts.max() - counts.min() <= 1


def test_drawn_sets_must_fit_in_memory() -> None:
    with pytest.raises(ValueError, match="at most 20,000,000, got 3,000 x 10,000; low"):
        SyntheticTable(num_samples=3000, views={"a": 10_000})
    with pytest.raises(ValueError, match="got 2,000 x 120,000; lower one of them"):
        SyntheticSeries(frames=10_000, features=1)  # of each frame twelve factors


@pytest.mark.slow
def test_every_view_tells_something_and_all_tell_more() -> None:
    sets = [
        SyntheticTable(num_samples=5000, num_classes=4, data_seed=seed).make()
        for seed in range(5)
    ]
    whole = np.mean([accuracy(data, 100) for data in sets])
    views = [
        np.mean([accuracy(_taken(data, part), 100) for data in sets])
        for part in (slice(10), slice(10, 20))
    ]
    assert 0.4 < min(views) < max(views) < whole - 0.05
    assert whole < 0.9


def _taken(data: Dataset, part: slice) -> Dataset:
    return data._replace(x_train=data.x_train[:, part], x_test=data.x_test[:, part])


def test_no_jax_simpy_or_pandas_is_imported() -> None:
    modules = ["bundled", "mnist", "cifar", "synthetic", "own_arrays", "tables"]
    code = "".join(
        f"import stalesim.simulator.catalogue.data.{name}\n" for name in modules
    )
    code += "import stalesim.simulator.catalogue.partitions.shares, sys\n"
    code += "assert not {'jax', 'simpy', 'pandas'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)
