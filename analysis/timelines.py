"""What happened in recorded timelines: staleness, waiting, utilisation, throughput.

Takes the jobs (`frames.jobs`) and `incidents` of a timeline, and one row per run
(`run`, `group`, `virtual_s`, `commits`, `num_clients`: `frames.runs` has them).
Staleness is in commits, times in virtual seconds. Numbers are those of single runs,
then averaged over the replicates of a group; only a maximum is the largest of all.
"""

import numpy as np
import pandas as pd

from analysis import theory_gossip

QUANTILES = (0.5, 0.9, 0.99)
"""Of staleness, beside mean and maximum."""
OF_CLIENTS = (0.1, 0.5, 0.9)
"""Quantiles over clients."""
ENDS = ("APPLIED", "REJECTED", "LOST", "CRASHED")
"""What becomes of a job that ends."""


def contributions(jobs: pd.DataFrame) -> pd.DataFrame:
    """Returns the jobs that were applied, with their waiting time.

    Args:
        jobs: of any runs; refreshes do not count.

    Returns:
        The same columns and `waiting`, seconds from arrival to application, service
        included.
    """
    table = jobs.loc[(jobs["outcome"] == "APPLIED") & (jobs["kind"] == "work")]
    return table.assign(waiting=table["applied_time"] - table["arrived_time"])


def spectral_gap(rows: pd.DataFrame, num_workers: int) -> float:
    """Computes the gap of a run's mean averaging matrix; NaN without pairs.

    Args:
        rows: of one run.
        num_workers: K.

    Returns:
        One minus the second largest eigenvalue, per averaging.
    """
    pairs = rows.loc[(rows["kind"] == "AVERAGE") & (rows["place"] == 0)]
    if pairs.empty:
        return float("nan")
    ends = (pairs[name].to_numpy(np.int64) - 1 for name in ("node", "peer"))
    edges = list(zip(*(each.tolist() for each in ends), strict=True))
    matrix = theory_gossip.expected_pairwise_averaging(num_workers, edges)
    return theory_gossip.spectral_gap(matrix)


def by_run(jobs: pd.DataFrame, runs: pd.DataFrame) -> pd.DataFrame:
    """Measures each run.

    The mean number waiting at the server, arrivals that are being served among them,
    follows from the jobs by Little's law: the sum of their waiting times over the
    duration of the run.

    Args:
        jobs: of the runs.
        runs: one row each.

    Returns:
        Columns run, group, updates_per_s (commits), contributions_per_s,
        staleness_mean, staleness_50, staleness_90, staleness_99, staleness_max,
        applied, rejected, lost, crashed (shares of the jobs that ended), waiting_mean
        (s), queue_length.
    """
    done = contributions(jobs)
    work = jobs.loc[jobs["kind"] == "work"]
    rows = []
    for run in runs.itertuples():
        mine = done.loc[done["run"] == run.run]
        ends = work.loc[work["run"] == run.run, "outcome"].value_counts()
        ended = sum(int(ends.get(end, 0)) for end in ENDS)
        seconds = float(run.virtual_s) or np.nan  # pyright: ignore
        row = {
            "run": run.run,
            "group": run.group,
            "updates_per_s": run.commits / seconds,  # pyright: ignore
            "contributions_per_s": len(mine) / seconds,
            "staleness_mean": mine["staleness"].mean(),
        }
        for part in QUANTILES:
            row[f"staleness_{100 * part:g}"] = mine["staleness"].quantile(part)
        row["staleness_max"] = mine["staleness"].max()
        for end in ENDS:
            row[end.lower()] = ends.get(end, 0) / ended if ended else np.nan
        row["waiting_mean"] = mine["waiting"].mean()
        row["queue_length"] = mine["waiting"].sum() / seconds
        rows.append(row)
    return pd.DataFrame(rows)


def by_group(measured: pd.DataFrame) -> pd.DataFrame:
    """Averages measured runs over the replicates of each group, in their order.

    Args:
        measured: as of `by_run`.

    Returns:
        The same columns without run, and with `replicates`.
    """
    return _pooled(measured, ["group"]).assign(
        replicates=measured.groupby("group", sort=False).size().to_numpy()
    )


def by_client(
    jobs: pd.DataFrame, incidents: pd.DataFrame, runs: pd.DataFrame
) -> pd.DataFrame:
    """Measures each client, averaged over the replicates of its group.

    Utilisation is the time from reads to the ends of computing over the run's duration;
    the record does not tell downloads from computing, and jobs under way at the end of
    a run do not count.

    Args:
        jobs: of the runs.
        incidents: of the runs.
        runs: one row each.

    Returns:
        Columns group, client (from 1), staleness_mean, staleness_max, utilisation,
        waiting_mean (s), uploads (messages, repeats included), incidents (count).
    """
    runs = runs[["run", "group", "virtual_s", "num_clients"]]
    keys = ["run", "client"]
    done = contributions(jobs).groupby(keys)
    busy = (jobs["computed_time"] - jobs["read_time"]).where(jobs["kind"] == "work")
    sums = jobs.assign(busy=busy).groupby(keys)[["busy", "upload_messages"]].sum()
    everyone = pd.MultiIndex.from_tuples(
        [
            (run, client)
            for run, count in zip(runs["run"], runs["num_clients"], strict=True)
            for client in range(1, int(count) + 1)
        ],
        names=keys,
    )
    noted = incidents.groupby(keys).size()
    table = pd.DataFrame(
        {
            "staleness_mean": done["staleness"].mean(),
            "staleness_max": done["staleness"].max(),
            "utilisation": sums["busy"],
            "waiting_mean": done["waiting"].mean(),
            "uploads": sums["upload_messages"],
            "incidents": noted,
        },
        index=everyone,
    ).reset_index()
    table = table.merge(runs[["run", "group", "virtual_s"]], on="run")
    counts = ["utilisation", "uploads", "incidents"]
    table[counts] = table[counts].fillna(0)
    table["utilisation"] /= table.pop("virtual_s")
    return _pooled(table, ["group", "client"])


def by_part(clients: pd.DataFrame, parts: pd.Series) -> pd.DataFrame:
    """Summarises many clients by the groups that the scenario divides them into.

    Args:
        clients: of one group of runs, as of `by_client`.
        parts: name of each client's part, by its number; missing where there is none.

    Returns:
        Columns clients (name of the part), number, measure, mean, min, 10 %, 50 %,
        90 %, max over its clients.
    """
    names = [name for name in clients.columns if name not in ("group", "client")]
    part_of = clients["client"].map(parts).fillna("all")
    rows = []
    for part in dict.fromkeys(part_of):
        mine = clients.loc[part_of == part]
        for name in names:
            values = mine[name]
            row = {"clients": part, "number": len(mine), "measure": name}
            row |= {"mean": values.mean(), "min": values.min()}
            row |= {f"{100 * q:g} %": values.quantile(q) for q in OF_CLIENTS}
            rows.append(row | {"max": values.max()})
    return pd.DataFrame(rows)


def histogram(jobs: pd.DataFrame) -> pd.DataFrame:
    """Returns how often each staleness occurred among contributions.

    Args:
        jobs: of the runs that are taken together.

    Returns:
        Columns staleness, count, share; staleness ascending.
    """
    counts = contributions(jobs)["staleness"].value_counts().sort_index()
    return pd.DataFrame(
        {
            "staleness": counts.index.to_numpy(),
            "count": counts.to_numpy(),
            "share": counts.to_numpy() / max(int(counts.sum()), 1),
        }
    )


def _pooled(table: pd.DataFrame, keys: list[str]) -> pd.DataFrame:
    """Returns means over runs, and the largest of maxima."""
    names = [name for name in table.columns if name not in ("run", *keys)]
    how = {name: "max" if name.endswith("_max") else "mean" for name in names}
    return table.groupby(keys, sort=False).agg(how).reset_index()
