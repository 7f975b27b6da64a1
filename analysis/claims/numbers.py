"""Numbers of replicates that judges get, without tables.

A scenario names kinds of claims, and with each its judge is imported, so judges need no
pandas. Functions that measure a study import it when called.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple, Protocol

import numpy as np

from ..bounds import Sample

if TYPE_CHECKING:
    import pandas as pd

    from ...simulator.files.study import Study

Frame = Callable[["Study"], "pd.DataFrame"]
"""Function from a study to a frame with a row per run, columns `low` and `high`."""


class Numbers(NamedTuple):
    """One quantity of the replicates of a group.

    Attributes:
        replicates: Numbers of the replicates, ascending.
        low: Lower bound of the true number; NaN where there is none.
        high: Upper bound of the true number.
        diverged: Whether each run diverged.
    """

    replicates: np.ndarray
    low: np.ndarray
    high: np.ndarray
    diverged: np.ndarray

    @property
    def known(self) -> np.ndarray:
        """Whether each replicate has a number."""
        return ~np.isnan(self.low)


def together(*sides: Numbers) -> Sample:
    """Returns numbers of the replicates that all sides have, `[n, sides]`."""
    known = [side.replicates[side.known] for side in sides]
    common = np.array(sorted(set.intersection(*(set(one.tolist()) for one in known))))
    rows = [np.searchsorted(side.replicates, common) for side in sides]
    pairs = list(zip(sides, rows, strict=True))
    return Sample(
        np.column_stack([side.low[mine] for side, mine in pairs]),
        np.column_stack([side.high[mine] for side, mine in pairs]),
    )


def final(metric: str) -> str:
    """Returns the name of a metric's final value."""
    return f"final {metric}"


def horizon(quantity: str) -> str:
    """Returns the name of the commits that a mean is over."""
    return f"commits of {quantity}"


def final_frame(metric: str) -> Frame:
    """Returns the function that measures a metric's final values."""
    from ..targets import final_bounds

    return lambda study: final_bounds(study, metric)


class OfMetric(Protocol):
    """A claim on a metric."""

    metric: str


def final_values(claim: OfMetric) -> dict[str, Frame]:
    """Returns the final values of a claim's metric, which most kinds need."""
    return {final(claim.metric): final_frame(claim.metric)}
