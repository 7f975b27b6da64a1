"""Measures of timelines of which statistics alone were kept (`record: summary`).

They are those of `measures`, which takes them from a whole record; what they need is
counted while a timeline goes (`simulator.timelines.summary`). Staleness is in commits,
times in virtual seconds.
"""

from typing import Any

import numpy as np
import pandas as pd
from jaxtyping import Float, Int

from .. import frames
from ..frames import Study
from .measures import ENDS, QUANTILES, averaged, parallelism

OF_CLIENTS = {
    "steady_staleness_mean": "staleness_mean",
    "staleness_max": "staleness_max",
    "utilisation": "utilisation",
    "steady_waiting_mean": "waiting_mean",
    "steady_queued_mean": "queued_mean",
    "uploads": "uploads",
    "incidents": "incidents",
}
"""Columns of the table `clients`, and what `measures.by_client` calls them."""


def runs_of(study: Study) -> pd.DataFrame:
    """Returns the runs that have ended, with the ends of their starts.

    Raises:
        StudyError: No run has ended.
    """
    known = frames.runs(study)
    return known.assign(start_s=[_number(one["start_s"]) for one in known["summary"]])


def by_run(study: Study, runs: pd.DataFrame) -> pd.DataFrame:
    """Returns the columns of `measures.by_run`, one row per run."""
    ages, rows = study.table("ages"), []
    each: Any = runs.itertuples()
    for run in each:
        told, mine = run.summary, ages.loc[ages["run"] == run.run]
        since = 0.0 if np.isnan(run.start_s) else float(run.start_s)
        seconds = float(run.virtual_s) - since or np.nan
        ended = sum(told["outcomes"].get(end, 0) for end in ENDS)
        row = {"run": run.run, "group": run.group, "start_s": run.start_s}
        row["commits_per_s"] = (run.commits - told["start_commits"]) / seconds
        staleness, later = _of_staleness(mine)
        row |= {"contributions_per_s": later / seconds} | staleness
        for end in ENDS:
            row[end.lower()] = told["outcomes"].get(end, 0) / (ended or np.nan)
        row["waiting_mean"] = told["waiting_s"] / (later or np.nan)
        row["queue_length"] = told["waiting_s"] / seconds
        row["queued_mean"] = told.get("queued_s", np.nan) / (later or np.nan)
        rows.append(row | parallelism(run))
    return pd.DataFrame(rows)


def by_client(study: Study, runs: pd.DataFrame) -> pd.DataFrame:
    """Returns the columns of `measures.by_client`, means over replicates."""
    table = study.table("clients")
    table = table.merge(runs[["run", "group"]], on="run", validate="many_to_one")
    table["staleness_max"] = table["staleness_max"].where(table["num_applied"] > 0)
    kept = table[["group", "client", *OF_CLIENTS]].rename(columns=OF_CLIENTS)
    several = runs["group"].duplicated().any()
    return averaged(kept, ["group", "client"]) if several else kept


def starts(runs: pd.DataFrame) -> pd.DataFrame:
    """Returns the columns of `measures.starts`."""
    started = [sum(told["outcomes"].values()) for told in runs["summary"]]
    missed = [told.get("missed", 0) for told in runs["summary"]]
    return runs[["run", "group"]].assign(started=started, missed=missed)


def by_client_group(
    study: Study, runs: pd.DataFrame, sizes: dict[str, "pd.Series[int]"]
) -> pd.DataFrame:
    """Returns the columns of `measures.by_client_group`.

    Args:
        study: Summary of timelines.
        runs: Runs, one row each.
        sizes: Numbers of clients of each of their groups, by group of runs.
    """
    ages, rows = study.table("ages"), []
    each: Any = runs.itertuples()
    for run in each:
        if run.group not in sizes:
            continue
        mine = ages.loc[ages["run"] == run.run]
        for part in (None, *sizes[run.group].index):
            own = mine if part is None else mine.loc[mine["client_group"] == part]
            name = "all" if part is None else f"{part} ({sizes[run.group][part]})"
            staleness, later = _of_staleness(own)
            row = {"run": run.run, "group": run.group, "clients": name}
            rows.append(row | {"contributions": later} | staleness)
    return averaged(pd.DataFrame(rows), ["group", "clients"])


def histogram(study: Study, runs: pd.DataFrame) -> pd.DataFrame:
    """Returns the columns of `measures.histogram`, of runs taken together."""
    ages = study.table("ages")
    later = ages.loc[~ages["start"] & ages["run"].isin(runs["run"])]
    found = later.groupby("staleness")["count"].sum().reset_index()
    return found.assign(share=found["count"] / max(int(found["count"].sum()), 1))


def _of_staleness(ages: pd.DataFrame) -> tuple[dict[str, float], int]:
    """Returns mean, quantiles and maximum, and how many followed the start."""
    later = ages.loc[~ages["start"]].groupby("staleness")["count"].sum()
    staleness, count = later.index.to_numpy(), later.to_numpy()
    total = int(count.sum())
    found = {"staleness_mean": float(staleness @ count) / (total or np.nan)}
    for part in QUANTILES:
        found[f"staleness_{100 * part:g}"] = _quantile(staleness, count, part)
    found["staleness_max"] = ages["staleness"].max() if len(ages) else np.nan
    return found, total


def _quantile(
    values: Int[np.ndarray, " n"], counts: Int[np.ndarray, " n"], part: float
) -> float:
    """Returns a quantile of values that occur repeatedly, as Series.quantile does."""
    if not values.size:
        return float("nan")
    upto = np.cumsum(counts)
    place = part * (upto[-1] - 1)
    low, high = np.searchsorted(upto, [np.floor(place), np.ceil(place)], side="right")
    at: Float[np.ndarray, " 2"] = values[[low, high]].astype(np.float64)
    return float(at[0] + (at[1] - at[0]) * (place - np.floor(place)))


def _number(value: float | None) -> float:
    return float("nan") if value is None else value
