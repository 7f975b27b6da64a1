"""The base of partitions by rows, what several share, and the pairing with speed."""

import math
from abc import ABC, abstractmethod
from typing import Annotated, ClassVar, Literal

import numpy as np
from jaxtyping import Float, Int
from pydantic import Field

from ..parts.base import Config, NumClients, Part
from ..parts.errors import ScenarioError
from ..world.streams import Purpose, Streams
from .data.base import Dataset

PAIRING = 3
"""Second key of its stream, after those of `parts`."""


class Pairing(Config):
    """Deals the shares of a partition to slow and fast clients.

    Clients are ranked by the median of their law of computing (times slowdowns of the
    kind `named`), shares by `by`; equal clients or shares are in random order. Ranks
    are paired by a Gaussian copula: the ranks of two normal scores with this
    correlation. Computing is the only stage that counts; speed over time does not.

    Source: Nelsen, An Introduction to Copulas (2006), section 2.3: a Gaussian copula.
    """

    correlation: Annotated[float, Field(ge=-1, le=1)]
    """1: the slowest client has the largest share, and so on, rank by rank; -1: the
    fastest has; 0: by chance, in each replicate again."""
    by: Literal["rows", "target"] = "rows"
    """Measure of a share: its number of rows, or the mean of its rows' targets, such as
    the numbers of their classes."""

    def measured(
        self, dataset: Dataset, pools: list[Int[np.ndarray, " _"]]
    ) -> Float[np.ndarray, " K"]:
        """Returns the measure of each share.

        Raises:
            ScenarioError: Rows have several targets.
        """
        if self.by == "rows":
            return np.array([float(pool.size) for pool in pools])
        if dataset.y_train.ndim != 1:
            raise ScenarioError(
                f"problem.partition.pairing.by must be 'rows' for {dataset.name}, each "
                "of whose rows has several targets, got 'target'; take rows"
            )
        return np.array([dataset.y_train[pool].mean() for pool in pools])

    def order(
        self,
        seconds: Float[np.ndarray, " K"],
        measure: Float[np.ndarray, " K"],
        seed: int,
    ) -> Int[np.ndarray, " K"]:
        """Returns the number of each client's share.

        Raises:
            ScenarioError: All clients or all shares are equal, and yet correlated.
        """
        for values, what in ((seconds, "clients"), (measure, "shares")):
            if self.correlation and not (values != values[0]).any():
                raise ScenarioError(
                    f"problem.partition.pairing.correlation must be 0 where {what} are "
                    f"alike, got {self.correlation:g}, with {values[0]:g} "
                    f"{'s' if what == 'clients' else self.by} for each; leave pairing "
                    "out, or let them differ"
                )
        draw, K = Streams(seed).at(Purpose.PARTITION, PAIRING, 0), seconds.size
        score, other = draw.standard_normal((2, K))
        coupled = self.correlation * score
        coupled += math.sqrt(1 - self.correlation**2) * other
        by_time = np.lexsort((draw.permutation(K), seconds))
        by_measure = np.lexsort((draw.permutation(K), measure))
        found = np.empty(K, np.int64)
        # The clients and shares of a pair have the ranks of its two scores.
        found[by_time] = by_measure[coupled.argsort().argsort()[score.argsort()]]
        return found


Columns = list[Int[np.ndarray, " _"]]
"""Indices of the columns of each party."""
Shares = list[Int[np.ndarray, " _"]]
"""Ids of the training rows of each client, ascending."""
ORDER, DEAL, PROPORTIONS = 0, 1, 2
"""Second key of a stream: the order of the rows, of the shards, and proportions."""


class VerticalPartition(Part, ABC):
    """A division of the columns among parties, who hold some of all rows."""

    family: ClassVar[str] = "vertical"

    @property
    @abstractmethod
    def num_clients(self) -> int:
        """Number of parties."""

    @abstractmethod
    def make(self, dataset: Dataset) -> Columns:
        """Returns the columns of each party, in the order of the parties.

        Raises:
            ScenarioError: The columns cannot be divided so.
        """


class Horizontal(Part):
    """A division of the rows among clients, who hold all columns.

    Clients hold disjoint sets of rows, and together all of them.
    """

    family: ClassVar[str] = "horizontal"
    clients: NumClients
    """Number of clients."""
    pairing: Pairing | None = None
    """Which client has which share, by how long it computes; by default as it comes."""

    @property
    def by_number(self) -> bool:
        """Whether shares differ by the client's number, equally with every seed."""
        return False

    @property
    def num_clients(self) -> int:
        """Number of clients."""
        return self.clients

    def make(self, dataset: Dataset, seed: int) -> Shares:
        """Returns the rows of each client.

        Raises:
            ScenarioError: The rows cannot be divided so.
        """
        raise NotImplementedError

    def labels(self, dataset: Dataset) -> tuple[str, ...]:
        """Returns the data's names of clients, if any; for tables."""
        return ()


def draws(seed: int, key: int, attempt: int = 0) -> np.random.Generator:
    """Returns the generator of one step of a partition."""
    return Streams(seed).at(Purpose.PARTITION, key, attempt)


def shuffled(dataset: Dataset, seed: int) -> Int[np.ndarray, " N"]:
    """Returns all training rows in random order."""
    return draws(seed, ORDER).permutation(len(dataset.y_train))


def by_class(dataset: Dataset, seed: int) -> Int[np.ndarray, " N"]:
    """Returns all training rows sorted by class, in random order within a class."""
    order = shuffled(dataset, seed)
    return order[np.argsort(dataset.y_train[order], kind="stable")]


def grouped(
    rows: Int[np.ndarray, " N"], client: Int[np.ndarray, " N"], num_clients: int
) -> Shares:
    """Returns the rows of each client, given the client of each row."""
    order = np.lexsort((rows, client))
    ends = np.cumsum(np.bincount(client, minlength=num_clients))
    return np.split(rows[order], ends[:-1])


def refuse_too_many(config: Horizontal, dataset: Dataset) -> None:
    """Refuses more clients than training rows.

    Raises:
        ScenarioError: There are more.
    """
    num_rows = len(dataset.y_train)
    if config.clients > num_rows:
        raise ScenarioError(
            f"problem.partition.clients must be at most the {num_rows} training rows "
            f"of {dataset.name}, got {config.clients}; take fewer clients"
        )


def refuse_all_but_classes(kind: str, dataset: Dataset) -> None:
    """Refuses rows that have no class, or whose frames have several classes.

    Raises:
        ScenarioError: Its rows have frames, or targets that are no classes.
    """
    if dataset.no_classes:
        raise ScenarioError(
            f"problem.partition.kind must not be {kind!r} for {dataset.name}, whose "
            f"rows have no classes; take iid, sizes or column ({dataset.no_classes})"
        )
    if dataset.num_frames is not None:
        raise ScenarioError(
            f"problem.partition.kind must not be {kind!r} for {dataset.name}, "
            f"each of whose rows has {dataset.num_frames} frames with classes of their "
            "own; take iid, sizes or column"
        )
