"""The user's own tables: columns by name are features, a target, or groups of rows."""

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
from jaxtyping import Shaped
from pydantic import (
    BeforeValidator,
    Field,
    model_validator,
)

from ...files.reading import files
from ...files.reading.columns import Columns, TextColumns, parquet
from ...files.reading.table import number
from ...parts.base import FilePath, Rule
from ...parts.errors import DataError
from ...problem.data import groups
from ...problem.data.base import Dataset, Grouping, hint
from ...problem.data.parts import Data
from ...problem.data.split import divide
from . import arrays
from .arrays import Arrays


def _names(value: Any) -> Any:
    return (value,) if isinstance(value, str) else value


Names = Annotated[
    tuple[str, ...],
    Field(min_length=1),
    BeforeValidator(_names, json_schema_input_type=str | tuple[str, ...]),
    Rule("the name of a column, or a list of names", "[age, weight]"),
]
"""Names of columns."""


class Tabular(Data, ABC):
    """A table with one row per sample; columns are features, a target, or groups."""

    label: str | None = None
    """Name of the column of classes, which are numbered in sorted order."""
    target: Names | None = None
    """In place of `label`: name of the column of numbers to predict, or of several."""
    features: Names | None = None
    """Names of the columns that a model gets; by default all others."""
    groups: Names | None = None
    """Names of columns that are no features but groups of rows, such as a writer or a
    hospital: for the partition `natural`."""

    @model_validator(mode="after")
    def _once(self) -> "Tabular":
        if (self.label is None) == (self.target is None):
            raise ValueError(
                "must have either label, a column of classes, or target, columns of "
                "numbers, not both or neither; change one of them"
            )
        used = [*self._targets, *(self.features or ()), *(self.groups or ())]
        twice = [name for name, count in Counter(used).items() if count > 1]
        if twice:
            raise ValueError(
                "must use a column once, as a feature, a target or a group, got "
                f"{twice[0]!r} twice; take it out of one"
            )
        return self

    @abstractmethod
    def tables(self) -> tuple[str, Columns, Columns | None]:
        """Reads the tables.

        Raises:
            DataError: A file is missing or damaged.
        """

    def make(self) -> Dataset:
        """Returns the table's rows: features, and the column to predict.

        Labels are numbered in sorted order: by value if all of them are numbers, else
        by their text. Columns of single numbers make one input, unless others hold
        lists of numbers or pictures: then each column is an input by its name. A list
        keeps its shape.
        """
        name, train, test = self.tables()
        given = {"": train} if test is None else {"": train, "_test": test}
        features = self._features(train)
        found: dict[str, np.ndarray] = {}
        for key, table in given.items():
            _refuse_missing(table, (*self._targets, *features))
            found |= _inputs(table, features, f"x{key}")
            if self.target is not None:
                found[f"y{key}"] = _numbers(table, self.target)
        told: dict[str, Any] = {"groupings": self._groupings(train)}
        if "x" in found and found["x"].shape[1:] == (len(features),):
            told["columns"] = features
        if self.label is not None:
            found |= _classes(self.label, given)
        elif found["y"].ndim == 1 or len(self._targets) > 1:
            told |= {"num_classes": 0, "no_classes": _no_classes(train.path)}
        return arrays.dataset(self, name, train.path, found, **told)

    @property
    def _targets(self) -> tuple[str, ...]:
        return self.target or ((self.label,) if self.label is not None else ())

    def _features(self, table: Columns) -> tuple[str, ...]:
        there = set(table.names)
        for key in ("label", "target", "features", "groups"):
            for name in _names(getattr(self, key)) or ():
                if name not in there:
                    raise DataError(
                        f"problem.data.{key} must be a column of {table.path}, got "
                        f"{name!r}; {hint(name, table.names)}"
                    )
        used = [*self._targets, *(self.groups or ())]
        found = self.features or tuple(n for n in table.names if n not in used)
        if not found:
            what = "label" if self.target is None else "target"
            raise DataError(
                f"{table.path} must have a column besides the {what} "
                f"{', '.join(map(repr, used))}, got none; add features"
            )
        return found

    def _groupings(self, table: Columns) -> tuple[Grouping, ...]:
        return tuple(
            groups.grouping(name, table.values(name, "a group"))
            for name in self.groups or ()
        )


def _classes(label: str, given: dict[str, Columns]) -> Arrays:
    known, codes = groups.numbered(
        *(table.values(label, "a label") for table in given.values())
    )
    if len(known) < 2:
        raise DataError(
            f"column {label!r} of {given[''].path} must hold two classes or more, got "
            f"only {''.join(known)!r}; check problem.data.label"
        )
    return {f"y{key}": part for key, part in zip(given, codes, strict=True)}


def _no_classes(path: Path) -> str:
    return (
        f"problem.data.target must be label for a loss of classes, got columns of "
        f"numbers of {path}; rename it, or set problem.loss to squared or a function "
        "of your own"
    )


def _refuse_missing(table: Columns, wanted: tuple[str, ...]) -> None:
    there = set(table.names)
    for name in wanted:
        if name not in there:
            raise DataError(
                f"{table.path} must have the column {name!r} of the training rows, got "
                f"none; {hint(name, table.names)}"
            )


def _inputs(
    table: Columns, features: tuple[str, ...], key: str
) -> Iterable[tuple[str, Shaped[np.ndarray, " N *s"]]]:
    """Yields the arrays of features under the names that `arrays.dataset` knows."""
    found = table.several(features)
    if all(array.ndim == 1 for array in found.values()):
        dtype = np.result_type(np.float32, *(array.dtype for array in found.values()))
        yield key, np.stack([*found.values()], axis=1, dtype=dtype)
    elif len(found) == 1:
        yield key, found[features[0]]
    else:
        yield from ((f"{key}/{name}", array) for name, array in found.items())


def _numbers(table: Columns, chosen: tuple[str, ...]) -> Shaped[np.ndarray, " N *L"]:
    """Returns targets: a column as it is, several ones next to each other."""
    found = [table.numbers(name) for name in chosen]
    if len(found) == 1:
        return found[0]
    for name, array in zip(chosen, found, strict=True):
        if array.ndim > 1:
            raise DataError(
                f"column {name!r} of {table.path} must hold single numbers as one of "
                f"several columns of problem.data.target, got lists; name it alone"
            )
    return np.stack(found, axis=1)


MISSING = ("", "na", "nan")
"""Cells that hold no number, in small letters."""


class Csv(Tabular):
    """The user's own table of text: one row per sample, one column the label."""

    kind: Literal["csv"] = "csv"
    path: FilePath
    """File with the rows."""
    missing: Literal["median"] | None = None
    """`median`: an empty cell of a feature, or one that is NA or NaN, gets the median
    of its column in all training rows, before `classes` and `limit` choose some. By
    default such a cell is refused."""

    def tables(self) -> tuple[str, Columns, Columns | None]:
        path = files.located(self.path, "problem.data.path")
        rows = TextColumns(path)
        if self.missing is not None:
            self._fill(rows)
        return path.stem, rows, None

    def _fill(self, table: TextColumns) -> None:
        train, _ = divide(self, np.arange(len(table.rows)))
        for name in self._features(table):
            cells = np.array(table.texts(name), object)
            absent = np.array([cell.lower() in MISSING for cell in cells])
            if not absent.any():
                continue
            known = train[~absent[train]]
            if not known.size:
                raise DataError(
                    f"column {name!r} of {table.path} must hold a number in some "
                    f"training row to have a median, got none; leave it out"
                )
            middle = float(np.median([number(cell) for cell in cells[known]]))
            place = table.names.index(name)
            for row in np.flatnonzero(absent):
                table.rows[row][place] = repr(middle)


class Parquet(Tabular):
    """The user's own table in Parquet: numbers, lists of them, or pictures."""

    kind: Literal["parquet"] = "parquet"
    path: FilePath
    """File with the rows."""
    test: FilePath | None = None
    """File with the rows to test by; without one, rows are set aside."""

    def tables(self) -> tuple[str, Columns, Columns | None]:
        path = files.located(self.path, "problem.data.path")
        test = self.test and files.located(self.test, "problem.data.test")
        rows = parquet(path)
        return path.stem, rows, parquet(test) if test else None
