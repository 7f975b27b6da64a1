"""The user's own arrays, in an npz file."""

from pathlib import Path
from typing import Literal

import numpy as np
from jaxtyping import Int32, Shaped

from simulator.config.base import FilePath
from simulator.config.errors import DataError
from simulator.problems.data import names
from simulator.problems.data.base import Dataset
from simulator.problems.data.classes import Samples
from simulator.problems.data.parts import Data
from simulator.problems.data.split import divided, finished
from simulator.storage import archive, files, table


class Npz(Data):
    """The user's own arrays: `x` `[N, P]`, `y` `[N]`, perhaps `x_test` and `y_test`."""

    kind: Literal["npz"] = "npz"
    path: FilePath

    def make(self) -> Dataset:
        """Returns the user's arrays `x`, `y` and, if present, `x_test`, `y_test`.

        Labels are whole numbers from 0, and every one up to the largest stands in some
        row, or else one stray label would make classes that no row has, and change
        every loss.

        Raises:
            DataError: The file does not exist, or its arrays are missing, of other
                shapes, or not finite.
            ScenarioError: The limit or the test fraction is too high.
        """
        path = files.located(self.path, "problem.data.path")
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
                self, path.stem, train, num_classes=num_classes, columns=columns
            )
        return finished(
            self, path.stem, train, test, num_classes=num_classes, columns=columns
        )


def _arrays(path: Path) -> dict[str, np.ndarray]:
    """Returns the arrays of an npz file.

    Raises:
        DataError: The file cannot be read, or is damaged.
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
    """Returns labels as int32; refuses others than whole numbers from 0."""
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
    """Returns the number of classes, if they are numbered without gaps.

    Raises:
        DataError: A number below the largest is the class of no row.
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
