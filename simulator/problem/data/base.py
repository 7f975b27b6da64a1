"""The arrays of a data set, their type, and random generators."""

import math
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from difflib import get_close_matches
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float, Int, Num

DIVISION, ORDER = 0, 1
"""Streams of every data set: its division, and the order of its training rows."""
_types: list[np.dtype] = [np.dtype(np.float32)]


def features_type() -> np.dtype:
    """Returns the type in which features are kept, and targets that are no classes."""
    return _types[-1]


@contextmanager
def features_in(precision: str) -> Iterator[None]:
    """Keeps features in the precision of a run, in data sets that are made meanwhile.

    Args:
        precision: `float32` or `float64`.
    """
    _types.append(np.dtype(precision))
    try:
        yield
    finally:
        _types.pop()


def generator(seed: int, stream: int) -> np.random.Generator:
    """Returns the generator of a seed and a stream, independent of all others.

    Args:
        seed: Seed of the data set, >= 0.
        stream: Number of the stream. Every module with random data has its own number,
            `STREAM`, which never changes, because the data depend on it.
    """
    sequence = np.random.SeedSequence(seed, spawn_key=(stream,))
    return np.random.Generator(np.random.PCG64(sequence))


class Grouping(NamedTuple):
    """The groups of training rows, such as writers: for the partition `natural`.

    Attributes:
        column: Name of the column with the groups.
        values: Its values as texts, each with a training row at least, in their order.
        of_row: Number of each training row's value, from 0.
    """

    column: str
    values: tuple[str, ...]
    of_row: Int[np.ndarray, " N"]

    def taken(self, rows: Int[np.ndarray, " n"]) -> "Grouping":
        """Returns the grouping of some of the rows, in their order."""
        found, of_row = np.unique(self.of_row[rows], return_inverse=True)
        return Grouping(self.column, tuple(self.values[i] for i in found), of_row)


class Field(NamedTuple):
    """One input of a model: columns of the features that belong together.

    Attributes:
        name: Name of the input, "" where a model has one alone.
        shape: Shape that a row has before it is laid out in columns.
        whole: Whether it contains unchanged whole numbers, such as tokens.
        largest: Largest possible value, such as a pixel's; None if it is not known.
    """

    name: str
    shape: tuple[int, ...]
    whole: bool = False
    largest: float | None = None

    @property
    def width(self) -> int:
        """Number of columns."""
        return math.prod(self.shape)


def shaped(fields: Iterable[Field], x: Any) -> Any:
    """Returns rows of features in their original shapes.

    Args:
        fields: Inputs that the features are laid out of.
        x: Rows `[S, P]`, of NumPy or JAX.

    Returns:
        An array, or arrays by the names of several inputs; whole ones are int32.
    """
    found, start = {}, 0
    for field in fields:
        columns = x[:, start : start + field.width].reshape(x.shape[0], *field.shape)
        found[field.name] = columns.astype(np.int32) if field.whole else columns
        start += field.width
    return found.get("", found)


class Dataset(NamedTuple):
    """A data set, divided into training and test rows, its features scaled.

    Attributes:
        name: Name in tables and figures.
        x_train: Features of the training rows, of the type `features_type`, each row in
            one line.
        y_train: Targets: classes from 0, int32, one per row or one for each of its `L`
            frames; other whole numbers, int32; or numbers, of the features' type.
        x_test: Features of the test rows.
        y_test: Targets of the test rows.
        num_classes: Number of classes, at least 2; 0 where targets are no classes.
        columns: Names of the features, in order.
        views: View that each feature belongs to, such as a kind of measurement, in the
            order of the columns; empty where a set has none.
        fields: Inputs that the features are laid out of, in the order of the columns;
            empty where a row is a list of numbers.
        no_classes: Reason why targets are no classes, as the message of a loss that
            needs them; "" where they are.
        groupings: The groups of training rows, by each column that has some.
        answer: Frames at the end of a row whose labels answer the part before them; 0
            where all labels are of equal kind.
        next_token: Whether a row is a sequence of tokens with one label, the token that
            follows the last of them.
        scaling: Words on how features were scaled.
    """

    name: str
    x_train: Float[np.ndarray, "N P"]
    y_train: Num[np.ndarray, " N *L"]
    x_test: Float[np.ndarray, "N_test P"]
    y_test: Num[np.ndarray, " N_test *L"]
    num_classes: int
    columns: tuple[str, ...]
    views: tuple[str, ...] = ()
    fields: tuple[Field, ...] = ()
    no_classes: str = ""
    groupings: tuple[Grouping, ...] = ()
    answer: int = 0
    next_token: bool = False
    scaling: str = "raw: as stored"

    @property
    def num_frames(self) -> int | None:
        """Number of frames of a row, `L`, each with a class; None for a class a row."""
        in_frames = self.num_classes and self.y_train.ndim == 2
        return self.y_train.shape[1] if in_frames else None

    @property
    def has_tokens(self) -> bool:
        """Whether a row is a sequence of tokens, with labels that are tokens."""
        one = self.inputs[0]
        in_frames = one.whole and one.shape == (self.num_frames,)
        return self.next_token or (len(self.inputs) == 1 and in_frames)

    @property
    def inputs(self) -> tuple[Field, ...]:
        """Inputs of a model; a single one of numbers where a set names none."""
        return self.fields or (Field("", self.x_train.shape[1:]),)


RGB = ("red", "green", "blue")


def pixels(
    height: int, width: int, channels: tuple[str, ...] = ("pixel",)
) -> tuple[str, ...]:
    """Returns `CHANNEL_ROW_COLUMN` for every pixel, row by row, channel by channel."""
    return tuple(
        f"{channel}_{row}_{column}"
        for channel in channels
        for row in range(height)
        for column in range(width)
    )


def numbered(num_columns: int) -> tuple[str, ...]:
    """Returns `x0`, `x1`, ... for columns without names."""
    return tuple(f"x{column}" for column in range(num_columns))


def counted(name: str, num_columns: int) -> tuple[str, ...]:
    """Returns `NAME_0`, `NAME_1`, ... for the columns of one kind."""
    return tuple(f"{name}_{column}" for column in range(num_columns))


def hint(name: str, known: Iterable[str]) -> str:
    """Returns the end of a message about an unknown name: the nearest known name.

    Unlike the scenario's own hints it never lists all names: there may be thousands.
    """
    near = get_close_matches(name, list(known), n=1, cutoff=0.4)
    return f"did you mean {near[0]!r}?" if near else "no name is near it"
