"""Distributions of staleness, per client or group."""

import numpy as np
import pandas as pd

from analysis.frames import Study, joined

QUANTILES = (0.5, 0.95)
"""That tables show beside the mean."""


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
    if client is not None:
        table = table.loc[table["client"] == client]
    return _summed(table, quantity or default_quantity(table))


def by_client(study: Study, group: str, quantity: str | None = None) -> pd.DataFrame:
    """Returns how stale each client of a group was.

    Args:
        study: finished or not.
        group: of runs.
        quantity: as of `histogram`.

    Returns:
        Columns client, count, mean, 50 %, 95 % (commits); `clients` has the maxima.
    """
    table = joined(study, "staleness")
    table = table.loc[table["group"] == group]
    quantity = quantity or default_quantity(table)
    names = [f"{100 * part:g} %" for part in QUANTILES]
    rows = []
    for client, mine in table.loc[table["quantity"] == quantity].groupby("client"):
        frame = _summed(mine, quantity)
        places = [quantile(frame, part) for part in QUANTILES]
        rows.append((client, int(frame["count"].sum()), mean(frame), *places))
    columns = pd.Index(["client", "count", "mean", *names])
    return pd.DataFrame(rows, columns=columns)


def default_quantity(table: pd.DataFrame) -> str:
    """Returns which staleness matters: that of embeddings, where there are any."""
    return "embedding" if (table["quantity"] == "embedding").any() else "contribution"


def mean(frame: pd.DataFrame) -> float:
    """Returns the mean of a histogram, each bin at the middle of its integers."""
    if not frame["count"].sum():
        return float("nan")
    middle = (frame["low"] + frame["high"] - 1) / 2
    return float(np.average(middle, weights=frame["count"]))


def quantile(frame: pd.DataFrame, part: float) -> float:
    """Returns the smallest staleness that at least a part of the counts are not above.

    A bin of several integers counts as evenly filled.

    Args:
        frame: a histogram, bins in increasing order.
        part: of all counts, in (0, 1].
    """
    total = int(frame["count"].sum())
    if not total:
        return float("nan")
    below = np.cumsum(frame["count"].to_numpy(np.float64))
    wanted = part * total * (1 - 1e-12)  # or 0.95 * 20 is more than 19
    number = int(np.searchsorted(below, wanted))
    low, high, count = (
        float(frame[name].iloc[number]) for name in ("low", "high", "count")
    )
    missing = wanted - (below[number] - count)
    return low + float(np.ceil(missing / count * (high - low))) - 1


def _summed(table: pd.DataFrame, quantity: str) -> pd.DataFrame:
    """Returns the counts of a quantity, replicates and clients taken together."""
    table = table.loc[table["quantity"] == quantity]
    counts = table.groupby(["low", "high"])["count"].sum().reset_index()
    width = counts["high"] - counts["low"]
    total = max(int(counts["count"].sum()), 1)
    counts["density"] = counts["count"] / (width * total)
    return counts
