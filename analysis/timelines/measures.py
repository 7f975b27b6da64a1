"""Measures of recorded timelines: staleness, waiting, utilisation, throughput.

Takes the jobs (`frames.jobs`) and `incidents` of a timeline, and one row per run
(`run`, `group`, `virtual_s`, `commits`, `num_clients`: `frames.runs` has them; and
`start_s`: `with_starts`). Staleness is in commits, times in virtual seconds.

Measures with a closed form of the steady state leave out the start of a run, unless it
never ends; shares, counts and maxima are those of the whole run. Numbers are those of
single runs, then averaged over the replicates of a group; only a maximum is the largest
of all.
"""

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pandas as pd
from jaxtyping import Float

from ...simulator.timeline import PAIRS
from ..theory import gossip
from .start import end_of_start

QUANTILES = (0.5, 0.9, 0.99)
"""Quantiles of staleness, next to its mean and maximum."""
OF_CLIENTS = (0.1, 0.5, 0.9)
"""Quantiles over clients."""
ENDS = ("APPLIED", "REJECTED", "LOST", "CRASHED")
"""Outcomes of jobs that have ended."""


def contributions(jobs: pd.DataFrame) -> pd.DataFrame:
    """Returns the jobs that were applied, with their waiting times.

    Args:
        jobs: Jobs of some runs; refreshes do not count.

    Returns:
        The same columns, `waiting`, seconds from arrival to application, service
        included, and `queued`, seconds from the read to the beginning of computing: in
        the client's queue, if it has one, and of the download.
    """
    table = jobs.loc[(jobs["outcome"] == "APPLIED") & (jobs["kind"] == "work")]
    return table.assign(
        waiting=table["applied_time"] - table["arrived_time"],
        queued=table["begun_time"] - table["read_time"],
    )


def spectral_gap(rows: pd.DataFrame, num_workers: int) -> float:
    """Computes the gap of a run's mean averaging matrix; NaN without pairs.

    Args:
        rows: Rows of one run.
        num_workers: K.

    Returns:
        One minus the second largest eigenvalue, per averaging.
    """
    pairs = rows.loc[rows["kind"].isin(PAIRS) & (rows["place"] == 0)]
    if pairs.empty:
        return float("nan")
    ends = (pairs[name].to_numpy(np.int64) - 1 for name in ("node", "peer"))
    edges = list(zip(*(each.tolist() for each in ends), strict=True))
    matrix = gossip.expected_pairwise_averaging(num_workers, edges)
    return gossip.spectral_gap(matrix)


def with_starts(jobs: pd.DataFrame, runs: pd.DataFrame) -> pd.DataFrame:
    """Returns runs with `start_s`: the virtual seconds at which their starts are over.

    Args:
        jobs: Jobs of the runs.
        runs: Runs, one row each, with `in_flight`, jobs that can be so at once; where
            an earlier version has not said, as many as clients.

    Returns:
        The same columns and `start_s`, as in `start.end_of_start`.
    """
    most = runs["num_clients"]
    if "in_flight" in runs:
        most = runs["in_flight"].fillna(most)
    found = zip(_each(jobs, runs), most.astype(int), strict=True)
    return runs.assign(start_s=[end_of_start(mine, n) for (_, mine), n in found])


def by_run(jobs: pd.DataFrame, runs: pd.DataFrame) -> pd.DataFrame:
    """Measures each run.

    The mean number waiting at the server, arrivals that are being served among them,
    follows from the jobs by Little's law: the sum of their waiting times over the
    duration in which they were applied.

    Args:
        jobs: Jobs of the runs.
        runs: Runs, one row each.

    Returns:
        Columns run, group, start_s, commits_per_s, contributions_per_s,
        staleness_mean, staleness_50, staleness_90, staleness_99, staleness_max,
        applied, rejected, lost, crashed (shares of the jobs that ended), waiting_mean
        (s), queue_length, queued_mean (s), and those of `parallelism`.
    """
    rows = []
    for run, mine in _each(jobs, runs):
        work, done = mine.loc[mine["kind"] == "work"], contributions(mine)
        later = _after_start(done, run)
        made = 0 if later is done else done["commit"].drop(later.index).max()
        ends = work["outcome"].value_counts()
        ended = sum(int(ends.get(end, 0)) for end in ENDS)
        seconds = float(run.virtual_s) - _since(run) or np.nan
        row = {
            "run": run.run,
            "group": run.group,
            "start_s": run.start_s,
            "commits_per_s": (run.commits - made) / seconds,
            "contributions_per_s": len(later) / seconds,
            "staleness_mean": later["staleness"].mean(),
        }
        for part in QUANTILES:
            row[f"staleness_{100 * part:g}"] = later["staleness"].quantile(part)
        row["staleness_max"] = done["staleness"].max()
        for end in ENDS:
            row[end.lower()] = ends.get(end, 0) / ended if ended else np.nan
        row["waiting_mean"] = later["waiting"].mean()
        row["queue_length"] = later["waiting"].sum() / seconds
        row["queued_mean"] = later["queued"].mean()
        rows.append(row | parallelism(run))
    return pd.DataFrame(rows)


def parallelism(run: Any) -> dict[str, float]:
    """Returns how many of a run's jobs can be computed at once, NaN if not known.

    Args:
        run: Run with `jobs` and `waves`, as `simulator.waves.CriticalPath` counts them.

    Returns:
        jobs, waves (the length of the critical path, jobs), wave_width (jobs a wave).
    """
    told = (getattr(run, name, None) for name in ("jobs", "waves"))
    jobs, waves = (np.nan if number is None else float(number) for number in told)
    return {"jobs": jobs, "waves": waves, "wave_width": jobs / (waves or np.nan)}


def by_group(measured: pd.DataFrame) -> pd.DataFrame:
    """Averages measured runs over the replicates of each group, in their order.

    Args:
        measured: Table of `by_run`.

    Returns:
        The same columns without run, and with `replicates`.
    """
    return averaged(measured, ["group"]).assign(
        replicates=measured.groupby("group", sort=False).size().to_numpy()
    )


def by_client(
    jobs: pd.DataFrame, incidents: pd.DataFrame, runs: pd.DataFrame
) -> pd.DataFrame:
    """Measures each client, averaged over the replicates of its group.

    Utilisation is the part of the time after the start in which a client computes.

    Args:
        jobs: Jobs of the runs.
        incidents: Incidents of the runs.
        runs: Runs, one row each.

    Returns:
        Columns group, client (from 1), staleness_mean, staleness_max, utilisation,
        waiting_mean, queued_mean (s), uploads (messages, repeats included), incidents
        (count).
    """
    noted = dict(iter(incidents.groupby("run")))
    tables = []
    for run, mine in _each(jobs, runs):
        number, applied = int(run.num_clients), contributions(mine)
        done = _after_start(applied, run)
        largest = np.full(number, np.nan)
        client = applied["client"].to_numpy(np.int64) - 1
        np.fmax.at(largest, client, applied["staleness"].to_numpy(np.float64))
        uploads = _sums(mine, mine["upload_messages"], number)
        happened = noted.get(run.run, incidents.iloc[:0])
        with np.errstate(invalid="ignore"):
            count = _sums(done, np.ones(len(done)), number)
            columns = {
                "group": run.group,
                "client": np.arange(1, number + 1),
                "staleness_mean": _sums(done, done["staleness"], number) / count,
                "staleness_max": largest,
                "utilisation": _utilisation(mine, run, number),
                "waiting_mean": _sums(done, done["waiting"], number) / count,
                "queued_mean": _sums(done, done["queued"], number) / count,
                "uploads": uploads,
                "incidents": _sums(happened, np.ones(len(happened)), number),
            }
        tables.append(pd.DataFrame(columns))
    table = pd.concat(tables, ignore_index=True)
    several = runs["group"].duplicated().any()
    return averaged(table, ["group", "client"]) if several else table


def by_client_group(
    jobs: pd.DataFrame, runs: pd.DataFrame, group_of: Mapping[str, pd.Series]
) -> pd.DataFrame:
    """Measures the staleness of the groups into which a scenario divides its clients.

    Args:
        jobs: Jobs of the runs.
        runs: Runs, one row each.
        group_of: Names of the clients' groups by their numbers, for each group of runs;
            groups of runs without an entry are not divided.

    Returns:
        Columns group, clients (`all`, or the name of their group and how many it has),
        contributions (after the start), staleness_mean, the quantiles, staleness_max.
    """
    rows = []
    for run, mine in _each(jobs, runs):
        names = group_of.get(str(run.group))
        if names is None:
            continue
        applied = contributions(mine)
        part_of = applied["client"].map(names)
        sizes = names.value_counts()
        for part in (None, *dict.fromkeys(names)):
            whole = applied if part is None else applied.loc[part_of == part]
            ages = _after_start(whole, run)["staleness"]
            name = "all" if part is None else f"{part} ({sizes[part]})"
            row = {"run": run.run, "group": run.group, "clients": name}
            row |= {"contributions": len(ages), "staleness_mean": ages.mean()}
            for each in QUANTILES:
                row[f"staleness_{100 * each:g}"] = ages.quantile(each)
            rows.append(row | {"staleness_max": whole["staleness"].max()})
    if not rows:
        return pd.DataFrame(rows)
    return averaged(pd.DataFrame(rows), ["group", "clients"])


def by_part(clients: pd.DataFrame, parts: pd.Series) -> pd.DataFrame:
    """Summarises many clients by the groups that the scenario divides them into.

    Args:
        clients: Table of `by_client`, for one group of runs.
        parts: Name of each client's part, by its number; missing where there is none.

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


def histogram(jobs: pd.DataFrame, runs: pd.DataFrame) -> pd.DataFrame:
    """Returns how often each staleness occurred among contributions after the start.

    Args:
        jobs: Jobs of the runs.
        runs: Runs, one row each, that are taken together.

    Returns:
        Columns staleness, count, share; staleness ascending.
    """
    parts = [np.zeros(0)]
    for run, mine in _each(jobs, runs):
        done = _after_start(contributions(mine), run)
        parts.append(done["staleness"].to_numpy(np.float64))
    ages, counts = np.unique(np.concatenate(parts).astype(np.int64), return_counts=True)
    share = counts / max(int(counts.sum()), 1)
    return pd.DataFrame({"staleness": ages, "count": counts, "share": share})


def averaged(table: pd.DataFrame, keys: list[str]) -> pd.DataFrame:
    """Returns means over the runs of the same keys, and the largest of maxima."""
    names = [name for name in table.columns if name not in ("run", *keys)]
    how: dict[str, Any] = dict.fromkeys(names, "mean")
    how |= {name: "max" for name in names if name.endswith("_max")}
    found = table.groupby(keys, sort=False).agg(how)
    if "start_s" in found:  # of runs of which each is in its steady state
        over = table["start_s"].notna().groupby([table[key] for key in keys]).all()
        found["start_s"] = found["start_s"].where(over)
    return found.reset_index()


def _each(jobs: pd.DataFrame, runs: pd.DataFrame) -> Iterator[tuple[Any, pd.DataFrame]]:
    """Yields each run with its jobs."""
    places: Any = jobs.groupby("run").indices
    rows: Any = runs.itertuples()
    for run in rows:
        if len(places) == 1 and run.run in places:
            yield run, jobs
        else:
            yield run, jobs.take(places.get(run.run, np.zeros(0, np.int64)))


def _sums(table: pd.DataFrame, values: Any, number: int) -> Float[np.ndarray, " K"]:
    """Returns the sum of values over each client's rows."""
    client = table["client"].to_numpy(np.int64) - 1
    return np.bincount(client, np.asarray(values, np.float64), minlength=number)


def _since(run: Any) -> float:
    """Returns the virtual time from which a run is measured, seconds."""
    return 0.0 if np.isnan(run.start_s) else float(run.start_s)


def _after_start(contributions: pd.DataFrame, run: Any) -> pd.DataFrame:
    """Returns the contributions that were applied after the start, if it is over."""
    if np.isnan(run.start_s):
        return contributions
    return contributions.loc[contributions["applied_time"] > run.start_s]


def _utilisation(jobs: pd.DataFrame, run: Any, number: int) -> Float[np.ndarray, " K"]:
    """Returns the part of the time after the start in which each client computes."""
    since, end = _since(run), float(run.virtual_s)
    work = jobs.loc[jobs["kind"] == "work"]
    computed = work["computed_time"].to_numpy(np.float64)
    computing = (work["outcome"] == "IN_FLIGHT").to_numpy() & np.isnan(computed)
    until = np.minimum(np.where(computing, end, computed), end)
    started = np.maximum(work["begun_time"].to_numpy(np.float64), since)
    busy = np.maximum(np.nan_to_num(until - started), 0)
    return _sums(work, busy, number) / ((end - since) or np.nan)
