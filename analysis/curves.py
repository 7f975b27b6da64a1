"""Convergence curves: mean and interval over replicates on a common grid."""

import numpy as np
import pandas as pd

from analysis.frames import Study, evaluations
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
    first replicate does.

    Args:
        study: finished or not.
        group: of runs.
        metric: a column of evaluations.
        against: a column of evaluations that grows (time, commits, upload_bytes, ...).
        points: of the grid.

    Returns:
        Columns x, mean, low, high, replicates.

    Raises:
        ValueError: there is no such group or column.
    """
    table = evaluations(study)
    for column in (metric, against):
        if column not in table:
            known = ", ".join(map(str, table.columns))
            raise ValueError(
                f"evaluations have no column {column!r}; known are {known}"
            )
    mine = table.loc[table["group"] == group]
    if mine.empty:
        known = ", ".join(dict.fromkeys(table["group"]))
        raise ValueError(f"the study has no group {group!r}; known are {known}")
    curves = [
        (run[against].to_numpy(np.float64), run[metric].to_numpy(np.float64))
        for _, run in mine.groupby("run", sort=True)
    ]
    grid = np.linspace(0, min(x[-1] for x, _ in curves), points)
    values = np.stack([held(x, y, grid) for x, y in curves])
    rows = [t_interval(column) for column in values.T]
    frame = pd.DataFrame(rows, columns=pd.Index(["mean", "low", "high"]))
    frame.insert(0, "x", grid)
    frame["replicates"] = len(curves)
    return frame
