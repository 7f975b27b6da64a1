"""The user's own data: arrays in an npz file, or a table in a csv file."""

from pathlib import Path

import numpy as np

from simulator.problems.data.base import Dataset
from simulator.problems.data.scaling import finish, split
from simulator.scenario.errors import DataError
from simulator.scenario.messages import suggestion
from simulator.scenario.problems import Csv, Npz


def npz(config: Npz) -> Dataset:
    """Loads `x` `[N, P]` and `y` `[N]`, and `x_test` and `y_test` if they are there.

    Raises:
        DataError: the file is missing, is no npz, or its arrays do not fit.
    """
    path = _existing(config.path)
    try:
        with np.load(path, allow_pickle=False) as found:
            arrays = {name: found[name] for name in found.files}
    except (OSError, ValueError, EOFError, KeyError) as error:
        raise DataError(f"{path}: must be an npz file of plain arrays: {error}") from None
    for name in ("x", "y"):
        if name not in arrays:
            raise DataError(f"{path}: must hold an array {name!r}, got {sorted(arrays)}")
    x, y = _fitting(path, "x", arrays["x"], "y", arrays["y"])
    classes = np.unique(y)
    if "x_test" in arrays and "y_test" in arrays:
        x_test, y_test = _fitting(
            path, "x_test", arrays["x_test"], "y_test", arrays["y_test"]
        )
        if x_test.shape[1] != x.shape[1]:
            raise DataError(
                f"{path}: x_test must have as many columns as x ({x.shape[1]}), got "
                f"{x_test.shape[1]}"
            )
        classes = np.unique(np.concatenate([y, y_test]))
        parts = (x, np.searchsorted(classes, y), x_test, np.searchsorted(classes, y_test))
    else:
        parts = split(config, x, np.searchsorted(classes, y))
    columns = tuple(f"x{i}" for i in range(x.shape[1]))
    return finish(config, path.stem, parts, columns, largest=None)


def csv(config: Csv) -> Dataset:
    """Loads a table; labels are numbered in sorted order.

    Raises:
        DataError: the file is missing or damaged, or a column is not numeric.
    """
    import pyarrow as pa
    import pyarrow.csv

    path = _existing(config.path)
    try:
        table = pyarrow.csv.read_csv(path)
    except (pa.ArrowInvalid, OSError) as error:
        first = str(error).splitlines()[0]
        raise DataError(f"{path}: must be a table in csv: {first}") from None
    if config.label not in table.column_names:
        near = suggestion(config.label, table.column_names)
        raise DataError(f"{path}: has no column {config.label!r} (data.label); {near}")
    names = [name for name in table.column_names if name != config.label]
    features = []
    for name in names:
        column = table[name]
        numeric = pa.types.is_integer(column.type) or pa.types.is_floating(column.type)
        if not numeric or column.null_count:
            what = "empty cells" if numeric else f"values such as {column[0].as_py()!r}"
            raise DataError(
                f"{path}: column {name!r} must be numbers throughout, got {what}; encode or "
                f"remove it"
            )
        features.append(column.to_numpy())
    labels = np.array([str(value) for value in table[config.label].to_pylist()])
    raw = table[config.label].to_numpy()
    keys = raw if raw.dtype.kind in "iuf" else labels
    _, y = np.unique(keys, return_inverse=True)
    x = np.column_stack(features).astype(np.float64)
    x, y = _fitting(path, "the features", x, "the label", y)
    return finish(config, path.stem, split(config, x, y), tuple(names), largest=None)


def _existing(path: str) -> Path:
    found = Path(path)
    if not found.is_file():
        raise DataError(f"{path}: there is no such file (data.path); check the path")
    return found


def _fitting(
    path: Path, x_name: str, x: np.ndarray, y_name: str, y: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Returns features and labels if they are what they must be."""
    if x.ndim != 2 or x.dtype.kind not in "iufb" or not np.isfinite(x).all():
        raise DataError(
            f"{path}: {x_name} must be finite numbers of shape [rows, columns], got "
            f"{x.dtype} of shape {list(x.shape)}"
        )
    if y.shape != (x.shape[0],) or len(x) < 2:
        raise DataError(
            f"{path}: {y_name} must have one entry for each of the {x.shape[0]} rows (at "
            f"least 2), got shape {list(y.shape)}"
        )
    return x.astype(np.float64), y
