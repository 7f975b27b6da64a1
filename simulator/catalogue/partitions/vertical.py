"""Blocks or named groups of columns, strips of images, or views, for each party."""

import re
from collections.abc import Sequence
from fnmatch import fnmatchcase
from typing import Annotated, Literal

import numpy as np
from jaxtyping import Int
from pydantic import Field, model_validator

from ...parts.base import LocatedError, NumClients
from ...parts.errors import ScenarioError, suggestion
from ...problem.data.base import Dataset, hint
from ...problem.data.images import image_shape
from ...problem.partition import Columns, VerticalPartition

RANGE = re.compile(r"(\d+)(?:\s*-\s*(\d+))?")
"""Pattern of an index, or of a first and a last one."""


class Vertical(VerticalPartition):
    """Every party holds some columns of all samples.

    Source: VAFL, V-30: contiguous blocks of equal size (the first blocks one column
    wider where the columns do not divide).
    """

    kind: Literal["vertical"] = "vertical"
    parties: NumClients | None = None
    """Number of contiguous blocks of columns."""
    groups: (
        Annotated[
            dict[str, Annotated[tuple[int | str, ...], Field(min_length=1)]],
            Field(min_length=1),
        ]
        | None
    ) = None
    """Columns of each named party: by index, name, pattern of names such as `"tag_*"`,
    or inclusive range `"0-111"`."""

    @model_validator(mode="after")
    def _one_way(self) -> "Vertical":
        if (self.parties is None) == (self.groups is None):
            raise ValueError(
                "must have either parties or groups, not both or neither; remove one, "
                "or add parties: NUMBER"
            )
        return self

    @property
    def num_clients(self) -> int:
        return self.parties or len(self.groups or {})

    def make(self, dataset: Dataset) -> Columns:
        """Returns the columns of each party, in the order of the parties.

        `parties` makes contiguous blocks, of which the first are one column wider where
        the columns do not divide. `groups` gives every named party its columns in the
        order given; columns that no group names stay unused.
        """
        num_columns = dataset.x_train.shape[1]
        if self.parties is not None:
            if self.parties > num_columns:
                raise ScenarioError(
                    f"problem.partition.parties must be at most the {num_columns} "
                    f"columns of {dataset.name}, got {self.parties}; take fewer parties"
                )
            return np.array_split(np.arange(num_columns), self.parties)
        if not self.groups:
            raise ScenarioError(
                "problem.partition.groups must name at least one party, got none; add "
                "one, or give parties"
            )
        holder: dict[int, str] = {}
        return [
            _columns(name, group, dataset, holder)
            for name, group in self.groups.items()
        ]


def _columns(
    party: str,
    group: tuple[int | str, ...],
    dataset: Dataset,
    holder: dict[int, str],
) -> Int[np.ndarray, " p"]:
    """Returns the columns of one named party, and notes them in `holder`."""
    where = f"problem.partition.groups.{party}"
    if not group:
        raise ScenarioError(f"{where} must hold a column, got none; add one")
    columns = [column for item in group for column in _indices(where, item, dataset)]
    for column in columns:
        if column in holder:
            raise ScenarioError(
                f"{where} must hold columns that no party has yet, got column {column} "
                f"({dataset.columns[column]!r}) of {holder[column]}; take it from one"
            )
        holder[column] = party
    return np.array(columns)


def _indices(where: str, item: int | str, dataset: Dataset) -> Sequence[int]:
    """Returns the columns that one item of a group stands for; a name comes first."""
    num_columns = len(dataset.columns)
    if isinstance(item, str) and "*" in item:
        found = [i for i, name in enumerate(dataset.columns) if fnmatchcase(name, item)]
        if not found:
            raise ScenarioError(
                f"{where} must name columns of {dataset.name}, got {item!r}, which "
                f"none is like; they are called {dataset.columns[0]!r} to "
                f"{dataset.columns[-1]!r}"
            )
        return found
    if isinstance(item, str) and item in dataset.columns:
        first = last = dataset.columns.index(item)
    elif isinstance(item, str):
        match = RANGE.fullmatch(item.strip())
        if match is None:
            raise ScenarioError(
                f"{where} must name columns of {dataset.name}, got {item!r}; "
                f"{hint(item, dataset.columns)}"
            )
        first, last = int(match[1]), int(match[2] or match[1])
    else:
        first = last = item
    if not 0 <= first <= last < num_columns:
        raise ScenarioError(
            f"{where} must hold columns from 0 to {num_columns - 1}, ranges from their "
            f"lower end, got {item!r}; correct it"
        )
    return range(first, last + 1)


class Strips(VerticalPartition):
    """Every party holds an upright strip of every image, all of the same width."""

    kind: Literal["strips"] = "strips"
    parties: NumClients
    """Number of parties."""
    image: tuple[int, int, int] | None = None
    """Height, width and depth of the whole images; by default square ones."""

    @property
    def num_clients(self) -> int:
        return self.parties

    def make(self, dataset: Dataset) -> Columns:
        """Returns the pixels of each party's strip, in the order of the image.

        Source: FedBCD, section 7 (MNIST-CNN).
        """
        num_columns = dataset.x_train.shape[1]
        height, width, depth = image_shape(
            num_columns, self.image, "problem.partition.image"
        )
        if width % self.parties:
            raise ScenarioError(
                f"problem.partition.parties must divide the images' width of {width} "
                f"pixels, got {self.parties}; take another number"
            )
        pixels = np.arange(num_columns).reshape(depth * height, self.parties, -1)
        return [pixels[:, party].reshape(-1) for party in range(self.parties)]


class Views(VerticalPartition):
    """Every party holds some views of all samples, whole: kinds of measurements.

    The description of a data set names its views; `mfeat` has six.
    """

    kind: Literal["views"] = "views"
    parties: NumClients
    """Number of parties."""
    groups: (
        Annotated[
            dict[str, Annotated[tuple[str, ...], Field(min_length=1)]],
            Field(min_length=1),
        ]
        | None
    ) = None
    """Views of each named party. By default the views go to the parties in contiguous
    blocks, in the order of the data; the first parties hold one more where they do not
    divide."""

    @model_validator(mode="after")
    def _of_all(self) -> "Views":
        if self.groups is not None and len(self.groups) != self.parties:
            raise LocatedError(
                f"groups must have an entry for each of the {self.parties} parties, "
                f"got {len(self.groups)}; change one of them",
            )
        return self

    @property
    def num_clients(self) -> int:
        return self.parties

    def make(self, dataset: Dataset) -> Columns:
        """Returns the columns of each party, in the order of the data's columns.

        Frames of a row therefore stay frames of every party's part of it.
        """
        known = list(dict.fromkeys(dataset.views))
        if len(known) < self.parties:
            shown = f"{len(known)} ({', '.join(known)})" if known else "none"
            raise ScenarioError(
                f"problem.partition.parties must be at most the number of views of "
                f"{dataset.name}, got {self.parties} where it has {shown}; take fewer "
                "parties, or the partition vertical"
            )
        view = np.array(dataset.views)
        return [np.flatnonzero(np.isin(view, part)) for part in self._parts(known)]

    def _parts(self, known: list[str]) -> list[list[str]]:
        if self.groups is None:
            return [part.tolist() for part in np.array_split(known, self.parties)]
        holder: dict[str, str] = {}
        for party, names in self.groups.items():
            where = f"problem.partition.groups.{party}"
            for name in names:
                if name not in known:
                    raise ScenarioError(
                        f"{where} must name views of the data, got {name!r}; "
                        f"{suggestion(name, known)}"
                    )
                if name in holder:
                    raise ScenarioError(
                        f"{where} must hold views that no party has yet, got {name!r} "
                        f"of {holder[name]}; take it from one"
                    )
                holder[name] = party
        return [list(names) for names in self.groups.values()]
