"""Data sets of the user: arrays in an npz file, or a table in a csv file."""

from pathlib import Path

import numpy as np
from jaxtyping import Int32, Shaped

from simulator.config.errors import DataError
from simulator.problems.data import names
from simulator.problems.data.base import Dataset
from simulator.problems.data.dividing import divided, finished
from simulator.problems.data.parts import Csv, Npz
from simulator.problems.data.selecting import Samples
from simulator.storage import archive, files, table


def npz(config: Npz) -> Dataset:
    """Returns the user's arrays `x`, `y` and, if there are, `x_test`, `y_test`.

    Labels are whole numbers from 0, and every one up to the largest stands in some row,
    or else one stray label would make classes that no row has, and change every loss.

    Raises:
        DataError: no such file, arrays missing, of other shapes, or not finite.
        ScenarioError: too high a limit or test fraction.
    """
    path = files.located(config.path, "problem.data.path")
    arrays = _arrays(path)
    train = _samples(path, arrays, "x", "y")
    columns = names.numbered(train[0].shape[1])
    test = None
    if "x_test" in arrays or "y_test" in arrays:
        test = _samples(path, arrays, "x_test", "y_test")
        if test[0].shape[1] != len(columns):
            raise DataError(
                f"x_test of {path} must have the {len(columns)} columns of x, got "
                f"{test[0].shape[1]}; save both with the same features"
            )
    num_classes = _count(path, train[1], None if test is None else test[1])
    if num_classes < 2:
        raise DataError(
            f"y of {path} must hold two classes or more, got only 0; check y"
        )
    if test is None:
        return divided(
            config, path.stem, train, num_classes=num_classes, columns=columns
        )
    return finished(
        config, path.stem, train, test, num_classes=num_classes, columns=columns
    )


def csv(config: Csv) -> Dataset:
    """Returns the user's table: every column but the label is a feature.

    Labels are numbered in sorted order: by value if all of them are numbers, else by
    their text.

    Raises:
        DataError: no such file or label, or a feature that is no finite number.
        ScenarioError: too high a limit or test fraction.
    """
    path = files.located(config.path, "problem.data.path")
    cells = table.read(path)
    if config.label not in cells.columns:
        raise DataError(
            f"problem.data.label must be a column of {path}, got {config.label!r}; "
            f"{names.hint(config.label, cells.columns)}"
        )
    columns = tuple(name for name in cells.columns if name != config.label)
    if not columns:
        raise DataError(
            f"{path} must have a column besides the label {config.label!r}, got none; "
            "add features"
        )
    y, num_classes = _classes(cells, config.label)
    x = table.numbers(cells, columns)
    return divided(config, path.stem, (x, y), num_classes=num_classes, columns=columns)


def _arrays(path: Path) -> dict[str, np.ndarray]:
    """Returns the arrays of an npz file.

    Raises:
        DataError: it cannot be read, or is damaged.
    """
    content = files.read(path)
    try:
        return archive.arrays(content)
    except ValueError as error:
        raise DataError(
            f"{path} must be an npz file of plain arrays, got: {error}; save it by "
            "numpy.savez"
        ) from error


def _samples(path: Path, arrays: dict[str, np.ndarray], x: str, y: str) -> Samples:
    """Returns features and labels of these names, checked."""
    for name in (x, y):
        if name not in arrays:
            raise DataError(
                f"{path} must hold the array {name}, got {sorted(arrays)}; save it by "
                f"numpy.savez(..., {name}={name})"
            )
    features, labels = arrays[x], arrays[y]
    if features.ndim != 2 or not features.size or labels.shape != features.shape[:1]:
        raise DataError(
            f"{x} and {y} of {path} must have the shapes [N, P] and [N], neither "
            f"empty, got {features.shape} and {labels.shape}; reshape them"
        )
    if features.dtype.kind not in "biuf":
        raise DataError(
            f"{x} of {path} must hold real numbers, got {features.dtype}; convert it"
        )
    if features.dtype.kind == "b":
        features = features.astype(np.uint8)
    bad = np.argwhere(~table.representable(features))
    if bad.size:
        row, column = bad[0]
        raise DataError(
            f"{x} of {path} must be finite, got {features[row, column]} at row {row}, "
            f"column {column}; fill or remove it"
        )
    return features, _whole(path, y, labels)


def _whole(
    path: Path, name: str, labels: Shaped[np.ndarray, " N"]
) -> Int32[np.ndarray, " N"]:
    """Returns labels as int32, if they are whole numbers from 0."""
    whole = labels.dtype.kind in "biuf" and bool(
        np.all((labels >= 0) & (labels < 2**31 - 1) & (labels == np.floor(labels)))
    )
    if not whole:
        raise DataError(
            f"{name} of {path} must hold whole numbers from 0, got "
            f"others of type {labels.dtype}; number them by "
            f"numpy.unique({name}, return_inverse=True)[1]"
        )
    return labels.astype(np.int32)


def _count(
    path: Path,
    train: Int32[np.ndarray, " N"],
    test: Int32[np.ndarray, " N_test"] | None,
) -> int:
    """Returns how many classes there are, if they are numbered without gaps.

    Raises:
        DataError: some numbers below the largest are no row's.
    """
    labels = train if test is None else np.concatenate([train, test])
    known = np.unique(labels)
    gaps = np.flatnonzero(np.diff(known, prepend=-1) > 1)
    if gaps.size:
        next_ = int(known[gaps[0]])
        last = int(known[gaps[0] - 1]) if gaps[0] else -1
        missing = f"{last + 1}" if next_ - last == 2 else f"{last + 1} to {next_ - 1}"
        y = "y" if test is None else "numpy.concatenate([y, y_test])"
        raise DataError(
            f"y of {path} must number its classes from 0 without gaps, got no row of "
            f"class {missing}, but some of class {next_}; remove a stray label, or "
            f"number the {known.size} classes by numpy.unique({y}, "
            f"return_inverse=True)[1]"
        )
    return known.size


def _classes(cells: table.Table, label: str) -> tuple[Int32[np.ndarray, " N"], int]:
    """Returns the numbered labels of a table, and how many classes there are."""
    texts = table.column(cells, label)
    if "" in texts:
        raise DataError(
            f"column {label!r} of {cells.path} must hold a label in every row, got "
            f"none in line {cells.lines[texts.index('')]}; fill or remove it"
        )
    values = np.array([table.number(text) for text in texts])
    if not np.isfinite(values).all():
        values = np.array(texts)
    classes, numbers = np.unique(values, return_inverse=True)
    if classes.size < 2:
        raise DataError(
            f"column {label!r} of {cells.path} must hold two classes or more, got only "
            f"{texts[0]!r}; check problem.data.label"
        )
    return numbers.astype(np.int32), classes.size
