"""Generated data and stand-ins: shape, balance, determinism, planted signal."""

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

from stalesim.simulator.data.base import Dataset
from stalesim.simulator.data.cifar10 import standin as cifar_standin
from stalesim.simulator.data.cifar10.part import Cifar10
from stalesim.simulator.data.fashion_mnist import standin as fashion_standin
from stalesim.simulator.data.fashion_mnist.part import FashionMnist
from stalesim.simulator.data.parkinson import standin as parkinson_standin
from stalesim.simulator.data.parkinson.part import Parkinson
from stalesim.simulator.data.synthetic_logistic import NORM, SyntheticLogistic


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


def test_fashion_mnist_standin() -> None:
    data = FashionMnist().make()
    assert data.name == "fashion_mnist-standin"
    assert (data.x_train.shape, data.x_test.shape) == ((12_000, 784), (2_000, 784))
    assert (data.x_train.min(), data.x_train.max(), data.num_classes) == (0, 1, 10)
    counts = np.bincount(np.concatenate([data.y_train, data.y_test]))
    np.testing.assert_array_equal(counts, 1400)


def test_cifar10_standin() -> None:
    data = Cifar10(source="standin").make()
    assert data.name == "cifar10-standin"
    assert (data.x_train.shape, data.x_test.shape) == ((10_000, 3072), (2_000, 3072))
    assert (data.x_train.min(), data.x_train.max(), data.num_classes) == (0, 1, 10)
    counts = np.bincount(np.concatenate([data.y_train, data.y_test]))
    np.testing.assert_array_equal(counts, 1200)


def test_parkinson_standin() -> None:
    data = Parkinson(scale="standard").make()
    assert data.name == "parkinson-standin"
    assert (data.x_train.shape, data.x_test.shape) == ((603, 753), (153, 753))
    assert (len(data.columns), data.columns[251]) == (753, "block1_0")
    assert np.concatenate([data.y_train, data.y_test]).mean() == 0.75
    x, y, subject = parkinson_standin.generate()
    np.testing.assert_array_equal(np.bincount(subject), 3)
    assert all(len(set(y[subject == s])) == 1 for s in range(252))
    # Heavy tails: the kurtosis of a normal column is 3 +- 0.2.
    z = (x - x.mean(axis=0)) / x.std(axis=0)
    assert np.median((z.astype(float) ** 4).mean(axis=0)) > 4


def test_parkinson_standin_is_divided_by_subject() -> None:
    x, _, subject = parkinson_standin.generate()
    data = Parkinson(scale="raw").make()
    owner = dict(zip(x[:, 0].tolist(), subject.tolist(), strict=True))
    train = {owner[value] for value in data.x_train[:, 0].tolist()}
    test = {owner[value] for value in data.x_test[:, 0].tolist()}
    assert (len(train), len(test)) == (201, 51)
    assert not train & test


@pytest.mark.parametrize(
    ("generator", "config", "num_train"),
    [
        (fashion_standin, FashionMnist(scale="raw"), 12_000),
        (cifar_standin, Cifar10(scale="raw"), 10_000),
    ],
)
def test_standins_are_the_same_twice(
    generator: Any, config: Any, num_train: int
) -> None:
    # Generated anew, and (from the tests above) out of the cache.
    made = generator.generate()
    data = config.make()
    np.testing.assert_array_equal(data.x_test, made["x"][num_train:])
    np.testing.assert_array_equal(data.y_test, made["y"][num_train:])


def test_parkinson_standin_is_the_same_twice() -> None:
    assert sha(*parkinson_standin.generate()) == sha(*parkinson_standin.generate())


@pytest.mark.slow
def test_fashion_mnist_standin_accuracy() -> None:
    assert 0.80 <= accuracy(FashionMnist().make(), 15) <= 0.85


@pytest.mark.slow
def test_cifar10_standin_accuracy() -> None:
    assert 0.35 <= accuracy(Cifar10().make(), 15) <= 0.45


@pytest.mark.slow
def test_parkinson_standin_accuracy() -> None:
    sets = [Parkinson(scale="standard", split_seed=s).make() for s in range(5)]
    whole = [accuracy(data, 1000) for data in sets]
    block = [
        accuracy(d._replace(x_train=d.x_train[:, :251], x_test=d.x_test[:, :251]), 1000)
        for d in sets
    ]
    assert 0.80 <= np.mean(whole) <= 0.90
    assert np.mean(block) < np.mean(whole) - 0.1


def test_no_jax_simpy_or_pandas_is_imported() -> None:
    modules = [*("digits", "mnist", "cifar10.part", "parkinson.part", "usps.part")]
    modules += ["fashion_mnist.part", "synthetic_logistic", "user_npz", "user_csv"]
    code = "".join(f"import stalesim.simulator.data.{name}\n" for name in modules)
    code += "import stalesim.simulator.partitions.iid, sys\n"
    code += "assert not {'jax', 'simpy', 'pandas'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)
