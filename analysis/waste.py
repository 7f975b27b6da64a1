"""Work that came to nothing: jobs that were rejected, stopped, lost or crashed."""

import numpy as np
import pandas as pd

from ..simulator.expenses import ENDS
from ..simulator.timeline import Outcome
from .frames import Study, runs

NOT_WASTED = (Outcome.APPLIED, Outcome.BUFFERED, Outcome.IN_FLIGHT)
"""Outcomes of jobs of which something comes, or may still come."""


def wasted(study: Study) -> pd.DataFrame:
    """Returns what each run has spent on jobs of which nothing came.

    Args:
        study: Study, finished or not, with the table `jobs`.

    Returns:
        By run and outcome, for those that occur: `group`, `replicate`, `jobs`;
        `seconds`, virtual, from the beginning of a job to its end; `share`, of all
        seconds that clients have worked for ended jobs; `upload_bytes`,
        `download_bytes`; `samples`, those of the gradients that the jobs were to take,
        finished or not, NaN for runs that an earlier version has made.
    """
    table = _with_ends(study)
    table["seconds"] = table["ended"] - table["begun_time"].fillna(table["read_time"])
    table = table.loc[table["outcome"] != Outcome.IN_FLIGHT.name]
    table["samples"] = _samples(study, table)
    whole = table.groupby("run")["seconds"].sum()
    gone = table.loc[~table["outcome"].isin([o.name for o in NOT_WASTED])]
    found = (
        gone.groupby(["run", "outcome"], observed=True)
        .agg(
            jobs=("job", "size"),
            seconds=("seconds", "sum"),
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
    """Returns the samples of each job; NaN in runs that have not noted them."""
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
    """Returns the jobs with the time at which each ended.

    A job that arrived ended then; another one with the incident of its client that
    comes in the same place.
    """
    jobs = study.table("jobs")
    jobs["outcome"] = jobs["outcome"].astype(str)
    jobs["ended"] = jobs["arrived_time"]
    incidents = study.table("incidents")
    incidents["incident"] = incidents["incident"].astype(str)
    for outcome, incident in ENDS.items():
        mine = jobs.loc[jobs["outcome"] == outcome.name].sort_values(
            ["run", "client", "job"]
        )
        when = incidents.loc[incidents["incident"] == incident.name]
        when = when.sort_values(["run", "client", "time"], kind="stable")
        keys = ["run", "client"]
        left = mine.assign(place=mine.groupby(keys).cumcount())[[*keys, "place"]]
        right = when.assign(place=when.groupby(keys).cumcount())
        times = left.reset_index().merge(right, on=[*keys, "place"], how="left")
        jobs.loc[times["index"], "ended"] = times["time"].to_numpy()
    return jobs
