"""Training and test rows of every data set: division, classes, order, limit, scale.

In this order, so that the test rows of a class do not depend on the choice of classes,
and a limit counts rows of the chosen ones. The data set's own `split_seed` decides all
of it, the same for every run unless it follows the replicate.
"""

import math
from typing import Any, Literal

import numpy as np
from jaxtyping import Float, Float64, Int, Int32, Shaped

from ...parts.errors import ScenarioError
from ...parts.expressions import up
from .base import DIVISION, ORDER, Dataset, Field, Grouping, features_type, generator
from .parts import Data

Samples = tuple[Shaped[np.ndarray, "_ _"], Shaped[np.ndarray, " _ *L"]]
"""Features `[N, P]` and labels `[N]`, or `[N, L]` where rows have frames."""
Labels = Shaped[np.ndarray, " _"]
"""Classes of rows, from 0."""
Choice = Literal["even_odd", "lower_upper"] | tuple[int, ...]
"""The entry `classes` of a data set."""
UNUSED = 2**31 - 1
"""New number of a class whose rows are left out."""


def select(
    choice: Choice, name: str, train: Labels, test: Labels, num_classes: int
) -> tuple[str, Labels, Labels, int]:
    """Returns labels under the numbers of the chosen classes, from 0; others `UNUSED`.

    Args:
        choice: Entry `classes` of the scenario.
        name: Name of the data set.
        train: Labels of the training rows.
        test: Labels of the test rows.
        num_classes: Number of classes before the choice.

    Returns:
        The name with the choice, both labels and the number of classes.

    Raises:
        ScenarioError: A class does not exist or has no training rows, or there are no
            test rows at all.
    """
    number = _renumbered(choice, name, num_classes)
    train, test = number[train.astype(np.int64)], number[test.astype(np.int64)]
    num_kept = len(choice) if isinstance(choice, tuple) else 2
    counts = np.bincount(train[train != UNUSED], minlength=num_kept)
    if not counts.all():
        empty = int(counts.argmin())
        what = (
            f"class {choice[empty]}"
            if isinstance(choice, tuple)
            else f"group {empty} of {choice}"
        )
        raise ScenarioError(
            f"problem.data.classes must have training rows in every class, got none of "
            f"{name} in {what}; choose other classes"
        )
    if (test == UNUSED).all():
        raise ScenarioError(
            f"problem.data.classes must have test rows, got none of {name} in "
            f"{shown(choice)}; choose other classes, or raise test_fraction"
        )
    return f"{name} ({shown(choice)})", train, test, num_kept


def shown(choice: Choice) -> str:
    """Returns a choice in the form of tables: `even_odd`, or `3, 8`."""
    return ", ".join(map(str, choice)) if isinstance(choice, tuple) else str(choice)


def _renumbered(
    choice: Choice, name: str, num_classes: int
) -> Int32[np.ndarray, " old"]:
    old = np.arange(num_classes, dtype=np.int32)
    if choice == "even_odd":
        return old % np.int32(2)
    if choice == "lower_upper":
        return (old >= math.ceil(num_classes / 2)).astype(np.int32)
    number = np.full(num_classes, UNUSED, np.int32)
    for new, label in enumerate(choice):
        if not isinstance(label, int) or label >= num_classes:
            raise ScenarioError(
                f"problem.data.classes must be classes of {name}, from 0 to "
                f"{num_classes - 1}, got {label}; choose one of them"
            )
        number[label] = new
    return number


BLOCK = 4096
"""Number of rows that are in memory as float64 at a time."""


def divide(
    config: Data, groups: Shaped[np.ndarray, " N"], what: str = "rows"
) -> tuple[Int[np.ndarray, " a"], Int[np.ndarray, " b"]]:
    """Divides rows at random into training and test rows, whole groups at a time.

    Args:
        config: Options, of which `test_fraction` of the groups, rounded up, become
            test rows.
        groups: Group of each row; all different where rows are independent.
        what: Name of the groups in messages.

    Returns:
        Ids of the training rows and of the test rows, both ascending.

    Raises:
        ScenarioError: No group would be left for training.
    """
    unique, group = np.unique(groups, return_inverse=True)
    # The tolerance keeps 0.1 * 30 = 3.0000000000000004 from becoming four rows.
    num_test = up(config.test_fraction * unique.size)
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
        groupings: The groups of training rows.
        in_order: Whether the training rows keep their order.

    Raises:
        ScenarioError: A class does not exist, or the limit is above the number of
            training rows.
    """
    if config.classes is not None and no_classes:
        raise ScenarioError(f"problem.data.classes needs classes: {no_classes}")
    (x, y), (x_test, y_test) = train, test
    rows = np.arange(len(y))
    if config.classes is not None:
        name, y, y_test, num_classes = select(
            config.classes, name, y, y_test, num_classes
        )
        rows, kept = np.flatnonzero(y != UNUSED), y_test != UNUSED
        x, y, x_test, y_test = x[rows], y[rows], x_test[kept], y_test[kept]
    # The limit comes after the choice of classes: it counts rows that are learned.
    if config.limit is not None and config.limit > len(y):
        raise ScenarioError(
            f"problem.data.limit must be at most the {len(y)} training rows of {name}, "
            f"got {config.limit}; lower it or leave it out"
        )
    of_features = features_type()
    order = generator(config.split, ORDER).permutation(len(y))
    kept = (np.arange(len(y)) if in_order else order)[: config.limit]
    x, y = x[kept], y[kept]
    # Only training rows that are used decide the scale: nothing leaks from test rows.
    one = Field("", x.shape[1:], largest=largest)
    shift, divisor, words = _scaling(
        config.scale, x, fields or (one,), smallest, frames
    )
    fractions = any(of.dtype.kind == "f" for of in (y, y_test))
    dtype = of_features if fractions and not num_classes else np.int32
    return Dataset(
        name=name,
        x_train=_scaled(x, shift, divisor, of_features),
        y_train=y.astype(dtype),
        x_test=_scaled(x_test, shift, divisor, of_features),
        y_test=y_test.astype(dtype),
        num_classes=num_classes,
        columns=columns,
        views=views,
        fields=fields,
        no_classes=no_classes,
        groupings=tuple(each.taken(rows[kept]) for each in groupings),
        scaling=f"{config.scale}: {words}",
    )


def divided(
    config: Data,
    name: str,
    rows: Samples,
    *,
    groups: Shaped[np.ndarray, " _"] | None = None,
    groupings: tuple[Grouping, ...] = (),
    **facts: Any,
) -> Dataset:
    """Divides the rows of a set that is published undivided, and finishes it.

    Args:
        config: Options with classes, scale, limit, split seed and test fraction.
        name: Name in tables and figures.
        rows: Features and labels.
        groups: Group of each row, such as a subject; no group is in both halves.
        groupings: The groups of rows.
        facts: Classes, columns and others, as `finished` has them.

    Raises:
        ScenarioError: Nothing would be left for training, a class does not exist, or
            the limit is too high.
    """
    x, y = rows
    if groups is None:
        train, test = divide(config, np.arange(len(y)))
    else:
        train, test = divide(config, groups, "subjects")
    known = tuple(each.taken(train) for each in groupings)
    halves = (x[train], y[train]), (x[test], y[test])
    return finished(config, name, *halves, groupings=known, **facts)


def _scaling(
    scale: str,
    x: Shaped[np.ndarray, "N P"],
    fields: tuple[Field, ...],
    smallest: float,
    frames: int,
) -> tuple[Float64[np.ndarray, " _"], Float64[np.ndarray, " _"], str]:
    """Returns the shift that is subtracted from columns, their divisor, and words."""
    if scale == "raw":
        return np.zeros(1), np.ones(1), "as stored"
    shift, divisor, words = np.zeros(x.shape[1]), np.ones(x.shape[1]), {}
    own = {"unit": "by its extremes", "standard": "by its mean and deviation"}[scale]
    ends = np.cumsum([field.width for field in fields])
    for field, end in zip(fields, ends, strict=True):
        columns = slice(end - field.width, end)
        if field.whole:
            words[field.name] = "whole numbers, as stored"
        elif scale == "unit" and field.largest is not None:
            shift[columns], divisor[columns] = smallest, field.largest - smallest
            words[field.name] = f"{smallest:g} to {field.largest:g} become 0 to 1"
        else:
            # One constant keeps what neighbours are to each other, as in an image.
            is_array = len(field.shape) > 1
            width = 1 if is_array else field.width // frames
            both = _constants(scale, x[:, columns].reshape(-1, width))
            for part, found in zip((shift, divisor), both, strict=True):
                part[columns] = np.tile(found, field.width // width)
            each = "the array" if is_array else "each column"
            each = "each feature, alike in all frames," if frames > 1 else each
            words[field.name] = f"{each} {own} in {len(x):,} training rows"
    if {*words} == {""}:
        return shift, divisor, words[""]
    return shift, divisor, "; ".join(f"{name} {said}" for name, said in words.items())


def _constants(
    scale: str, x: Shaped[np.ndarray, "N P"]
) -> tuple[Float64[np.ndarray, " P"], Float64[np.ndarray, " P"]]:
    """Returns what is subtracted from each column, and its divisor.

    A constant column is divided by one, so that it becomes zero.
    """
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
    dtype: np.dtype,
) -> Float[np.ndarray, "N P"]:
    scaled = np.empty(x.shape, dtype)
    for start in range(0, len(x), BLOCK):
        block = slice(start, start + BLOCK)
        scaled[block] = (x[block] - shift) / divisor
    return scaled
