"""Vertical partitions: which columns each party holds."""

import re
from collections.abc import Sequence
from fnmatch import fnmatchcase

import numpy as np
from jaxtyping import Int

from simulator.config.errors import ScenarioError
from simulator.problems.data.base import Dataset
from simulator.problems.data.names import hint
from simulator.problems.images import image_shape
from simulator.problems.partitions.parts import Strips, Vertical

RANGE = re.compile(r"(\d+)(?:\s*-\s*(\d+))?")
"""An index, or a first and a last one."""


def vertical(config: Vertical, dataset: Dataset) -> list[Int[np.ndarray, " _"]]:
    """Returns the columns of each party, in the order of the parties.

    `parties` makes contiguous blocks, of which the first are one column wider where
    the columns do not divide. `groups` gives every named party its columns in the order
    given; columns that nobody is given stay unused.

    Raises:
        ScenarioError: more parties than columns, no party, a party without columns,
            an unknown column, or one that two parties hold.

    Source: VAFL, V-30.
    """
    num_columns = dataset.x_train.shape[1]
    if config.parties is not None:
        if config.parties > num_columns:
            raise ScenarioError(
                f"problem.partition.parties must be at most the {num_columns} columns "
                f"of {dataset.name}, got {config.parties}; take fewer parties"
            )
        return np.array_split(np.arange(num_columns), config.parties)
    if not config.groups:
        raise ScenarioError(
            "problem.partition.groups must name at least one party, got none; add one, "
            "or give parties"
        )
    holder: dict[int, str] = {}
    return [
        _columns(name, group, dataset, holder) for name, group in config.groups.items()
    ]


def strips(config: Strips, dataset: Dataset) -> list[Int[np.ndarray, " _"]]:
    """Returns the pixels of each party's strip, in the order of the image.

    Raises:
        ScenarioError: the columns are no images, or narrower than there are parties.

    Source: FedBCD, section 7 (MNIST-CNN).
    """
    num_columns = dataset.x_train.shape[1]
    height, width, depth = image_shape(
        num_columns, config.image, "problem.partition.image"
    )
    if width % config.parties:
        raise ScenarioError(
            f"problem.partition.parties must divide the images' width of {width} "
            f"pixels, got {config.parties}; take another number"
        )
    pixels = np.arange(num_columns).reshape(depth * height, config.parties, -1)
    return [pixels[:, party].reshape(-1) for party in range(config.parties)]


def _columns(
    party: str,
    group: tuple[int | str, ...],
    dataset: Dataset,
    holder: dict[int, str],
) -> Int[np.ndarray, " p"]:
    """Returns the columns of one named party, and notes in `holder` who holds them."""
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
