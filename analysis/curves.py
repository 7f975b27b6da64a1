"""Convergence curves: their mean over replicates, areas under them, and rates."""

from collections.abc import Sequence

import numpy as np
import pandas as pd

from analysis.frames import Study, evaluations, metric_of, runs
from analysis.phases import evaluations_by
from analysis.statistics import held, log_log_slope, t_interval
from simulator.trace import StudyError

DECADE = 10.0
"""A rate is read off the commits from a tenth of the last one on."""
LEAST_POINTS = 3
"""Evaluations below which a decade has no slope."""


def mean_curve(
    study: Study,
    group: str,
    metric: str = "test_accuracy",
    against: str = "time",
    points: int = 200,
) -> pd.DataFrame:
    """Returns the mean curve of a group of replicates, with 95 % t-intervals.

    Every replicate's value holds until its next evaluation; the grid ends where the
    first replicate does. Replicates that diverged are left out, unless all did, for a
    curve could only end where the first of them broke off.

    Args:
        study: finished or not.
        group: of runs.
        metric: a column of evaluations.
        against: what is counted, of `frames.COUNTED` or `phases.PHASES`.
        points: of the grid.

    Returns:
        Columns x, mean, low, high, replicates (that are averaged).

    Raises:
        ValueError: there is no such group.
        StudyError: there is no such column, or nothing is counted in this group.
    """
    table = evaluations_by(study, against)
    table = table.assign(x=metric_of(table, against), y=metric_of(table, metric))
    mine = table.loc[table["group"] == group]
    if mine.empty:
        known = ", ".join(dict.fromkeys(table["group"]))
        raise ValueError(f"the study has no group {group!r}; known are {known}")
    mine = mine.loc[np.isfinite(mine["x"].to_numpy(np.float64))]
    if mine.empty:
        raise StudyError(f"the runs of {group} have no {against} to be counted")
    ends = runs(study)
    sound = mine.loc[~mine["run"].isin(ends.loc[ends["stop"] == "diverged", "run"])]
    curves = [
        (run["x"].to_numpy(np.float64), run["y"].to_numpy(np.float64))
        for _, run in (mine if sound.empty else sound).groupby("run", sort=True)
    ]
    grid = np.linspace(0, min(x[-1] for x, _ in curves), points)
    values = np.stack([held(x, y, grid) for x, y in curves])
    rows = [t_interval(column) for column in values.T]
    frame = pd.DataFrame(rows, columns=pd.Index(["mean", "low", "high"]))
    frame.insert(0, "x", grid)
    frame["replicates"] = len(curves)
    return frame


def area_under_curve(
    study: Study,
    metric: str = "test_accuracy",
    against: str = "time",
    among: Sequence[str] | None = None,
) -> pd.DataFrame:
    """Returns every run's mean value of a metric over what is counted.

    It is the area under the straight lines between evaluations, over the range that all
    runs have in common and divided by its length, so in the metric's own unit. A run
    that diverged, or counts nothing, has none and takes nothing from the range.

    Args:
        study: finished or not.
        metric: a column of evaluations.
        against: what is counted, of `frames.COUNTED` or `phases.PHASES`.
        among: groups that are compared; by default all.

    Returns:
        Columns group, replicate, value; NaN where there is no common range.

    Raises:
        StudyError: there is no such column.
    """
    table = evaluations_by(study, against)
    table = table.assign(x=metric_of(table, against), y=metric_of(table, metric))
    known = np.isfinite(table[["x", "y"]].to_numpy(np.float64)).all(axis=1)
    table = table.loc[np.asarray(known)]
    ends = runs(study)
    if among is not None:
        ends = ends.loc[ends["group"].isin(among)]
    sound = table.loc[table["run"].isin(ends.loc[ends["stop"] != "diverged", "run"])]
    ranges = sound.groupby("run")["x"].agg(["first", "last"])
    first, last = float(ranges["first"].max()), float(ranges["last"].min())
    areas = {
        run: _mean_between(
            rows["x"].to_numpy(np.float64), rows["y"].to_numpy(np.float64), first, last
        )
        for run, rows in sound.groupby("run")
    }
    values = ends["run"].map(areas).astype(np.float64)
    return ends[["group", "replicate"]].assign(value=values).reset_index(drop=True)


def decade_slopes(study: Study, group: str, metric: str) -> pd.Series:
    """Returns how each replicate's metric fell over the last decade of its commits.

    Args:
        study: finished or not.
        group: of runs.
        metric: a column of evaluations.

    Returns:
        By replicate, the slope of the metric's logarithm over that of the commits. NaN
        for a run that diverged, for one with fewer than three evaluations in the
        decade, and where the metric was not positive there.

    Raises:
        StudyError: the metric was not evaluated.
    """
    slopes = {}
    for replicate, (commits, values) in _over_commits(study, group, metric).items():
        late = (commits > 0) & (DECADE * commits >= commits.max(initial=0))
        enough = np.count_nonzero(late) >= LEAST_POINTS
        slope = log_log_slope(commits[late], values[late])
        slopes[replicate] = slope if enough else float("nan")
    return pd.Series(slopes, dtype=np.float64)


def horizon_slopes(study: Study, groups: Sequence[str], metric: str) -> pd.Series:
    """Returns how a metric's mean over a run falls with the run's commits.

    The theorems on steps that depend on a horizon bound the average over its commits.
    Here it is that of the straight lines between evaluations.

    Args:
        study: finished or not.
        groups: of runs, with different horizons.
        metric: a column of evaluations.

    Returns:
        By replicate that all groups have, the slope of the mean's logarithm over that
        of the last commit. NaN where a run diverged, or has fewer than two evaluations,
        where a mean is not positive, and where all horizons are the same.

    Raises:
        StudyError: the metric was not evaluated.
    """
    curves = [_over_commits(study, group, metric) for group in groups]
    slopes = {}
    for replicate in sorted(set.intersection(*map(set, curves))):
        points = [_last_and_mean(*found[replicate]) for found in curves]
        slopes[replicate] = log_log_slope(*np.transpose(points))
    return pd.Series(slopes, dtype=np.float64)


def _over_commits(
    study: Study, group: str, metric: str
) -> dict[int, tuple[np.ndarray, np.ndarray]]:
    """Returns commits and metric by replicate; nothing for one that diverged."""
    table = evaluations(study)
    table = table.assign(y=metric_of(table, metric)).dropna(subset=["y"])
    ends = runs(study)
    found = {}
    for _, run in ends[ends["group"] == group].iterrows():
        rows = table[(table["run"] == run["run"]) & (run["stop"] != "diverged")]
        curve = rows["commits"].to_numpy(np.float64), rows["y"].to_numpy(np.float64)
        found[int(run["replicate"])] = curve
    return found


def _last_and_mean(commits: np.ndarray, values: np.ndarray) -> tuple[float, float]:
    if commits.size < 2 or commits[-1] == commits[0]:
        return float("nan"), float("nan")
    area = float(np.trapezoid(values, commits))
    return float(commits[-1]), area / float(commits[-1] - commits[0])


def _mean_between(x: np.ndarray, y: np.ndarray, first: float, last: float) -> float:
    """Returns the mean of the lines through some points from one x to another."""
    if not last > first:
        return float("nan")
    inside = (x > first) & (x < last)
    at = np.concatenate([[first], x[inside], [last]])
    ends = np.interp([first, last], x, y)
    values = np.concatenate([ends[:1], y[inside], ends[1:]])
    return float(np.trapezoid(values, at)) / (last - first)
