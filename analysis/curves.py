"""Convergence curves: mean and interval over replicates on a common grid."""

import numpy as np
import pandas as pd

from analysis.frames import Study, evaluations, metric_of, runs
from analysis.statistics import held, t_interval


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
        against: a column of evaluations that grows (time, commits, upload_bytes, ...).
        points: of the grid.

    Returns:
        Columns x, mean, low, high, replicates (that are averaged).

    Raises:
        ValueError: there is no such group.
        StudyError: there is no such column.
    """
    table = evaluations(study)
    table = table.assign(x=metric_of(table, against), y=metric_of(table, metric))
    mine = table.loc[table["group"] == group]
    if mine.empty:
        known = ", ".join(dict.fromkeys(table["group"]))
        raise ValueError(f"the study has no group {group!r}; known are {known}")
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
