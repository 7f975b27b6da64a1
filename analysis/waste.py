"""Work that came to nothing: jobs that were rejected, stopped, lost or crashed."""

import numpy as np
import pandas as pd

from analysis.frames import Study, runs
from simulator.timeline import Incident, Outcome

NOT_WASTED = (Outcome.APPLIED, Outcome.BUFFERED, Outcome.IN_FLIGHT)
"""Outcomes of jobs of which something comes, or may still come."""
ENDS = {
    Outcome.STOPPED.name: Incident.STOPPED.name,
    Outcome.CRASHED.name: Incident.CRASHED.name,
    Outcome.LOST.name: Incident.GAVE_UP.name,
}
"""Incidents that end jobs which never arrive, by outcome."""


def wasted(study: Study) -> pd.DataFrame:
    """Returns what each run has spent on jobs of which nothing came.

    Args:
        study: Study, finished or not, with the table `jobs`.

    Returns:
        By run and outcome, for those that occur: `group`, `replicate`, `jobs`;
        `seconds`, virtual, from the beginning of a job to its end; `share`, of all
        seconds that clients have worked for ended jobs; `upload_bytes`,
        `download_bytes`; `samples`, those of the gradients that the jobs were to take,
        finished or not, NaN where batches follow the clients' data.
    """
    table = _with_ends(study)
    table["seconds"] = table["ended"] - table["begun_time"].fillna(table["read_time"])
    table = table.loc[table["outcome"] != Outcome.IN_FLIGHT.name]
    whole = table.groupby("run")["seconds"].sum()
    gone = table.loc[~table["outcome"].isin([o.name for o in NOT_WASTED])]
    found = (
        gone.groupby(["run", "outcome"], observed=True)
        .agg(
            jobs=("job", "size"),
            seconds=("seconds", "sum"),
            upload_bytes=("upload_bytes", "sum"),
            download_bytes=("download_bytes", "sum"),
        )
        .reset_index()
    )
    found["share"] = found["seconds"] / found["run"].map(whole)
    known = runs(study).set_index("run")
    found["samples"] = found["jobs"] * found["run"].map(_samples_of_job(study))
    found["outcome"] = found["outcome"].astype(str)
    for place, name in enumerate(("group", "replicate"), start=1):
        found.insert(place, name, found["run"].map(known[name]))
    return found


def _samples_of_job(study: Study) -> dict[int, float]:
    """Returns the samples of a job of each run; NaN where clients have their own."""
    found: dict[int, float] = {}
    for entry in study.manifest["runs"]:
        algorithm = entry["scenario"].get("algorithm") or {}
        batch, steps = algorithm.get("batch"), algorithm.get("local_steps") or 1
        if isinstance(batch, int) and not algorithm.get("local_epochs"):
            found[entry["run"]] = float(batch * steps)
        else:
            found[entry["run"]] = np.nan
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
        mine = jobs.loc[jobs["outcome"] == outcome].sort_values(
            ["run", "client", "job"]
        )
        when = incidents.loc[incidents["incident"] == incident]
        when = when.sort_values(["run", "client", "time"], kind="stable")
        keys = ["run", "client"]
        left = mine.assign(place=mine.groupby(keys).cumcount())[[*keys, "place"]]
        right = when.assign(place=when.groupby(keys).cumcount())
        times = left.reset_index().merge(right, on=[*keys, "place"], how="left")
        jobs.loc[times["index"], "ended"] = times["time"].to_numpy()
    return jobs
