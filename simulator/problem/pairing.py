"""Which client has which share: slow ones much or little, by a correlation of ranks."""

import math
from typing import Annotated, Literal

import numpy as np
from jaxtyping import Float, Int
from pydantic import Field

from ..parts.base import Config
from ..parts.errors import ScenarioError
from ..world.streams import Purpose, Streams
from .data.base import Dataset

PAIRING = 3
"""Second key of its stream, after those of `parts`."""


class Pairing(Config):
    """Deals the shares of a partition to slow and fast clients.

    Clients are ranked by the median of their law of computing (times slowdowns of the
    kind `named`), shares by what `by` says; clients or shares that are alike are in
    random order. Ranks are paired by a Gaussian copula: those of two normal scores with
    this correlation. Computing is the only stage that counts, and power over time does
    not.

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

        Args:
            seconds: Seconds of computing of each client.
            measure: Measure of each share.
            seed: Seed of the run, >= 0.

        Raises:
            ScenarioError: All clients or all shares are alike, and yet correlated.
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
