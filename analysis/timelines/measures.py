"""Measures of recorded timelines: staleness, waiting, utilisation, throughput.

Runs are counted by `tally`, from the jobs (`frames.jobs`) and `incidents` of a whole
record, or by `tally_of_summary` where a timeline kept statistics alone. Measures are
taken from their three frames:

- `runs`: row per run, the columns of `frames.runs`; `start_s`, virtual seconds at which
  its start is over, NaN if it never is; `made`, commits by then; `first_s` and
  `last_s`, times of the last of these commits (0 if none) and of the run; `waiting_s`
  and `queued_s` of the contributions after it, and of how many of them they are known,
  `waits` and `queues`; `missed` starts of jobs; and how many jobs had each outcome, in
  a column of its name.
- `ages`: how often contributions were so stale: columns run, `start` (whether it was in
  the start), staleness, count and, where clients are divided into groups,
  `client_group`.
- `clients`: row per run and client (from 1): staleness_mean, staleness_max,
  utilisation, waiting_mean, queued_mean (s), uploads (messages, repeats included),
  incidents (count).

Staleness is in commits, times are virtual seconds.

Measures with a closed form of the steady state leave out the start of a run, unless it
never ends; shares, counts and maxima are those of the whole run. Numbers are those of
single runs, then averaged over the replicates of a group; only a maximum is the largest
of all.
"""

from collections.abc import Mapping

import numpy as np
import pandas as pd
from jaxtyping import Float, Int, Num

from ...simulator.files.timeline import PAIRS, Outcome
from .. import frames
from ..clients import GROUP
from ..frames import Study
from ..theory import gossip
from .start import end_of_start

QUANTILES = (0.5, 0.9, 0.99)
"""Quantiles of staleness, next to its mean and maximum."""
OVER_CLIENTS = (0.1, 0.5, 0.9)
"""Quantiles over clients."""
ENDS = ("APPLIED", "REJECTED", "LOST", "CRASHED", "STOPPED")
"""Outcomes of jobs that have ended."""
OF_CLIENTS = {
    "steady_staleness_mean": "staleness_mean",
    "staleness_max": "staleness_max",
    "utilisation": "utilisation",
    "steady_waiting_mean": "waiting_mean",
    "steady_queued_mean": "queued_mean",
    "uploads": "uploads",
    "incidents": "incidents",
}
"""Columns of the table `clients` of a summary, and their names here."""
TIMES = ("read_time", "begun_time", "computed_time", "arrived_time", "applied_time")
NO_ROWS = np.zeros(0, np.int64)


Counts = tuple[pd.DataFrame, pd.DataFrame, pd.DataFrame]
"""Runs, ages and clients."""
Columns = dict[str, np.ndarray]
"""Columns of jobs."""


def tally(
    jobs: pd.DataFrame,
    incidents: pd.DataFrame,
    runs: pd.DataFrame,
    group_of: Mapping[str, pd.Series] | None = None,
) -> Counts:
    """Counts the jobs of a whole record."""
    places, noted = jobs.groupby("run").indices, dict(iter(incidents.groupby("run")))
    columns = _columns(jobs)
    counts, ages, clients = [], [], []
    of_runs = ("run", "group", "num_clients", "start_s", "virtual_s")
    for run, group, number, start_s, end_s in zip(
        *(runs[name] for name in of_runs), strict=True
    ):
        mine = _some(columns, np.asarray(places.get(run, NO_ROWS)))
        happened = noted.get(run, incidents.iloc[:0])
        applied = _some(mine, mine["work"] & (mine["outcome"] == Outcome.APPLIED))
        # Where the start never is over, all is later.
        early = applied["applied_time"] <= start_s
        later = _some(applied, ~early)
        outcomes = np.bincount(mine["outcome"][mine["work"]], minlength=len(Outcome))
        known = {k: later[k][~np.isnan(later[k])] for k in ("waiting", "queued")}
        counts.append(
            dict(zip(Outcome.__members__, outcomes.tolist(), strict=True))
            | {
                "made": int(applied["commit"][early].max(initial=0)),
                "first_s": applied["applied_time"][early].max(initial=0),
                "last_s": applied["applied_time"].max(initial=0),
                "missed": int((happened["incident"] == "MISSED").sum()),
                "waiting_s": known["waiting"].sum(),
                "waits": known["waiting"].size,
                "queued_s": known["queued"].sum(),
                "queues": known["queued"].size,
            }
        )
        names = (group_of or {}).get(str(group))
        ages.append(_ages_of(applied, early, names).assign(run=run))
        since = 0.0 if np.isnan(start_s) else float(start_s)
        found = _clients_of(
            mine, applied, later, happened, int(number), (since, float(end_s))
        )
        clients.append(found.assign(run=run))
    found = pd.DataFrame(counts, index=runs.index)
    return (
        pd.concat([runs, found], axis=1),
        pd.concat(ages, ignore_index=True),
        pd.concat(clients, ignore_index=True),
    )


def tally_of_summary(study: Study) -> Counts:
    """Returns the counts of a timeline of which only statistics were kept.

    Raises:
        StudyError: No run has ended.
    """
    known, table = frames.runs(study), study.table("clients")
    counted = table.groupby("run")["steady_contributions"].sum()
    rows = []
    for run, told in zip(known["run"], known["summary"], strict=True):
        number = int(counted.get(run, 0))
        outcomes = {name: told["outcomes"].get(name, 0) for name in Outcome.__members__}
        start_s = np.nan if told["start_s"] is None else told["start_s"]
        row = {"start_s": start_s, "made": told["start_commits"]}
        row["first_s"] = told.get("first_s", told["start_s"] or 0.0)
        row["last_s"] = told.get("last_s", np.nan)  # not known of earlier versions
        row |= {"waiting_s": told["waiting_s"], "waits": number}
        row |= {"queued_s": told.get("queued_s", np.nan), "queues": number}
        rows.append(outcomes | row | {"missed": told.get("missed", 0)})
    runs = pd.concat([known, pd.DataFrame(rows, index=known.index)], axis=1)
    applied = table["num_applied"] > 0
    clients = table.assign(staleness_max=table["staleness_max"].where(applied))
    clients = clients[["run", "client", *OF_CLIENTS]].rename(columns=OF_CLIENTS)
    return runs, study.table("ages"), clients


def by_run(runs: pd.DataFrame, ages: pd.DataFrame) -> pd.DataFrame:
    """Measures each run.

    Rates are from commit to commit: from the last one of the start, or from time 0, to
    the last one of the run. What is left of the run then has no end that is known.

    The mean number waiting at the server, arrivals that are being served among them,
    follows by Little's law: the sum of waiting times over the duration in which jobs
    were applied.

    Returns:
        Columns run, group, start_s, commits_per_s, contributions_per_s,
        staleness_mean, staleness_50, staleness_90, staleness_99, staleness_max,
        applied, rejected, lost, crashed, stopped (shares of the jobs that ended),
        waiting_mean (s), queue_length, queued_mean (s); jobs, waves (the length of the
        critical path, jobs) and wave_width (jobs a wave, which can be computed at
        once), NaN if not known.
    """
    rows, of_run = [], dict(iter(ages.groupby("run")))
    for run in runs.to_dict("records"):
        since = 0.0 if np.isnan(run["start_s"]) else float(run["start_s"])
        seconds = float(run["virtual_s"]) - since or np.nan
        staleness, later = _staleness(of_run.get(run["run"], ages.iloc[:0]))
        row = {name: run[name] for name in ("run", "group", "start_s")}
        between = run["last_s"] - run["first_s"] or np.nan
        row["commits_per_s"] = (run["commits"] - run["made"]) / between
        row |= {"contributions_per_s": later / between} | staleness
        ended = sum(run[end] for end in ENDS) or np.nan
        row |= {end.lower(): run[end] / ended for end in ENDS}
        row["waiting_mean"] = run["waiting_s"] / (run["waits"] or np.nan)
        row["queue_length"] = run["waiting_s"] / seconds
        row["queued_mean"] = run["queued_s"] / (run["queues"] or np.nan)
        jobs, waves = (
            np.nan if run.get(name) is None else float(run[name])
            for name in ("jobs", "waves")
        )
        row |= {"jobs": jobs, "waves": waves, "wave_width": jobs / (waves or np.nan)}
        rows.append(row)
    return pd.DataFrame(rows)


def by_group(measured: pd.DataFrame) -> pd.DataFrame:
    """Averages measured runs over the replicates of each group, in their order.

    Returns:
        The same columns without run, and with `replicates`.
    """
    return averaged(measured, ["group"]).assign(
        replicates=measured.groupby("group", sort=False).size().to_numpy()
    )


def by_client(runs: pd.DataFrame, clients: pd.DataFrame) -> pd.DataFrame:
    """Returns the measures of each client, averaged over the replicates of its group.

    Utilisation is the part of the time after the start in which a client computes.

    Returns:
        Column group, and those of `clients` but the run.
    """
    groups = runs[["run", "group"]]
    table = groups.merge(clients, on="run", validate="one_to_many")
    if groups["group"].duplicated().any():
        return averaged(table, ["group", "client"])
    return table.drop(columns="run")


def starts(runs: pd.DataFrame) -> pd.DataFrame:
    """Counts the jobs that started in each run, and the starts that were missed.

    Returns:
        Columns run, group, started, missed (`Incident.MISSED`).
    """
    started = runs[[*Outcome.__members__]].sum(axis=1)
    return runs[["run", "group", "missed"]].assign(started=started)


def by_client_group(
    runs: pd.DataFrame, ages: pd.DataFrame, group_of: Mapping[str, pd.Series]
) -> pd.DataFrame:
    """Measures the staleness of the groups into which a scenario divides its clients.

    Returns:
        Columns group, clients (`all`, or the name of their group and how many it has),
        contributions (after the start), staleness_mean, the quantiles, staleness_max.
    """
    rows, of_run = [], dict(iter(ages.groupby("run")))
    for run, group in zip(runs["run"], runs["group"], strict=True):
        if group not in group_of:
            continue
        mine = of_run.get(run, ages.iloc[:0])
        parts = {"all": mine}
        for part, size in group_of[group].value_counts(sort=False).items():
            parts[f"{part} ({size})"] = mine.loc[mine[GROUP] == part]
        for name, own in parts.items():
            staleness, later = _staleness(own)
            row = {"run": run, "group": group, "clients": name}
            rows.append(row | {"contributions": later} | staleness)
    found = pd.DataFrame(rows)
    return averaged(found, ["group", "clients"]) if rows else found


def by_part(clients: pd.DataFrame, parts: pd.Series) -> pd.DataFrame:
    """Summarises many clients by the groups that the scenario divides them into.

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
            row |= {f"{100 * q:g} %": values.quantile(q) for q in OVER_CLIENTS}
            rows.append(row | {"max": values.max()})
    return pd.DataFrame(rows)


def histogram(ages: pd.DataFrame) -> pd.DataFrame:
    """Returns the histogram of staleness among contributions after the start.

    Returns:
        Columns staleness, count, share; staleness ascending.
    """
    later = ages.loc[~ages["start"]]
    found = later.groupby("staleness")["count"].sum().reset_index()
    return found.assign(share=found["count"] / max(int(found["count"].sum()), 1))


def averaged(table: pd.DataFrame, keys: list[str]) -> pd.DataFrame:
    """Returns means over the runs of the same keys, and the largest of maxima."""
    names = [name for name in table.columns if name not in ("run", *keys)]
    how = dict.fromkeys(names, "mean")
    how |= {name: "max" for name in names if name.endswith("_max")}
    found = table.groupby(keys, sort=False).agg(how)
    if "start_s" in found:  # of runs of which each is in its steady state
        over = table["start_s"].notna().groupby([table[key] for key in keys]).all()
        found["start_s"] = found["start_s"].where(over)
    return found.reset_index()


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
        runs: Runs, one row each, with `in_flight`, jobs that can be so at once; for
            studies of earlier versions, the number of clients.

    Returns:
        The same columns and `start_s`, as in `start.end_of_start`.
    """
    most = runs["num_clients"]
    if "in_flight" in runs:
        most = runs["in_flight"].fillna(most)
    ends: list[float] = []
    places = jobs.groupby("run").indices
    for run, number in zip(runs["run"], most.astype(int), strict=True):
        rows = np.asarray(places.get(run, NO_ROWS))
        mine = jobs if len(rows) == len(jobs) else jobs.take(rows)
        ends.append(end_of_start(mine, number))
    return runs.assign(start_s=ends)


def _columns(jobs: pd.DataFrame) -> Columns:
    found: Columns = {
        name: jobs[name].to_numpy(np.float64, na_value=np.nan)
        for name in (*TIMES, "staleness", "upload_messages")
    }
    for name in ("client", "commit"):
        found[name] = jobs[name].to_numpy(np.int64, na_value=0)
    outcome = jobs["outcome"].astype(pd.CategoricalDtype([*Outcome.__members__]))
    return found | {
        "work": (jobs["kind"] == "work").to_numpy(),
        "outcome": outcome.cat.codes.to_numpy(),
        "waiting": found["applied_time"] - found["arrived_time"],
        "queued": found["begun_time"] - found["read_time"],
    }


def _some(jobs: Columns, kept: np.ndarray) -> Columns:
    return {name: values[kept] for name, values in jobs.items()}


def _ages_of(
    applied: Columns, early: np.ndarray, names: pd.Series | None
) -> pd.DataFrame:
    """Returns how often contributions of a run were so stale, in its start and after.

    `names` are those of the clients' groups, by the clients' numbers.
    """
    table = pd.DataFrame(
        {"start": early, "staleness": applied["staleness"].astype(np.int64)}
    )
    keys = ["start", "staleness"]
    if names is not None:
        table[GROUP] = names.reindex(applied["client"]).to_numpy()
        keys.append(GROUP)
    return table.groupby(keys).size().rename("count").reset_index()


def _clients_of(
    jobs: Columns,
    applied: Columns,
    later: Columns,
    happened: pd.DataFrame,
    number: int,
    span: tuple[float, float],
) -> pd.DataFrame:
    def sums(
        clients: Int[np.ndarray, " n"], values: Num[np.ndarray, " n"] | None = None
    ) -> Float[np.ndarray, " K"]:
        return np.bincount(clients - 1, values, number)

    def mean(name: str) -> Float[np.ndarray, " K"]:
        with np.errstate(invalid="ignore"):
            return sums(later["client"], later[name]) / sums(later["client"])

    work, (since, end) = _some(jobs, jobs["work"]), span
    busy = sums(work["client"], _busy(work, since, end))
    largest = np.full(number, np.nan)
    np.fmax.at(largest, applied["client"] - 1, applied["staleness"])
    return pd.DataFrame(
        {
            "client": np.arange(1, number + 1),
            "staleness_mean": mean("staleness"),
            "staleness_max": largest,
            "utilisation": busy / ((end - since) or np.nan),
            "waiting_mean": mean("waiting"),
            "queued_mean": mean("queued"),
            "uploads": sums(jobs["client"], jobs["upload_messages"]),
            "incidents": sums(happened["client"].dropna().to_numpy(np.int64)),
        }
    )


def _busy(work: Columns, since: float, end: float) -> Float[np.ndarray, " n"]:
    computed = work["computed_time"]
    computing = (work["outcome"] == Outcome.IN_FLIGHT) & np.isnan(computed)
    until = np.minimum(np.where(computing, end, computed), end)
    return np.maximum(np.nan_to_num(until - np.maximum(work["begun_time"], since)), 0)


def _staleness(ages: pd.DataFrame) -> tuple[dict[str, float], int]:
    counts = ages.loc[~ages["start"]].groupby("staleness")["count"].sum()
    values, count = counts.index.to_numpy(), counts.to_numpy()
    total = int(count.sum())
    found = {"staleness_mean": float(values @ count) / (total or np.nan)}
    for part in QUANTILES:
        found[f"staleness_{100 * part:g}"] = _quantile(values, count, part)
    found["staleness_max"] = float(ages["staleness"].max()) if len(ages) else np.nan
    return found, total


def _quantile(
    values: Int[np.ndarray, " n"], counts: Int[np.ndarray, " n"], part: float
) -> float:
    if not values.size:
        return float("nan")
    upto = np.cumsum(counts)
    place = part * (upto[-1] - 1)
    low, high = np.searchsorted(upto, [np.floor(place), np.ceil(place)], side="right")
    at: Float[np.ndarray, " 2"] = values[[low, high]].astype(np.float64)
    return float(at[0] + (at[1] - at[0]) * (place - np.floor(place)))
