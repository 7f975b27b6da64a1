"""How the largest stable and the best swept value fall with another swept number.

A sweep over two keys, such as step sizes and numbers of clients, has at each value of
the second a largest value of the first that does not diverge, and one that ends best.
Both often follow a power of the second.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int

from stalesim.analysis import bounds
from stalesim.analysis.bounds import Sample
from stalesim.analysis.claims.measured import Measured
from stalesim.analysis.claims.numbers import final
from stalesim.analysis.statistics import Interval
from stalesim.simulator.files.study import StudyError


class Scaling(NamedTuple):
    """One swept value of each replicate at each value of another key.

    Attributes:
        at: Values of the other key, ascending, all above 0.
        values: Swept value of each replicate, all above 0.
        known: Values between which the true ones lie: at an end of the sweep they may
            lie beyond it.
    """

    at: Float[np.ndarray, " k"]
    values: Float[np.ndarray, "n k"]
    known: Sample

    @property
    def exponent(self) -> Interval:
        """Median exponent b of `values = a at ** b`, and its interval.

        Of each replicate by least squares of logarithms, from the least to the most
        that it may be.
        """
        centred = np.log(self.at) - np.log(self.at).mean()
        weights = centred / (centred @ centred)
        found = bounds.contrast(bounds.logarithm(self.known), weights)
        return bounds.interval(found)

    @property
    def beyond(self) -> int:
        """How many of the true values may lie beyond the sweep."""
        low, high = self.known
        return int(((low == 0) | np.isinf(high)).sum())

    @property
    def means(self) -> Float[np.ndarray, " k"]:
        """Geometric mean of the replicates."""
        return np.exp(np.log(self.values).mean(axis=0))


def largest_stable(
    measured: Measured, variant: str, over: str, against: str, metric: str, than: float
) -> Scaling:
    """Returns the largest swept values up to which no run diverges.

    A run diverges if it ended so, or ends with a metric no better than a number, such
    as that of the start. Values beyond the first that diverges do not count.

    Args:
        measured: Final values of the study.
        variant: Variant that is swept.
        over: Key whose largest value is looked for.
        against: Key whose values it is looked for at.
        metric: Metric of the end.
        than: Number that the end must be better than.

    Raises:
        StudyError: The keys are not swept over numbers above 0, or others are as well.
    """
    sign = 1 if measured.metric(metric).higher_is_better else -1

    def largest(ends: np.ndarray, lost: np.ndarray) -> Places:
        fine = ~lost & (sign * ends > sign * than)
        stable = np.cumprod(fine, axis=1).sum(axis=1)
        return np.maximum(stable - 1, 0), stable - 1, stable

    return _scaling(measured, variant, over, against, metric, largest)


def best(
    measured: Measured, variant: str, over: str, against: str, metric: str
) -> Scaling:
    """Returns the swept values whose runs end best; as `largest_stable`.

    At an end of the sweep a better one may lie beyond it.

    Raises:
        StudyError: As `largest_stable`.
    """
    sign = 1 if measured.metric(metric).higher_is_better else -1

    def of_best(ends: np.ndarray, lost: np.ndarray) -> Places:
        place = np.argmax(np.where(lost | np.isnan(ends), -np.inf, sign * ends), axis=1)
        last = ends.shape[1] - 1
        return place, place - (place == 0), place + (place == last)

    return _scaling(measured, variant, over, against, metric, of_best)


Places = tuple[Int[np.ndarray, " n"], Int[np.ndarray, " n"], Int[np.ndarray, " n"]]
"""Places of a swept value for each replicate, and of those between which the true one
lies: -1 before the sweep, and its length after it."""
Chosen = Callable[[Float[np.ndarray, "n s"], Bool[np.ndarray, "n s"]], Places]
"""From final values and which runs diverged, by replicate and swept value."""


def _scaling(
    measured: Measured,
    variant: str,
    over: str,
    against: str,
    metric: str,
    choose: Chosen,
) -> Scaling:
    found: dict[float, dict[float, str]] = {}
    for group in measured.groups(variant):
        parameters = measured.parameters(group)
        if {*parameters} != {over, against}:
            raise StudyError(
                f"{variant} is not swept over {over} and {against} alone, but over "
                f"{', '.join(parameters) or 'nothing'}"
            )
        found.setdefault(parameters[against], {})[parameters[over]] = group
    if len(found) < 2 or min(min(found), *map(min, found.values())) <= 0:
        raise StudyError(
            f"{variant} is not swept over two or more values of {against}, and "
            f"numbers above 0"
        )
    ended = {
        tuple(measured.of(final(metric), group).replicates)
        for groups in found.values()
        for group in groups.values()
    }
    if len(ended) != 1:
        raise StudyError(f"some runs of {variant} have not ended; resume the study")
    at, values, low, high = sorted(found), [], [], []
    for other in at:
        swept = sorted(found[other])
        columns = [measured.of(final(metric), found[other][one]) for one in swept]
        ends = np.column_stack([column.low for column in columns])
        lost = np.column_stack([column.diverged for column in columns])
        places = choose(ends, lost)
        edges = np.array([0.0, *swept, np.inf])
        for kept, place in zip((values, low, high), places, strict=True):
            kept.append(edges[place + 1])
    known = Sample(np.column_stack(low), np.column_stack(high))
    return Scaling(np.array(at, float), np.column_stack(values), known)
