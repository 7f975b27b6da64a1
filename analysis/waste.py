"""Wasted work: jobs that were rejected, stopped, lost or crashed."""

import numpy as np
import pandas as pd

from ..simulator.files.study.jobs import incidents_of, jobs_of
from ..simulator.files.timeline import Outcome
from ..simulator.world.expenses import ends
from .frames import Study, runs

NOT_WASTED = (Outcome.APPLIED, Outcome.BUFFERED, Outcome.IN_FLIGHT)
"""Outcomes of jobs of which something comes, or may still come."""


def wasted(study: Study) -> pd.DataFrame:
    """Returns the time, traffic and samples that each run spent on discarded jobs.

    Args:
        study: Study, finished or not, with the table `jobs`.

    Returns:
        By run and outcome, for those that occur: `group`, `replicate`, `jobs`;
        `seconds`, virtual, from the beginning of a job to its end, NaN where the end of
        a job is unknown, as in some logs; `share`, of all seconds that clients have
        worked for ended jobs; `upload_bytes`, `download_bytes`; `samples`, those of the
        gradients that the jobs were to take, finished or not, NaN for runs of earlier
        versions.
    """
    table = _with_ends(study)
    table["seconds"] = table["ended"] - table["begun_time"].fillna(table["read_time"])
    table = table.loc[table["outcome"] != Outcome.IN_FLIGHT.name]
    table["samples"] = _samples(study, table)
    whole = table.groupby("run")["seconds"].agg(_sum)
    gone = table.loc[~table["outcome"].isin([o.name for o in NOT_WASTED])]
    found = (
        gone.groupby(["run", "outcome"], observed=True)
        .agg(
            jobs=("job", "size"),
            seconds=("seconds", _sum),
            upload_bytes=("upload_bytes", "sum"),
            download_bytes=("download_bytes", "sum"),
            samples=("samples", lambda each: each.sum(min_count=1)),
        )
        .reset_index()
    )
    found["share"] = found["seconds"] / found["run"].map(whole)
    known = runs(study).set_index("run")
    found["outcome"] = found["outcome"].astype(str)
    for place, name in enumerate(("group", "replicate"), start=1):
        found.insert(place, name, found["run"].map(known[name]))
    return found


def _samples(study: Study, jobs: pd.DataFrame) -> pd.Series:
    found = pd.Series(np.nan, jobs.index)
    for entry in study.manifest["runs"]:
        mine = jobs["run"] == entry["run"]
        if "samples_per_step" in entry:  # local steps change
            found[mine] = entry["samples_per_step"] * jobs.loc[mine, "local_steps"]
            continue
        each = np.asarray(entry.get("samples_per_job", np.nan), np.float64)
        client = jobs.loc[mine, "client"].to_numpy() - 1
        found[mine] = each[client] if each.ndim else each
    return found


def _with_ends(study: Study) -> pd.DataFrame:
    """Returns the jobs with the time at which each ended, as `expenses.ends` has it."""
    table = study.table("jobs")
    table["outcome"] = table["outcome"].astype(str)
    jobs, incidents = jobs_of(study), incidents_of(study)
    most = 1 + max(int(each.client.max(initial=0)) for each in (jobs, incidents))
    own, other = (
        study.arrow(name)["run"].to_numpy().astype(np.int64) * most
        for name in ("jobs", "incidents")
    )
    # A client has another number in each run.
    jobs = jobs._replace(client=own + jobs.client)
    ended = ends(jobs, incidents._replace(client=other + incidents.client))
    # The table is sorted by run, client and job.
    return table.assign(ended=ended[np.lexsort((jobs.job, jobs.client))])


def _sum(seconds: pd.Series) -> float:
    return float(seconds.sum(skipna=False))
