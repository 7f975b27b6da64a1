"""Distributions of staleness, per client or group."""

import numpy as np
import pandas as pd

from analysis.frames import Study, joined


def histogram(
    study: Study, group: str, client: int | None = None, quantity: str | None = None
) -> pd.DataFrame:
    """Returns the distribution of a staleness in a group of replicates.

    Args:
        study: finished or not.
        group: of runs.
        client: from 0; None takes all together.
        quantity: `contribution` (commits since a contribution's read) or `embedding`
            (age of a stored embedding when others used it); by default the latter
            where it exists.

    Returns:
        Columns low, high (bins of commits, half open), count, density (per commit).
    """
    table = joined(study, "staleness")
    table = table.loc[table["group"] == group]
    if quantity is None:
        has = (table["quantity"] == "embedding").any()
        quantity = "embedding" if has else "contribution"
    table = table.loc[table["quantity"] == quantity]
    if client is not None:
        table = table.loc[table["client"] == client]
    counts = table.groupby(["low", "high"], as_index=False)["count"].sum()
    width = counts["high"] - counts["low"]
    total = max(int(counts["count"].sum()), 1)
    counts["density"] = counts["count"] / (width * total)
    return counts


def mean(frame: pd.DataFrame) -> float:
    """Returns the mean of a histogram, each bin at the middle of its integers."""
    if frame.empty:
        return float("nan")
    middle = (frame["low"] + frame["high"] - 1) / 2
    return float(np.average(middle, weights=frame["count"]))
