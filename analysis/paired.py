"""Groups against a baseline, replicate by replicate: what common randomness leaves.

Replicates share their randomness between groups, so a difference within a replicate
varies less than either side does.
"""

from typing import NamedTuple

import numpy as np
import pandas as pd

from analysis.curves import area_under_curve
from analysis.frames import Study, groups
from analysis.statistics import Interval, t_interval
from analysis.targets import default_target, final_values, times_to_target

FINAL, AREA, TO_TARGET = "final", "area", "to target"
"""What is compared: final values, means over what is counted, what a target takes."""


class Difference(NamedTuple):
    """A group less a baseline.

    Attributes:
        group: that is compared.
        quantity: `final`, `area` or `to target`.
        difference: mean over pairs of group less baseline; NaN if not known.
        low: of its 95 % t-interval.
        high: of its 95 % t-interval.
        pairs: that both have the quantity.
        replicates: that both sides have.
        mean: of the group, over these pairs.
        baseline: the mean of the baseline over them.
    """

    group: str
    quantity: str
    difference: float
    low: float
    high: float
    pairs: int
    replicates: int
    mean: float
    baseline: float


def against(
    study: Study,
    baseline: str,
    metric: str = "test_accuracy",
    counted: str = "time",
    target: float | None = None,
) -> pd.DataFrame:
    """Returns the paired differences of all groups to a baseline.

    Three rows per group: of final values; of means of the metric over what is counted
    (`curves.area_under_curve`, over the range common to both); of what is counted until
    a target. Pairs of which a side diverged are left out of the first two.

    A mean over the pairs that reached the target alone would say nothing. Where one
    side always reached it and the other did not, its last evaluation bounds the
    difference, and so does one end of the interval; the other end is infinite and the
    difference NaN. Where both sides failed, all three are NaN.

    Args:
        study: finished or not.
        baseline: the group that others are compared with.
        metric: a column of evaluations.
        counted: of `frames.COUNTED` or `phases.PHASES`.
        target: of the metric; by default that of the study, if it is of this metric.

    Returns:
        A column per attribute of `Difference`.

    Raises:
        ValueError: there is no such group.
        StudyError: there is no such column.
    """
    known = groups(study)
    if baseline not in known:
        raise ValueError(
            f"the study has no group {baseline!r}; known are {', '.join(known)}"
        )
    if target is None and (stated := default_target(study)).metric == metric:
        target = stated.value
    finals = final_values(study, metric)
    times = None if target is None else times_to_target(study, metric, target, counted)
    rows = []
    for group in known:
        if group == baseline:
            continue
        pair = (group, baseline)
        rows.append(_difference(pair, FINAL, finals))
        areas = area_under_curve(study, metric, counted, pair)
        rows.append(_difference(pair, AREA, areas))
        if times is not None:
            rows.append(_of_times(pair, times))
    return pd.DataFrame(rows, columns=pd.Index(Difference._fields))


def _sides(pair: tuple[str, str], table: pd.DataFrame) -> pd.DataFrame:
    """Returns a row per replicate of both groups, columns of each side."""
    one, other = (table.loc[table["group"] == group] for group in pair)
    return one.merge(other, on="replicate", suffixes=("_one", "_other"))


def _difference(pair: tuple[str, str], what: str, values: pd.DataFrame) -> Difference:
    both = _sides(pair, values)
    sides = both[["value_one", "value_other"]].dropna().to_numpy(np.float64)
    return _row(pair[0], what, t_interval(sides[:, 0] - sides[:, 1]), sides, len(both))


def _of_times(pair: tuple[str, str], times: pd.DataFrame) -> Difference:
    """Returns the difference of times to a target, or the bound that is known of it."""
    both = _sides(pair, times).dropna(subset=["time_one", "time_other"])
    one, other = (both[f"reached_{side}"].to_numpy(bool) for side in ("one", "other"))
    sides = both[["time_one", "time_other"]].to_numpy(np.float64)
    mean, low, high = t_interval(sides[:, 0] - sides[:, 1])
    reached = one & other
    if not reached.all():
        mean = float("nan")
        low = low if other.all() else -np.inf if one.all() else mean
        high = high if one.all() else np.inf if other.all() else mean
    interval = Interval(mean, low, high)
    return _row(pair[0], TO_TARGET, interval, sides[reached], len(both))


def _row(
    group: str, what: str, interval: Interval, sides: np.ndarray, replicates: int
) -> Difference:
    means = sides.mean(axis=0) if len(sides) else np.full(2, np.nan)
    pairs = len(sides)
    return Difference(group, what, *interval, pairs, replicates, *map(float, means))
