"""Counts of recorded runs from all their jobs at once, by pandas.

A twin of `files.summary.Summary`, which counts a run a piece at a time.
"""

from collections.abc import Mapping

import numpy as np
import pandas as pd
from jaxtyping import Float, Int, Num

from stalesim.analysis import frames
from stalesim.analysis.clients import GROUP
from stalesim.analysis.frames import Study
from stalesim.analysis.timelines.measures import Counts
from stalesim.simulator.files.timeline import Outcome

TIMES = ("read_time", "begun_time", "computed_time", "arrived_time", "applied_time")
NO_ROWS = np.zeros(0, np.int64)
UNDER_WAY = ("IN_FLIGHT", "BUFFERED")
Columns = dict[str, np.ndarray]


def counts_of(study: Study, group_of: Mapping[str, pd.Series]) -> Counts:
    """Counts the runs of a study that have ended."""
    jobs = frames.jobs(study)
    runs = with_starts(jobs, frames.runs(study))
    return tally(jobs, study.table("incidents"), runs, group_of)


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


def end_of_start(jobs: pd.DataFrame, in_flight: int) -> float:
    """Returns the end of a run's start-up, virtual seconds.

    Args:
        jobs: Jobs of one run; refreshes do not count.
        in_flight: Jobs that can be in flight at once.

    Returns:
        NaN where the start does not end, or fewer contributions follow than came
        before: such a run is too short for a steady state.
    """
    work = jobs.loc[jobs["kind"] == "work"]
    if len(work) < in_flight:
        return float("nan")
    read = work["read_time"].to_numpy(np.float64)
    last = np.partition(read, in_flight - 1)[in_flight - 1]
    over = float(_ended(work)[read <= last].max())
    applied = work["applied_time"].to_numpy(np.float64)
    before, after = int((applied <= over).sum()), int((applied > over).sum())
    return over if np.isfinite(over) and after >= max(before, 1) else float("nan")


def _ended(work: pd.DataFrame) -> Float[np.ndarray, " n"]:
    """Returns the time at which each job was applied, or a lost one's last known time.

    Infinite for those under way.
    """
    ended = work["applied_time"].to_numpy(np.float64, copy=True)
    lost = np.isnan(ended)
    known = ("read_time", "begun_time", "computed_time", "arrived_time")
    times = [work[name].to_numpy(np.float64)[lost] for name in known if name in work]
    ended[lost] = np.fmax.reduce(times)
    ended[work["outcome"].isin(UNDER_WAY).to_numpy()] = np.inf
    return ended
