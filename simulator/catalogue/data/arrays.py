"""Arrays of a user's own, of any shape and type, as features and targets of rows.

Features are laid out in columns, `[N, P]`, and `Field` specifies how a model gets them
back: an array `x` is one input, arrays `x/NAME` are several. Targets keep their shape.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Num, Shaped

from ...files.reading import table
from ...parts.errors import DataError
from ...problem.data import base, groups
from ...problem.data.base import Dataset, Field
from ...problem.data.parts import Data
from ...problem.data.split import divided, finished

LARGEST = {np.dtype(np.uint8): 255.0, np.dtype(bool): 1.0}
"""Largest possible value of pixels, by the type of an array of images."""
EXACT = 2**24
"""Largest whole number up to which float32 has all of them."""
Arrays = Mapping[str, Shaped[np.ndarray, "..."]]
"""Arrays by their names."""


def dataset(
    config: Data, name: str, place: str | Path, arrays: Arrays, **told: Any
) -> Dataset:
    """Returns the data set of arrays `x`, `y` and, if they are there, of test rows.

    Args:
        config: Options of the data set: scale, limit, split seed, ...
        name: Name in tables and figures.
        place: Name of the arrays' source, for messages.
        arrays: `x` or `x/NAME`, `y`; optionally `x_test` or `x_test/NAME`, `y_test`,
            and `group` or `group/NAME`, the group of each training row.
        told: Facts that do not come from the arrays, as for `finished`.

    Raises:
        DataError: Arrays are missing, of other shapes, or not finite.
        ScenarioError: The limit or the test fraction is too high.
    """
    raw = config.scale == "raw"
    x, fields = inputs(place, arrays, "x", raw=raw)
    train = x, _targets_of(place, arrays, "y", len(x))
    test = None
    if any(key.split("/")[0] in ("x_test", "y_test") for key in arrays):
        x_test, others = inputs(place, arrays, "x_test", raw=raw)
        test = x_test, _targets_of(place, arrays, "y_test", len(x_test))
        _check_alike(place, train, test, (fields, others))
    num_classes, no_classes = classes(
        place, train[1], None if test is None else test[1]
    )
    facts: dict[str, Any] = {
        "num_classes": num_classes,
        "no_classes": no_classes,
        "columns": columns(fields, x.shape[1]),
        "fields": fields,
        "groupings": groups.of_arrays(place, arrays, len(x)),
        **told,
    }
    if test is None:
        return divided(config, name, train, **facts)
    return finished(config, name, train, test, **facts)


def by_name(given: Mapping[str, object]) -> dict[str, Shaped[np.ndarray, "..."]]:
    """Returns arrays by the names that a file has: several inputs as `x/NAME`."""
    found: dict[str, np.ndarray] = {}
    for name, each in given.items():
        if isinstance(each, Mapping):
            found |= {f"{name}/{inner}": np.asarray(a) for inner, a in each.items()}
        else:
            found[str(name)] = np.asarray(each)
    return found


def missing(place: str | Path, name: str, arrays: Arrays) -> DataError:
    """Returns the error that an array is missing."""
    return DataError(
        f"{place} must hold the array {name}, got {sorted(arrays)}; save it by "
        f"numpy.savez(..., {name}={name})"
    )


def inputs(
    place: str | Path, arrays: Arrays, key: str = "x", *, raw: bool = False
) -> tuple[Shaped[np.ndarray, "N P"], tuple[Field, ...]]:
    """Returns the features of some arrays, and the inputs that they are laid out of.

    A model gets whole numbers unchanged if they are in `x/NAME`, or in an `x` of more
    than two axes, or if nothing is scaled (`raw`); but not those of one byte, which are
    pixels.

    Args:
        place: Name of the arrays' source, for messages.
        arrays: The arrays; those called `key` or `key/NAME` count.
        key: `x` or `x_test`.
        raw: Whether the data set is not scaled.

    Returns:
        Features, of the type that all arrays have in common; and the inputs, none where
        a row is a list of numbers.

    Raises:
        DataError: No array has the name, or one is not of finite numbers.
    """
    if key in arrays:
        found = {"": np.asarray(arrays[key])}
    else:
        named = (name for name in arrays if name.startswith(f"{key}/"))
        found = {name.partition("/")[2]: np.asarray(arrays[name]) for name in named}
    if not found:
        raise missing(place, key, arrays)
    num_rows = {len(array) if array.ndim else 0 for array in found.values()}
    if len(num_rows) > 1:
        raise DataError(
            f"{key} of {place} must have as many rows in all of its arrays, got "
            f"{', '.join(f'{name} {a.shape}' for name, a in found.items())}; cut them"
        )
    fields, columns = [], []
    for name, array in found.items():
        called = f"{key}/{name}" if name else key
        largest = LARGEST.get(array.dtype) if array.ndim > 2 else None
        array = _numbers(place, called, array)
        plain = not name and array.ndim == 2
        whole = array.dtype.kind in "iu" and array.dtype.itemsize > 1
        whole = whole and (raw or not plain)
        if whole and (np.abs(array) > EXACT).any():
            raise DataError(
                f"{called} of {place} must have whole numbers of at most {EXACT:,}, "
                f"got {array.max():,}; number what it holds by numpy.unique"
            )
        fields.append(Field(name, array.shape[1:], whole, largest))
        columns.append(array.reshape(len(array), -1))
    if fields == [Field("", columns[0].shape[1:])]:
        return columns[0], ()
    return np.concatenate(columns, axis=1), tuple(fields)


def columns(fields: tuple[Field, ...], num_columns: int) -> tuple[str, ...]:
    """Returns names of the columns that some inputs are laid out in."""
    if not any(field.name for field in fields):
        return base.numbered(num_columns)
    return tuple(
        name
        for field in fields
        for name in (
            base.counted(field.name, field.width) if field.shape else (field.name,)
        )
    )


def targets(
    place: str | Path, name: str, array: Shaped[np.ndarray, "..."]
) -> Num[np.ndarray, " N *L"]:
    """Returns targets as int32 if all of them are whole numbers, else as they are.

    Raises:
        DataError: They are no finite numbers.
    """
    array = _numbers(place, name, np.asarray(array))
    whole = array.dtype.kind != "f" or (array == np.floor(array)).all()
    if whole and (np.abs(array) < 2**31 - 1).all():
        return array.astype(np.int32)
    return array.astype(np.result_type(array, np.float32), copy=False)


def classes(
    place: str | Path,
    train: Num[np.ndarray, " N *L"],
    test: Num[np.ndarray, " N_test *L"] | None = None,
) -> tuple[int, str]:
    """Counts the classes of some targets.

    With one class per row, every one up to the largest must be in some row: otherwise
    one stray label would make classes without rows, and change every loss. Elements of
    sequences, such as tokens, may be absent.

    Returns:
        The number of classes and "", or 0 and why they are none.
    """
    both = [train] if test is None else [train, test]
    remedy = "or set problem.loss to squared or a function of your own"
    if any(y.dtype.kind == "f" or (y < 0).any() for y in both):
        return 0, (
            f"y of {place} must hold whole numbers from 0 for a loss of classes, got "
            f"others; number them by numpy.unique(y, return_inverse=True)[1], {remedy}"
        )
    known = np.unique(np.concatenate([y.reshape(-1) for y in both]))
    gaps = np.flatnonzero(np.diff(known, prepend=-1) > 1)
    if gaps.size and train.ndim == 1:
        next_ = int(known[gaps[0]])
        last = int(known[gaps[0] - 1]) if gaps[0] else -1
        missing = f"{last + 1}" if next_ - last == 2 else f"{last + 1} to {next_ - 1}"
        y = "y" if test is None else "numpy.concatenate([y, y_test])"
        return 0, (
            f"y of {place} must number its classes from 0 without gaps, got no row of "
            f"class {missing}, but some of class {next_}; remove a stray label, "
            f"number the {known.size} classes by numpy.unique({y}, "
            f"return_inverse=True)[1], {remedy}"
        )
    unseen = np.setdiff1d(both[-1], train)
    if unseen.size and train.ndim == 1:
        return 0, (
            f"y_test of {place} must hold classes that y has, got class {unseen[0]}, "
            f"which no row of y has; remove its rows, or add some to y, {remedy}"
        )
    if known[-1] < 1:
        return 0, (
            f"y of {place} must hold two classes or more, got only 0; check y, {remedy}"
        )
    return int(known[-1]) + 1, ""


def _targets_of(
    place: str | Path, arrays: Arrays, name: str, num_rows: int
) -> Num[np.ndarray, " N *L"]:
    if name not in arrays:
        raise missing(place, name, arrays)
    found = targets(place, name, arrays[name])
    if len(found) != num_rows:
        raise DataError(
            f"{name} of {place} must have the {num_rows} rows of "
            f"{name.replace('y', 'x', 1)}, got {len(found)}; cut one of them"
        )
    return found


def _check_alike(
    place: str | Path,
    train: tuple[np.ndarray, np.ndarray],
    test: tuple[np.ndarray, np.ndarray],
    fields: tuple[tuple[Field, ...], tuple[Field, ...]],
) -> None:
    (x, y), (x_test, y_test) = train, test
    shapes = [[(field.name, field.shape) for field in each] for each in fields]
    if x.shape[1:] != x_test.shape[1:] or shapes[0] != shapes[1]:
        got = shapes[1] or x_test.shape[1]
        raise DataError(
            f"x_test of {place} must have the {shapes[0] or x.shape[1]} columns of x, "
            f"got {got}; save both with the same features"
        )
    if y.shape[1:] != y_test.shape[1:]:
        raise DataError(
            f"y_test of {place} must have targets of the shape {y.shape[1:]} of y's, "
            f"got {y_test.shape[1:]}; save both alike"
        )


def _numbers(
    place: str | Path, name: str, array: Shaped[np.ndarray, "..."]
) -> Shaped[np.ndarray, " N *s"]:
    if not array.ndim or not array.size:
        raise DataError(
            f"{name} of {place} must have the shape [N, ...], not empty, got "
            f"{array.shape}; reshape it"
        )
    if array.dtype.kind not in "biuf":
        raise DataError(
            f"{name} of {place} must hold real numbers, got {array.dtype}; convert "
            f"it, or number its values by numpy.unique({name}, return_inverse=True)[1]"
        )
    if array.dtype.kind == "b":
        return array.astype(np.uint8)
    bad = np.argwhere(~table.representable(array))
    if bad.size:
        row, *rest = (int(index) for index in bad[0])
        column = f", column {', '.join(map(str, rest))}" if rest else ""
        raise DataError(
            f"{name} of {place} must be finite, got {array[tuple(bad[0])]} at row "
            f"{row}{column}; fill or remove it"
        )
    return array
