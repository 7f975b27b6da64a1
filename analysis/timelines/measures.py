"""Measures of recorded timelines: staleness, waiting, utilisation, throughput.

Runs are counted by `tally`, from their jobs and incidents, or taken from the statistics
where a timeline kept these alone. Measures are taken from three frames:

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
from jaxtyping import Float, Int

from ...simulator.files.study import Categorical, is_summary
from ...simulator.files.study.jobs import incident_pieces, job_pieces
from ...simulator.files.summary import NO_JOBS, Summary
from ...simulator.files.timeline import PAIRS, Outcome
from .. import frames
from ..clients import GROUP
from ..facts import Entry
from ..frames import Study
from ..theory import gossip

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


Counts = tuple[pd.DataFrame, pd.DataFrame, pd.DataFrame]
"""Runs, ages and clients."""


def tally(study: Study, group_of: Mapping[str, pd.Series]) -> Counts:
    """Counts each run from its record, or takes the statistics that were kept of it.

    Args:
        study: Recorded timelines, or runs.
        group_of: Names of the clients' groups by their numbers, for groups of runs.

    Raises:
        StudyError: No run has ended.
    """
    known = frames.runs(study)
    if is_summary(study.manifest):
        told = list(known["summary"])
        clients, ages = study.table("clients"), study.table("ages")
    else:
        found = _counted(study, known, group_of)
        told = [summary.entry() for summary in found]
        of_run = list(zip(found, known["run"], known["virtual_s"], strict=True))
        clients = pd.concat(
            [_frame(each.clients(run, end)) for each, run, end in of_run]
        )
        clients["client"] += 1
        ages = pd.concat([_frame(each.ages(run)) for each, run, _ in of_run])
    runs = pd.concat([known, pd.DataFrame(map(_row, told), index=known.index)], axis=1)
    applied = clients["num_applied"] > 0
    largest = clients["staleness_max"].where(applied).astype(np.float64)
    clients = clients.assign(staleness_max=largest)
    clients = clients[["run", "client", *OF_CLIENTS]].rename(columns=OF_CLIENTS)
    return runs, ages.reset_index(drop=True), clients.reset_index(drop=True)


def _counted(
    study: Study, known: pd.DataFrame, group_of: Mapping[str, pd.Series]
) -> list[Summary]:
    """Returns the statistics of recorded runs, whose files are read one at a time."""
    found = {
        run: _summary(study.manifest["runs"][run], group_of.get(group))
        for run, group in zip(known["run"], known["group"], strict=True)
    }
    rest = found
    while rest:
        for run, incidents in incident_pieces(study):
            if run in rest:
                rest[run].count(NO_JOBS, incidents)
        for run, jobs in job_pieces(study):
            if run in rest:
                rest[run].count(jobs)
        again = {run: summary.again() for run, summary in rest.items()}
        rest = {run: summary for run, summary in again.items() if summary is not None}
        found |= rest
    for run, summary in found.items():
        summary.finish(study.manifest["runs"][run]["virtual_s"])
    return list(found.values())


def _summary(entry: Entry, names: pd.Series | None) -> Summary:
    number, groups = entry["num_clients"], None
    if names is not None:
        codes, words = pd.factorize(names.reindex(np.arange(1, number + 1)))
        groups = Categorical(codes.astype(np.int32), tuple(words))
    in_flight = entry.get("in_flight") or number  # unknown in some imported logs
    return Summary(number, in_flight, entry.get("commits_at_once", 1), groups)


def _frame(columns: Mapping[str, np.ndarray | Categorical]) -> pd.DataFrame:
    return pd.DataFrame(
        {
            name: np.array(column.words, object)[column.codes]
            if isinstance(column, Categorical)
            else column
            for name, column in columns.items()
        }
    )


def _row(told: Entry) -> dict[str, float]:
    outcomes = {name: told["outcomes"].get(name, 0) for name in Outcome.__members__}
    start_s = np.nan if told["start_s"] is None else told["start_s"]
    kept = ("first_s", "last_s", "waiting_s", "waits", "queued_s", "queues", "missed")
    return (
        outcomes
        | {"start_s": start_s, "made": told["start_commits"]}
        | {name: told[name] for name in kept}
    )


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
