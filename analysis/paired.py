"""Groups against a baseline, replicate by replicate: what common randomness leaves.

Replicates share their randomness between groups, so a difference within a replicate
varies less than either side does.
"""

from typing import NamedTuple

import numpy as np
import pandas as pd

from ..simulator.files.study import StudyError
from . import bounds
from .folders import takes_folder
from .frames import Study, check_groups, configurations, runs
from .statistics import LEVEL, confidence, t_interval
from .targets import default_target, final_bounds, for_means, times_to_target

FINAL, TO_TARGET = "final", "to target"
"""Compared quantities: final values, and costs until a target."""


COLUMNS = (
    *("group", "quantity", "difference", "low", "high"),
    *("pairs", "replicates", "mean", "baseline"),
)
"""Columns of differences."""


@takes_folder
def against(
    study: Study,
    baseline: str,
    metric: str = "test_accuracy",
    counted: str = "time",
    target: float | None = None,
) -> pd.DataFrame:
    """Returns the paired differences of all groups to a baseline.

    Two rows per group: final values, and the count until a target. A diverged run has
    the worst value that the metric can have. Without such a value, it is no better than
    the worst one seen, and bounds the difference of its pair.

    A mean over only the pairs that reached the target would be biased. Where one side
    always reached it and the other did not, its last evaluation bounds the difference.
    Times are between two evaluations: the interval's ends are those for the least and
    the largest differences. Where some pairs are bounded, so is one end of the
    interval; the other end is infinite and the difference NaN. Where bounds of pairs
    are on both sides, all three are NaN.

    Args:
        study: Study, finished or not.
        baseline: Group that others are compared with; or a variant, whose swept values
            are then those of the group that is compared.
        metric: Column of the table `evaluations`.
        counted: Count, of `frames.COUNTED` or `phases.PHASES`.
        target: Target of the metric; by default the study's, if it is of this metric.

    Returns:
        Columns variant, group, the swept keys; quantity, `final` or `to target`;
        difference, the mean over pairs of group less baseline, NaN if not known or only
        bounded, with low and high, its 95 % t-interval; pairs whose difference is
        known; replicates that both sides have; mean and baseline, the means of both
        over these pairs.

    Raises:
        StudyError: There is no such group, or variant with a group's swept values; or
            no such column.
    """
    others = _baselines(study, baseline)
    if target is None and (stated := default_target(study)).metric == metric:
        target = stated.value
    finals = for_means(study, metric, final_bounds(study, metric))
    times = None
    if target is not None:
        times = times_to_target(study, metric, target, counted)
        # Who never would have arrived is seen to wait until the last evaluation.
        low = times["low"].where(np.isfinite(times["low"]), times["time"])
        times = times.assign(value=times["time"], low=low).dropna(subset="value")
    rows = []
    for group, other in others.items():
        if group == other:
            continue
        pair = (group, other)
        rows.append(_difference(pair, FINAL, finals))
        if times is not None:
            rows.append(_difference(pair, TO_TARGET, times))
    found = pd.DataFrame(rows, columns=pd.Index(COLUMNS))
    return configurations(study).merge(found, on="group")


@takes_folder
def times_as_fast(study: Study, than: str, metric: str, value: float) -> pd.DataFrame:
    """Returns the speed-up of each group over one: ratio of times to a target.

    Medians over replicates of the ratio of both times, as claims judge them. A time is
    between two evaluations, or after the last one, and so is the ratio.

    Args:
        study: Study, finished or not.
        than: Group that others are compared with; or a variant, as in `against`.
        metric: Column of the table `evaluations`.
        value: Value of the metric to reach.

    Returns:
        Columns variant, group, the swept keys, ratio, low, high (as `bounds.interval`;
        NaN where nothing is known), bound: `≥`, `≤` or nothing, where the median is
        known on one side alone.

    Raises:
        StudyError: The metric was not evaluated, or cannot have the value.
    """
    times = times_to_target(study, metric, value)
    known = times["low"].notna()
    ones = times.assign(low=times["low"].mask(known, 1.0), high=1.0)
    rows = []
    for group, other in _baselines(study, than).items():
        rows.append(ratio((other, group), ones if group == other else times)[:4])
    columns = pd.Index(PairedRatio._fields[:4])
    return configurations(study).join(pd.DataFrame(rows, columns=columns))


def _baselines(study: Study, name: str) -> dict[str, str]:
    """Returns the group that each group is compared with, itself among them.

    Raises:
        StudyError: There is no such group, or variant with a group's swept values.
    """
    variants = dict(runs(study)[["group", "variant"]].itertuples(index=False))
    if name not in variants.values() or name in variants:
        check_groups(study, name)
        return dict.fromkeys(variants, name)
    points = {run["label"]: run["parameters"] for run in study.manifest["runs"]}
    of_name = {group: points[group] for group in variants if variants[group] == name}
    found = {}
    for group in variants:
        mine = points[group].items()
        alike = [
            other
            for other, point in of_name.items()
            if all(point.get(key, value) == value for key, value in mine)
        ]
        if len(alike) != 1:
            raise StudyError(
                f"variant {name!r} must have one configuration with the swept values "
                f"of {group!r}, but has {len(alike)}; take one of "
                f"{', '.join(map(repr, of_name))}"
            )
        found[group] = alike[0]
    return found


class PairedRatio(NamedTuple):
    """The ratio of one group's number to another's, replicate by replicate.

    Attributes:
        ratio: Median over pairs; NaN where nothing is known.
        low: Lower end of its interval, as `bounds.interval`.
        high: Upper end of it.
        bound: `≥`, `≤` or nothing, where the median is known on one side alone.
        pairs: Number of pairs.
    """

    ratio: float
    low: float
    high: float
    bound: str
    pairs: int

    @property
    def is_decided(self) -> bool:
        """Whether the 95 % interval that enough pairs have leaves out 1."""
        whole = self.pairs > 0 and confidence(self.pairs) >= LEVEL
        return whole and (self.low > 1 or self.high < 1)


def ratio(pair: tuple[str, str], table: pd.DataFrame) -> PairedRatio:
    """Returns the ratio of the first group's number to the second one's.

    Args:
        pair: Groups.
        table: Columns group, replicate, and the ends low, high that bound each number;
            above 0, or the ratio is unknown.
    """
    both = _sides(pair, table).dropna(subset=["low_one", "low_other"])
    low, high = (
        both[[f"{end}_one", f"{end}_other"]].to_numpy(np.float64)
        for end in ("low", "high")
    )
    logs = bounds.logarithm(bounds.Sample(low, high))
    sample = bounds.contrast(logs, np.array([1.0, -1.0]))
    # With more than half of its ends infinite a median is bounded on one side.
    endless = [2 * np.isinf(end).sum() >= max(1, len(end)) for end in sample]
    bound = "≥" if endless[1] else "≤" if endless[0] else ""
    middle, least, most = np.exp(bounds.interval(sample)).tolist()
    return PairedRatio(middle, least, most, bound, len(both))


def _sides(pair: tuple[str, str], table: pd.DataFrame) -> pd.DataFrame:
    one, other = (table.loc[table["group"] == group] for group in pair)
    return one.merge(other, on="replicate", suffixes=("_one", "_other"))


def _difference(
    pair: tuple[str, str], what: str, table: pd.DataFrame
) -> tuple[str | float, ...]:
    both = _sides(pair, table)
    there = both.dropna(subset=["value_one", "value_other"])
    values, low, high = (
        there[[f"{end}_one", f"{end}_other"]].to_numpy(np.float64)
        for end in ("value", "low", "high")
    )
    sample = bounds.contrast(bounds.Sample(low, high), np.array([1.0, -1.0]))
    known = np.isfinite(low).all(axis=1) & np.isfinite(high).all(axis=1)
    mean = t_interval(values @ [1.0, -1.0]).mean if known.all() else float("nan")
    least = -np.inf if np.isneginf(sample.low).any() else t_interval(sample.low).low
    most = np.inf if np.isposinf(sample.high).any() else t_interval(sample.high).high
    if np.isinf([least, most]).all():
        least = most = float("nan")
    sides = values[known].mean(axis=0) if known.any() else np.full(2, np.nan)
    return (pair[0], what, mean, least, most, int(known.sum()), len(both), *sides)
