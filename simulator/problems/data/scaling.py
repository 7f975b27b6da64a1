"""Dividing a data set into training and test rows, and scaling its features."""

import numpy as np
from jaxtyping import Float, Int

from simulator.problems.data.base import Dataset
from simulator.scenario.problems import Data


def shuffled(num_rows: int, split_seed: int) -> Int[np.ndarray, " N"]:
    """Returns the rows in a random order that is the same in every run."""
    return np.random.default_rng(np.random.SeedSequence(split_seed)).permutation(num_rows)


def split(
    config: Data, x: Float[np.ndarray, "N P"], y: Int[np.ndarray, " N"]
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Divides rows at random; returns training features and labels, then test ones."""
    order = shuffled(len(x), config.split_seed)
    num_test = min(len(x) - 1, max(1, round(config.test_fraction * len(x))))
    train, test = order[num_test:], order[:num_test]
    return x[train], y[train], x[test], y[test]


def finish(
    config: Data,
    name: str,
    parts: tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray],
    columns: tuple[str, ...],
    *,
    largest: float | None,
) -> Dataset:
    """Limits and scales a divided data set.

    Args:
        config: of the data set.
        name: for tables and figures.
        parts: training features and labels, test features and labels.
        columns: names of the features.
        largest: value that `unit` divides by; None takes each column's range among the
            training rows.
    """
    x_train, y_train, x_test, y_test = parts
    num_classes = int(max(y_train.max(), y_test.max())) + 1
    x_train = np.asarray(x_train[: config.limit], np.float64)
    y_train = y_train[: config.limit]
    shift, scale = _scale(config.scale, x_train, largest)
    return Dataset(
        name=name,
        x_train=((x_train - shift) / scale).astype(np.float32),
        y_train=np.asarray(y_train, np.int32),
        x_test=((np.asarray(x_test, np.float64) - shift) / scale).astype(np.float32),
        y_test=np.asarray(y_test, np.int32),
        num_classes=max(2, num_classes),
        columns=columns,
    )


def _scale(
    scale: str, x: Float[np.ndarray, "N P"], largest: float | None
) -> tuple[np.ndarray | float, np.ndarray | float]:
    """Returns what to subtract and what to divide by."""
    if scale == "raw":
        return 0.0, 1.0
    if scale == "unit" and largest is not None:
        return 0.0, largest
    if scale == "unit":
        low, spread = x.min(axis=0), np.ptp(x, axis=0)
    else:
        low, spread = x.mean(axis=0), x.std(axis=0)
    return low, np.where(spread > 0, spread, 1.0)
