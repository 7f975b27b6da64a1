"""Convergence curves: their mean over replicates, and their rates."""

from collections.abc import Iterator, Sequence

import numpy as np
import pandas as pd
from jaxtyping import Float

from ..simulator.files.study import StudyError
from .frames import Study, check_groups, evaluations, metric_of, runs
from .phases import evaluations_by
from .statistics import held, log_log_slope, t_interval
from .targets import lost, or_worse

DECADE = 10.0
"""A rate is read off the commits from a tenth of the last one on."""
MOST_POINTS = 1_000
"""Times of evaluations that a curve has at most; a figure has not more pixels."""
LEAST_POINTS = 3
"""Evaluations below which a decade has no slope."""


def mean_curve(
    study: Study,
    group: str,
    metric: str = "test_accuracy",
    against: str = "time",
    points: int | None = None,
) -> pd.DataFrame:
    """Returns the mean curve of a group of replicates, with 95 % t-intervals.

    Every replicate's value holds until its next evaluation; the curve has the times of
    all evaluations, and ends where the first replicate does. Replicates that diverged
    are left out, unless all did, for a curve could only end where the first of them
    broke off.

    Args:
        study: Study, finished or not.
        group: Group of runs.
        metric: Column of the table `evaluations`.
        against: Count on the axis: `time`, `commits`, `contributions`, `epochs`,
            `rounds`, `messages`, `upload_bytes`, `download_bytes`, `bytes`, `epsilon`,
            `joules`, or a part of the time, `computation_s` or `communication_s`.
        points: Number of points of the grid.

    Returns:
        Columns x, mean, low, high, replicates (that are averaged).

    Raises:
        StudyError: There is no such group or column, or nothing is counted in it.
    """
    return mean_curves(study, [group], metric, against, points)[group]


def mean_curves(
    study: Study,
    among: Sequence[str],
    metric: str,
    against: str = "time",
    points: int | None = None,
) -> dict[str, pd.DataFrame]:
    """Returns the curves of some groups, as `mean_curve`; evaluations are read once."""
    check_groups(study, *among)
    table = evaluations_by(study, against)
    table = table.assign(x=metric_of(table, against), y=metric_of(table, metric))
    ends = runs(study)
    diverged = set(ends.loc[ends["stop"] == "diverged", "run"])
    return {group: _mean(table, group, against, diverged, points) for group in among}


def _mean(
    table: pd.DataFrame,
    group: str,
    against: str,
    diverged: set[int],
    points: int | None,
) -> pd.DataFrame:
    """Returns the curve of a group from evaluations with columns x and y."""
    mine = table.loc[table["group"] == group]
    mine = mine.loc[np.isfinite(mine["x"].to_numpy(np.float64))]
    if mine.empty:
        raise StudyError(f"the runs of {group} have no {against} to be counted")
    sound = mine.loc[~mine["run"].isin(diverged)]
    curves = [
        (run["x"].to_numpy(np.float64), run["y"].to_numpy(np.float64))
        for _, run in (mine if sound.empty else sound).groupby("run", sort=True)
    ]
    end = min(x[-1] for x, _ in curves)
    grid = np.linspace(0, end, points) if points else _evaluated(curves, end)
    values = np.stack([held(x, y, grid) for x, y in curves])
    rows = [t_interval(column) for column in values.T]
    frame = pd.DataFrame(rows, columns=pd.Index(["mean", "low", "high"]))
    frame.insert(0, "x", grid)
    frame["replicates"] = len(curves)
    return frame


def _evaluated(
    curves: list[tuple[np.ndarray, np.ndarray]], end: float
) -> Float[np.ndarray, " g"]:
    times = np.unique(np.concatenate([x for x, _ in curves]))
    times = times[times <= end]
    shown = np.linspace(0, times.size - 1, min(times.size, MOST_POINTS))
    return times[np.round(shown).astype(np.int64)]


def decade_slopes(study: Study, metric: str) -> pd.DataFrame:
    """Returns the fall of each run's metric over its last decade of commits.

    Returns:
        Columns group, replicate, low, high: the slope of the metric's logarithm over
        the commits' logarithm. NaN with fewer than three evaluations in the decade, and
        where the metric was not positive there. The slope of a diverged run is at least
        zero.

    Raises:
        StudyError: The metric was not evaluated.
    """
    slopes = []
    for commits, values in _over_commits(study, metric):
        late = (commits > 0) & (DECADE * commits >= commits.max(initial=0))
        enough = np.count_nonzero(late) >= LEAST_POINTS
        slope = log_log_slope(commits[late], values[late])
        slopes.append(slope if enough else float("nan"))
    bad = lost(study, metric)
    return runs(study)[["group", "replicate"]].assign(
        low=np.where(bad, 0.0, slopes), high=np.where(bad, np.inf, slopes)
    )


def run_means(study: Study, metric: str) -> pd.DataFrame:
    """Returns the mean of each run's metric over its commits.

    The theorems on steps that depend on a horizon bound this average. Here it is the
    average of the straight lines between evaluations.

    Returns:
        Columns group, replicate, value, low, high, commits (the last one that was
        evaluated). NaN with fewer than two evaluations. The mean of a run that diverged
        is no better than the worst value that was seen.

    Raises:
        StudyError: The metric was not evaluated.
    """
    ends = [_last_and_mean(*curve) for curve in _over_commits(study, metric)]
    last, means = np.array(ends, np.float64).reshape(-1, 2).T
    found = runs(study)[["group", "replicate"]].assign(value=means, commits=last)
    return or_worse(study, metric, found, lost(study, metric))


def _over_commits(study: Study, metric: str) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yields commits and metric of every run that has ended."""
    table = evaluations(study)
    table = table.assign(y=metric_of(table, metric)).dropna(subset=["y"])
    curves = dict(iter(table.groupby("run")))
    for run in runs(study)["run"]:
        rows = curves.get(run, table.iloc[:0])
        yield rows["commits"].to_numpy(np.float64), rows["y"].to_numpy(np.float64)


def _last_and_mean(commits: np.ndarray, values: np.ndarray) -> tuple[float, float]:
    if commits.size < 2 or commits[-1] == commits[0]:
        return float("nan"), float("nan")
    area = float(np.trapezoid(values, commits))
    return float(commits[-1]), area / float(commits[-1] - commits[0])
