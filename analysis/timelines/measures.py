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
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from jaxtyping import Bool, Float, Int

from ...simulator.timeline import PAIRS
from ..theory import gossip
from .start import end_of_start

QUANTILES = (0.5, 0.9, 0.99)
"""Quantiles of staleness, next to its mean and maximum."""
OF_CLIENTS = (0.1, 0.5, 0.9)
"""Quantiles over clients."""
ENDS = ("APPLIED", "REJECTED", "LOST", "CRASHED", "STOPPED")
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
    found, places = [], _places(jobs)
    for run, number in zip(runs["run"], most.astype(int), strict=True):
        mine = places.get(run, [])
        found.append(
            end_of_start(jobs if len(mine) == len(jobs) else jobs.take(mine), number)
        )
    return runs.assign(start_s=found)


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
        applied, rejected, lost, crashed, stopped (shares of the jobs that ended),
        waiting_mean (s), queue_length, queued_mean (s), and those of `parallelism`.
    """
    rows = []
    for run, mine in _each(jobs, runs):
        work, done = mine.where(mine["work"]), mine.where(mine["contributed"])
        later, made = _after_start(done, run), 0
        if later is not done:
            early = ~(done["applied_time"] > run.start_s)
            made = int(done["commit"][early].max(initial=0))
        ends = {end: int(np.count_nonzero(work[end])) for end in ENDS}
        ended = sum(ends.values())
        seconds = float(run.virtual_s) - _since(run) or np.nan
        waiting = pd.Series(later["waiting"])
        row = {
            "run": run.run,
            "group": run.group,
            "start_s": run.start_s,
            "commits_per_s": (run.commits - made) / seconds,
            "contributions_per_s": later.size / seconds,
            **_ages(later, done),
        }
        for end, number in ends.items():
            row[end.lower()] = number / ended if ended else np.nan
        row["waiting_mean"] = waiting.mean()
        row["queue_length"] = waiting.sum() / seconds
        row["queued_mean"] = pd.Series(later["queued"]).mean()
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
        number, applied = int(run.num_clients), mine.where(mine["contributed"])
        done = _after_start(applied, run)
        largest = np.full(number, np.nan)
        np.fmax.at(largest, applied["client"] - 1, applied["staleness"])
        uploads = _sums(mine, mine["upload_messages"], number)
        happened = noted.get(run.run, incidents.iloc[:0]).dropna(subset=["client"])
        with np.errstate(invalid="ignore"):
            count = _sums(done, np.ones(done.size), number)
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


def starts(
    jobs: pd.DataFrame, incidents: pd.DataFrame, runs: pd.DataFrame
) -> pd.DataFrame:
    """Counts the jobs that started in each run, and the starts that were missed.

    Args:
        jobs: Jobs of the runs.
        incidents: Incidents of the runs.
        runs: Runs, one row each.

    Returns:
        Columns run, group, started, missed (`Incident.MISSED`).
    """
    own = jobs.loc[jobs["kind"] == "work", "run"].value_counts()
    lost = incidents.loc[incidents["incident"] == "MISSED", "run"].value_counts()
    counts = {"started": own, "missed": lost}
    columns = {name: runs["run"].map(n).fillna(0) for name, n in counts.items()}
    return runs[["run", "group"]].assign(**columns)


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
        applied = mine.where(mine["contributed"])
        for part in (None, *dict.fromkeys(names)):
            whole, name = applied, "all"
            if part is not None:
                those = names.index[names == part]
                whole = applied.where(np.isin(applied["client"], those))
                name = f"{part} ({len(those)})"
            later = _after_start(whole, run)
            row = {"run": run.run, "group": run.group, "clients": name}
            rows.append(row | {"contributions": later.size} | _ages(later, whole))
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
        done = _after_start(mine.where(mine["contributed"]), run)
        parts.append(done["staleness"])
    every = np.bincount(np.concatenate(parts).astype(np.int64))
    ages = np.flatnonzero(every)
    counts = every[ages]
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


class _Columns(dict[str, np.ndarray]):
    """Columns of jobs as arrays, each made when it is first asked for.

    An outcome stands for the jobs that ended so, `work` for those that are no
    refreshes, `contributed` for those of them that were applied; `waiting` and `queued`
    are those of `contributions`.
    """

    def __init__(self, jobs: pd.DataFrame) -> None:
        self._jobs = jobs

    def __missing__(self, name: str) -> np.ndarray:
        if name == "work":
            found = (self._jobs["kind"] == name).to_numpy()
        elif name == "contributed":
            found = self["work"] & self["APPLIED"]
        elif name.isupper():
            found = (self._jobs["outcome"] == name).to_numpy()
        elif name == "waiting":
            found = self["applied_time"] - self["arrived_time"]
        elif name == "queued":
            found = self["begun_time"] - self["read_time"]
        else:
            whole = name in ("client", "commit")
            kind, none = (np.int64, 0) if whole else (np.float64, np.nan)
            found = self._jobs[name].to_numpy(kind, na_value=none)
        self[name] = found
        return found


class _Jobs(NamedTuple):
    """Some jobs of one run.

    Attributes:
        columns: Columns of the jobs of all runs.
        rows: Which of them these are.
    """

    columns: _Columns
    rows: Int[np.ndarray, " n"]

    def __getitem__(self, name: str) -> np.ndarray:  # pyright: ignore
        return self.columns[name][self.rows]

    @property
    def size(self) -> int:
        """Number of the jobs."""
        return self.rows.size

    def where(self, kept: Bool[np.ndarray, " n"]) -> "_Jobs":
        """Returns some of the jobs."""
        return self._replace(rows=self.rows[kept])


def _each(jobs: pd.DataFrame, runs: pd.DataFrame) -> Iterator[tuple[Any, _Jobs]]:
    """Yields each run with its jobs."""
    columns, places = _Columns(jobs), _places(jobs)
    rows: Any = runs.itertuples()
    for run in rows:
        yield run, _Jobs(columns, places.get(run.run, np.zeros(0, np.int64)))


def _places(jobs: pd.DataFrame) -> Any:
    """Returns the places of each run's jobs."""
    return jobs.groupby("run").indices


def _ages(later: _Jobs, whole: _Jobs) -> dict[str, float]:
    """Returns mean and quantiles of staleness after the start, and the largest of all.

    NaN where there are no contributions.
    """
    ages = later["staleness"]
    found = {"staleness_mean": pd.Series(ages).mean()}
    at = [100 * part for part in QUANTILES]
    values = np.percentile(ages, at) if ages.size else [np.nan] * len(at)
    found |= {f"staleness_{q:g}": v for q, v in zip(at, values, strict=True)}
    return found | {"staleness_max": pd.Series(whole["staleness"]).max()}


def _sums(table: Any, values: Any, number: int) -> Float[np.ndarray, " K"]:
    """Returns the sum of values over each client's rows."""
    client = np.asarray(table["client"], np.int64) - 1
    return np.bincount(client, np.asarray(values, np.float64), minlength=number)


def _since(run: Any) -> float:
    """Returns the virtual time from which a run is measured, seconds."""
    return 0.0 if np.isnan(run.start_s) else float(run.start_s)


def _after_start(contributions: _Jobs, run: Any) -> _Jobs:
    """Returns the contributions that were applied after the start, if it is over."""
    if np.isnan(run.start_s):
        return contributions
    return contributions.where(contributions["applied_time"] > run.start_s)


def _utilisation(jobs: _Jobs, run: Any, number: int) -> Float[np.ndarray, " K"]:
    """Returns the part of the time after the start in which each client computes."""
    since, end = _since(run), float(run.virtual_s)
    work = jobs.where(jobs["work"])
    computed = work["computed_time"]
    computing = work["IN_FLIGHT"] & np.isnan(computed)
    until = np.minimum(np.where(computing, end, computed), end)
    started = np.maximum(work["begun_time"], since)
    busy = np.maximum(np.nan_to_num(until - started), 0)
    return _sums(work, busy, number) / ((end - since) or np.nan)
