"""How the largest stable and the best swept value fall with another swept number.

A sweep over two keys, such as step sizes and numbers of clients, has at each value of
the second a largest value of the first that does not diverge, and one that ends best.
Both often follow a power of the second.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int

from analysis import bounds
from analysis.bounds import AT_LEAST, AT_MOST, EXACT
from analysis.claims.measured import Measured, final
from analysis.statistics import Interval
from simulator.trace import StudyError


class Scaling(NamedTuple):
    """One swept value of each replicate at each value of another key.

    Attributes:
        at: Values of the other key, ascending, all above 0.
        values: Swept value of each replicate, all above 0.
        bounds: Meaning of each, of `analysis.bounds`: at an end of the sweep the true
            one may lie beyond it.
    """

    at: Float[np.ndarray, " k"]
    values: Float[np.ndarray, "n k"]
    bounds: Int[np.ndarray, "n k"]

    @property
    def exponent(self) -> Interval:
        """Mean exponent b of `values = a at ** b`, and its 95 % t-interval.

        Of each replicate by least squares of logarithms. Where values are bounds, the
        interval is open on the side to which the exponent may move.
        """
        centred = np.log(self.at) - np.log(self.at).mean()
        weights = centred / (centred @ centred)
        found = bounds.contrast(np.log(self.values), self.bounds, weights)
        return bounds.interval(found)

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

    def largest(ends: np.ndarray, lost: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        fine = ~lost & (sign * ends > sign * than)
        stable = np.cumprod(fine, axis=1).sum(axis=1)
        meaning = np.where(stable == fine.shape[1], AT_LEAST, EXACT)
        return np.maximum(stable - 1, 0), np.where(stable == 0, AT_MOST, meaning)

    return _scaling(measured, variant, over, against, metric, largest)


def best(
    measured: Measured, variant: str, over: str, against: str, metric: str
) -> Scaling:
    """Returns the swept values whose runs end best; as `largest_stable`.

    Raises:
        StudyError: As `largest_stable`.
    """
    sign = 1 if measured.metric(metric).higher_is_better else -1

    def of_best(ends: np.ndarray, lost: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        place = np.argmax(np.where(lost | np.isnan(ends), -np.inf, sign * ends), axis=1)
        last = np.where(place == ends.shape[1] - 1, AT_LEAST, EXACT)
        return place, np.where(place == 0, AT_MOST, last)

    return _scaling(measured, variant, over, against, metric, of_best)


Chosen = Callable[
    [Float[np.ndarray, "n s"], Bool[np.ndarray, "n s"]],
    tuple[Int[np.ndarray, " n"], Int[np.ndarray, " n"]],
]
"""From final values and which runs diverged, by replicate and swept value, to the place
of a swept value for each replicate, and its meaning."""


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
    at, values, meanings = sorted(found), [], []
    for other in at:
        swept = sorted(found[other])
        columns = [measured.of(final(metric), found[other][one]) for one in swept]
        ends = np.column_stack([column.values for column in columns])
        lost = np.column_stack([column.diverged for column in columns])
        place, meaning = choose(ends, lost)
        values.append(np.array(swept)[place])
        meanings.append(meaning)
    return Scaling(
        np.array(at, float), np.column_stack(values), np.column_stack(meanings)
    )
