"""Groups of rows, and classes by name: values, numbered in their order."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Int, Shaped

from ...files.reading.columns import Values
from ...parts.errors import DataError
from .base import Grouping

KEY = "group"
"""Name of the array of groups; `group/NAME` are several."""


def numbered(*parts: Values) -> tuple[tuple[str, ...], list[Int[np.ndarray, " _"]]]:
    """Numbers the values of some parts of a column, together.

    Args:
        parts: Numbers, which are ordered by value; or texts.

    Returns:
        The different values as texts, in order; and the numbers of each part's.
    """
    if all(isinstance(part, np.ndarray) for part in parts):
        numbers = [np.asarray(part) for part in parts]
        known = np.unique(np.concatenate(numbers))
        codes = [np.searchsorted(known, part) for part in numbers]
        return tuple(map(_text, known.tolist())), codes
    texts = [
        [each if isinstance(each, str) else _text(each) for each in part]
        for part in parts
    ]
    values = sorted({each for part in texts for each in part})
    place = {value: number for number, value in enumerate(values)}
    return tuple(values), [np.array([place[each] for each in part]) for part in texts]


def grouping(column: str, values: Values) -> Grouping:
    """Returns the groups of rows, by a column."""
    known, (of_row,) = numbered(values)
    return Grouping(column, known, of_row)


def of_arrays(
    place: str | Path, arrays: Mapping[str, Shaped[np.ndarray, "..."]], num_rows: int
) -> tuple[Grouping, ...]:
    """Returns the groups of training rows, by the arrays `group` or `group/NAME`.

    Raises:
        DataError: An array has no value for each row, or a row has none.
    """
    found = []
    for name, array in arrays.items():
        key, _, column = name.partition("/")
        if key == KEY:
            values = _values(place, name, np.asarray(array), num_rows)
            found.append(grouping(column or key, values))
    return tuple(found)


def _values(
    place: str | Path, name: str, array: Shaped[np.ndarray, "..."], num_rows: int
) -> Values:
    if array.shape != (num_rows,):
        raise DataError(
            f"{name} of {place} must have a value for each of the {num_rows} rows of "
            f"x, got the shape {array.shape}; save one each"
        )
    if array.dtype.kind not in "biufU":
        raise DataError(
            f"{name} of {place} must hold numbers or text, got {array.dtype}; convert "
            "it by astype(str)"
        )
    empty = array == "" if array.dtype.kind == "U" else array != array
    if empty.any():
        raise DataError(
            f"{name} of {place} must hold a value in every row, got none at row "
            f"{int(empty.argmax())}; fill or remove it"
        )
    return array.tolist() if array.dtype.kind == "U" else array


def _text(value: Any) -> str:
    """Returns a number as a reader writes it: 7.0 of a csv file is 7."""
    whole = isinstance(value, float) and value.is_integer()
    return str(int(value) if whole else value)
