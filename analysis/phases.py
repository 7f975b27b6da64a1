"""Virtual time divided into computation and communication."""

import numpy as np
import pandas as pd
from jaxtyping import Float

from ..simulator.files.study import StudyError
from .frames import Study, evaluations, joined, tidy

PHASES = ("computation_s", "communication_s")
"""Parts of virtual time; the two add up to it."""
ADDED = ("bytes", "epsilon", "joules")
"""Counts up to an evaluation that are no columns of its table."""


def covered(
    started: Float[np.ndarray, " n"],
    ended: Float[np.ndarray, " n"],
    until: Float[np.ndarray, " t"],
) -> Float[np.ndarray, " t"]:
    """Returns how much of the time up to some instants is in any of some intervals.

    Args:
        started: Starts of the intervals, virtual seconds.
        ended: Ends, none before its start; NaN if an interval is still open.
        until: Instants up to which they are.
    """
    order = np.argsort(started)
    started, ended = started[order], np.where(np.isnan(ended), np.inf, ended)[order]
    # An interval adds what reaches beyond all that began before it.
    before = np.maximum.accumulate(np.concatenate([[-np.inf], ended[:-1]]))
    first = np.maximum(started, before)
    new = ended > first
    first, ended = first[new], ended[new]
    lengths = np.concatenate([[0.0], np.cumsum(ended - first)])
    number = np.searchsorted(first, until, side="right")
    inside = number > 0
    last = np.maximum(number - 1, 0)
    rest = np.zeros(until.shape)
    if first.size:
        rest = np.minimum(until, ended[last]) - first[last]
    return np.where(inside, lengths[last] + rest, 0.0)


def evaluations_by(study: Study, against: str) -> pd.DataFrame:
    """Returns all evaluations with a column of the count at each of them.

    Raises:
        StudyError: It is the privacy spent, and no run accounts for it; or it is the
            clients' energy, and no client has a power or the study keeps no jobs.
    """
    if against in PHASES:
        return with_phases(study)
    if against not in ADDED:
        return evaluations(study)
    table = tidy(study)
    if against == "epsilon" and table["epsilon"].isna().all():
        raise StudyError(
            f"study {study.manifest['name']!r} has no epsilon to count, because no run "
            f"accounts for privacy; add privacy: {{delta: 1.0e-5}} to its scenario"
        )
    if against not in table:
        raise StudyError(
            f"study {study.manifest['name']!r} must have clients with rates (watts) "
            f"and record: everything, to count {against}; add them to its scenario"
        )
    return table


def with_phases(study: Study) -> pd.DataFrame:
    """Returns all evaluations, with the time until each divided in two.

    `computation_s` is the time in which at least one client computed; `communication_s`
    is the rest, in which messages were under way or clients idle. So they add up to the
    virtual time, as in FedBCD's Table 2; where clients work one after the other, their
    computations add up.

    Raises:
        StudyError: No run has ended, or a table is damaged.
    """
    table = evaluations(study)
    jobs = joined(study, "jobs")
    jobs = jobs.loc[(jobs["kind"] == "work") & jobs["begun_time"].notna()]
    if jobs["computed_time"].isna().any():
        jobs = _with_crashes(jobs, joined(study, "incidents"))
    found = pd.Series(0.0, index=table.index)
    intervals = dict(iter(jobs.groupby("run")))
    for run, rows in table.groupby("run"):
        if run in intervals:
            mine = intervals[run]
            found[rows.index] = covered(
                mine["begun_time"].to_numpy(np.float64),
                mine["computed_time"].to_numpy(np.float64),
                rows["time"].to_numpy(np.float64),
            )
    return table.assign(computation_s=found, communication_s=table["time"] - found)


def _with_crashes(jobs: pd.DataFrame, incidents: pd.DataFrame) -> pd.DataFrame:
    """Lets computations that were cut short end with the crash of their client."""
    crashes = incidents.loc[incidents["incident"] == "CRASHED"]
    found = pd.merge_asof(
        jobs.sort_values("begun_time"),
        crashes[["run", "client", "time"]].sort_values("time"),
        left_on="begun_time",
        right_on="time",
        by=["run", "client"],
        direction="forward",
    )
    return found.assign(computed_time=found["computed_time"].fillna(found["time"]))
