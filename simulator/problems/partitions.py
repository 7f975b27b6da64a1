"""Who holds what: columns of vertical parties, rows of horizontal clients."""

import re

import numpy as np
from jaxtyping import Int

from simulator.problems.data.base import Dataset
from simulator.scenario.errors import ScenarioError
from simulator.scenario.messages import suggestion
from simulator.scenario.problems import Iid, Vertical
from simulator.streams import Purpose, Streams


def vertical(config: Vertical, dataset: Dataset) -> list[Int[np.ndarray, " p"]]:
    """Returns the columns of each party.

    Contiguous blocks whose widths differ by at most one, the wider first (V-30), or
    the groups that the scenario names.

    Raises:
        ScenarioError: more parties than columns, or groups that do not fit the data.
    """
    P = dataset.x_train.shape[1]
    if config.groups is None:
        if config.num_clients > P:
            raise ScenarioError(
                f"problem.partition.parties must be at most the {P} columns of "
                f"{dataset.name}, got {config.num_clients}"
            )
        return np.array_split(np.arange(P), config.num_clients)
    parties: list[Int[np.ndarray, " p"]] = []
    owner: dict[int, str] = {}
    for party, entries in config.groups.items():
        where = f"problem.partition.groups.{party}"
        columns = [c for entry in entries for c in _columns(entry, dataset, where)]
        if not columns:
            raise ScenarioError(f"{where} must name at least one column, got none")
        for column in columns:
            if column in owner:
                raise ScenarioError(
                    f"{where}: column {column} must belong to one party, but belongs to "
                    f"{owner[column]!r} already"
                )
            owner[column] = party
        parties.append(np.array(columns))
    return parties


def iid(config: Iid, dataset: Dataset, seed: int) -> list[Int[np.ndarray, " n"]]:
    """Returns the rows of each client: random shares whose sizes differ by at most one.

    Args:
        config: of the partition.
        dataset: whose training rows are shared out.
        seed: of the run.

    Raises:
        ScenarioError: more clients than rows.
    """
    N = dataset.x_train.shape[0]
    if config.clients > N:
        raise ScenarioError(
            f"problem.partition.clients must be at most the {N} rows of {dataset.name}, "
            f"got {config.clients}"
        )
    order = Streams(seed).at(Purpose.PARTITION, 0, 0).permutation(N)
    return [np.sort(part) for part in np.array_split(order, config.clients)]


def _columns(entry: int | str, dataset: Dataset, where: str) -> list[int]:
    """Returns the columns that an index, a name or a range "0-111" stands for."""
    P = dataset.x_train.shape[1]
    if isinstance(entry, str) and entry in dataset.columns:
        return [dataset.columns.index(entry)]
    found = re.fullmatch(r"(\d+)(?:-(\d+))?", str(entry))
    if found is None:
        near = suggestion(entry, dataset.columns)
        raise ScenarioError(f"{where}: {dataset.name} has no column {entry!r}; {near}")
    low = int(found[1])
    high = int(found[2] or low)
    if not low <= high < P:
        raise ScenarioError(
            f"{where}: columns must be from 0 to {P - 1}, got {entry!r}"
        )
    return list(range(low, high + 1))
