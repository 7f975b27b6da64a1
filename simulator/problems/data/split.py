"""Training and test rows of every data set: division, classes, order, limit, scale.

In this order, so that the test rows of a class do not depend on the choice of classes,
and a limit counts rows of the chosen ones. The data set's own `split_seed` decides all
of it, the same for every run unless it follows the replicate.
"""

import math

import numpy as np
from jaxtyping import Float, Float32, Float64, Int, Shaped

from simulator.config.errors import ScenarioError
from simulator.problems.data.base import Dataset, Field, Grouping
from simulator.problems.data.classes import Samples, select
from simulator.problems.data.parts import Data
from simulator.problems.data.seeds import DIVISION, ORDER, generator

BLOCK = 4096
"""Number of rows that are in memory as float64 at a time."""


def divide(
    config: Data, groups: Shaped[np.ndarray, " N"], what: str = "rows"
) -> tuple[Int[np.ndarray, " a"], Int[np.ndarray, " b"]]:
    """Divides rows at random into training and test rows, whole groups at a time.

    Args:
        config: Options, of which `test_fraction` of the groups, rounded up, become
            test rows.
        groups: Group of each row; all different where rows stand alone.
        what: Name of the groups in messages.

    Returns:
        Ids of the training rows and of the test rows, both ascending.

    Raises:
        ScenarioError: No group would be left for training.
    """
    unique, group = np.unique(groups, return_inverse=True)
    # The tolerance keeps 0.1 * 30 = 3.0000000000000004 from becoming four rows.
    num_test = math.ceil(config.test_fraction * unique.size - 1e-9)
    if num_test >= unique.size:
        raise ScenarioError(
            f"problem.data.test_fraction must leave some of the {unique.size} {what} "
            f"for training, got {config.test_fraction}; lower it"
        )
    order = generator(config.split, DIVISION).permutation(unique.size)
    is_test = np.zeros(unique.size, bool)
    is_test[order[:num_test]] = True
    return np.flatnonzero(~is_test[group]), np.flatnonzero(is_test[group])


def finished(
    config: Data,
    name: str,
    train: Samples,
    test: Samples,
    *,
    num_classes: int,
    columns: tuple[str, ...],
    largest: float | None = None,
    smallest: float = 0.0,
    frames: int = 1,
    views: tuple[str, ...] = (),
    fields: tuple[Field, ...] = (),
    no_classes: str = "",
    groupings: tuple[Grouping, ...] = (),
    in_order: bool = False,
) -> Dataset:
    """Takes classes of a divided data set, and orders, limits and scales its rows.

    Args:
        config: Options with classes, scale, limit and split seed.
        name: Name in tables and figures; a choice of classes is added to it.
        train: Training rows in any order; sets sorted by class are shuffled here.
        test: Test rows, whose order is kept.
        num_classes: Number of classes, which count from 0.
        columns: Names of the features.
        largest: Largest possible value, which `unit` maps to 1; None for a table,
            whose columns `unit` maps to [0, 1] by their extremes in the training rows.
        smallest: Smallest possible value, which `unit` maps to 0.
        frames: Number of frames of a row; a feature has one scale in all frames.
        views: View of each feature, none by default.
        fields: Inputs that the features are laid out of; whole ones are not scaled.
        no_classes: Reason why targets are no classes, if they are none.
        groupings: What the training rows belong to.
        in_order: Whether the training rows keep their order.

    Raises:
        ScenarioError: A class does not exist, or the limit is above the number of
            training rows.
    """
    if config.classes is not None and no_classes:
        raise ScenarioError(f"problem.data.classes needs classes: {no_classes}")
    rows = np.arange(len(train[1]))
    if config.classes is not None and groupings:
        of_rows = rows[:, None], train[1]
        rows = select(config.classes, name, of_rows, test, num_classes)[1][0][:, 0]
    name, train, test, num_classes = select(
        config.classes, name, train, test, num_classes
    )
    x, y = train
    # The limit comes after the choice of classes: it counts rows that are learned.
    if config.limit is not None and config.limit > len(y):
        raise ScenarioError(
            f"problem.data.limit must be at most the {len(y)} training rows of {name}, "
            f"got {config.limit}; lower it or leave it out"
        )
    order = generator(config.split, ORDER).permutation(len(y))
    kept = (np.arange(len(y)) if in_order else order)[: config.limit]
    x, y = x[kept], y[kept]
    # Only training rows that are used decide the scale: nothing leaks from test rows.
    in_frames = x.reshape(-1, x.shape[1] // frames)
    shift, divisor = _scale(config.scale, in_frames, smallest, largest)
    if shift.size > 1:
        shift, divisor = np.tile(shift, frames), np.tile(divisor, frames)
    if fields:
        shift, divisor = _of_fields(config.scale, fields, shift, divisor)
    fractions = any(of.dtype.kind == "f" for of in (y, test[1]))
    dtype = np.float32 if fractions and not num_classes else np.int32
    return Dataset(
        name=name,
        x_train=_scaled(x, shift, divisor),
        y_train=y.astype(dtype),
        x_test=_scaled(test[0], shift, divisor),
        y_test=test[1].astype(dtype),
        num_classes=num_classes,
        columns=columns,
        views=views,
        fields=fields,
        no_classes=no_classes,
        groupings=tuple(each.taken(rows[kept]) for each in groupings),
    )


def divided(
    config: Data,
    name: str,
    rows: Samples,
    *,
    num_classes: int,
    columns: tuple[str, ...],
    largest: float | None = None,
    smallest: float = 0.0,
    groups: Shaped[np.ndarray, " _"] | None = None,
    views: tuple[str, ...] = (),
    fields: tuple[Field, ...] = (),
    no_classes: str = "",
    groupings: tuple[Grouping, ...] = (),
) -> Dataset:
    """Divides the rows of a set that is published undivided, and finishes it.

    Args:
        config: Options with classes, scale, limit, split seed and test fraction.
        name: Name in tables and figures.
        rows: Features and labels.
        num_classes: Number of classes, which count from 0.
        columns: Names of the features.
        largest: Largest possible value, as in `finished`.
        smallest: Smallest possible value, as in `finished`.
        groups: Group of each row, such as a subject; no group is in both halves.
        views: View of each feature, none by default.
        fields: Inputs that the features are laid out of.
        no_classes: Reason why targets are no classes, if they are none.
        groupings: What the rows belong to.

    Raises:
        ScenarioError: Nothing would be left for training, a class does not exist, or
            the limit is too high.
    """
    x, y = rows
    if groups is None:
        train, test = divide(config, np.arange(len(y)))
    else:
        train, test = divide(config, groups, "subjects")
    return finished(
        config,
        name,
        (x[train], y[train]),
        (x[test], y[test]),
        num_classes=num_classes,
        columns=columns,
        largest=largest,
        smallest=smallest,
        views=views,
        fields=fields,
        no_classes=no_classes,
        groupings=tuple(each.taken(train) for each in groupings),
    )


def _of_fields(
    scale: str,
    fields: tuple[Field, ...],
    shift: Float[np.ndarray, " _"],
    divisor: Float[np.ndarray, " _"],
) -> tuple[Float64[np.ndarray, " P"], Float64[np.ndarray, " P"]]:
    """Returns the scale of columns, by what is known of the inputs that they are of."""
    widths = [field.width for field in fields]
    shift = np.broadcast_to(shift, sum(widths)).astype(float)
    divisor = np.broadcast_to(divisor, sum(widths)).astype(float)
    for field, end in zip(fields, np.cumsum(widths), strict=True):
        own = slice(end - field.width, end)
        if field.whole:
            shift[own], divisor[own] = 0, 1
        elif field.largest is not None and scale == "unit":
            shift[own], divisor[own] = 0, field.largest
    return shift, divisor


def _scale(
    scale: str, x: Shaped[np.ndarray, "N P"], smallest: float, largest: float | None
) -> tuple[Float64[np.ndarray, " _"], Float64[np.ndarray, " _"]]:
    """Returns the shift that is subtracted from columns, and their divisor.

    A constant column is divided by one, so that it becomes zero.
    """
    if scale == "raw":
        return np.zeros(1), np.ones(1)
    if scale == "unit" and largest is not None:
        return np.full(1, smallest), np.full(1, float(largest - smallest))
    if scale == "unit":
        low, high = x.min(axis=0).astype(float), x.max(axis=0).astype(float)
        return low, np.where(high > low, high - low, 1.0)
    mean = x.mean(axis=0, dtype=np.float64)
    squares = np.zeros_like(mean)
    for start in range(0, len(x), BLOCK):
        squares += ((x[start : start + BLOCK] - mean) ** 2).sum(axis=0)
    # The mean of equal numbers may differ from them in the last digit.
    constant = x.min(axis=0) == x.max(axis=0)
    return mean, np.where(constant, 1.0, np.sqrt(squares / len(x)))


def _scaled(
    x: Shaped[np.ndarray, "N P"],
    shift: Float[np.ndarray, " _"],
    divisor: Float[np.ndarray, " _"],
) -> Float32[np.ndarray, "N P"]:
    """Returns scaled float32 features, computed in float64 block by block."""
    scaled = np.empty(x.shape, np.float32)
    for start in range(0, len(x), BLOCK):
        block = slice(start, start + BLOCK)
        scaled[block] = (x[block] - shift) / divisor
    return scaled
