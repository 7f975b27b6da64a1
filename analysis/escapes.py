"""Losses that have left the scale on which they began, though they stayed finite."""

import numpy as np
import pandas as pd

from analysis.frames import Study, evaluations
from simulator.trace import is_summary

LOSSES = (
    *("test_loss", "objective", "worker_loss"),
    *("optimality_gap", "gradient_norm_squared"),
)
"""Metrics that learning lowers; the first that was evaluated is looked at."""
FAR = 1e6
"""A loss that ends so many times as high as it began has left its scale."""


def escapes(study: Study) -> pd.Series:
    """Returns how many times as high as it began the loss of each run ended.

    The loss is the first of `LOSSES` that was evaluated, else that of the batches, if
    those were recorded.

    Args:
        study: Study, finished or not.

    Returns:
        By run, those alone whose loss ended more than `FAR` times as high.
    """
    table = evaluations(study)
    metric = next((name for name in LOSSES if name in table), None)
    if metric is None and is_summary(study.manifest):
        return pd.Series(dtype=np.float64)
    if metric is None:
        table, metric = study.table("commits"), "loss"
    if metric not in table:
        return pd.Series(dtype=np.float64)
    known = table.loc[np.isfinite(table[metric].to_numpy(np.float64))]
    ends = known.groupby("run")[metric].agg(["first", "last"]).astype(np.float64)
    ends = ends.loc[ends["first"] > 0]
    factors = ends["last"] / ends["first"]
    return factors.loc[factors > FAR]
