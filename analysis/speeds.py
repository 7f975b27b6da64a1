"""Seconds a commit and contributions a second, by group, with intervals."""

import numpy as np
import pandas as pd

from . import frames
from .frames import Study
from .statistics import interval_within

MEASURES = {
    "commit_s": "s per server update",
    "contributions_per_s": "client updates/s",
}
"""Measured quantities of each run, and their headings in tables."""
TITLE = "seconds per server update, client updates per second"
NOTE = (
    "virtual seconds; means over replicates and 95 % t-intervals, or the range of "
    "replicates where these fall below 0"
)
WHOLE = "of whole runs, with what is unfinished at their end"
"""What `by_run` counts, in words."""
UNKNOWN = "unknown: a replicate is too short"
"""Text in place of an undefined mean."""


def by_run(study: Study) -> pd.DataFrame:
    """Measures each run of a study with numerics, over the whole of it.

    Returns:
        The columns of `frames.runs`, `commit_s`, virtual seconds of the run for each
        commit, what is unfinished at its end among them, and `contributions_per_s`,
        that were applied in a virtual second up to the last evaluation.

    Raises:
        StudyError: No run has ended.
    """
    found = frames.runs(study)
    last = frames.evaluations(study).groupby("run", sort=False)
    last = last[["time", "contributions"]].max()
    rate = last["contributions"] / last["time"].where(last["time"] > 0)
    commits = found["commits"].where(found["commits"] > 0)
    return found.assign(
        commit_s=found["virtual_s"] / commits,
        contributions_per_s=found["run"].map(rate),
    )


def by_group(measured: pd.DataFrame) -> pd.DataFrame:
    """Returns a row per group, in their order: replicates, means and intervals.

    Args:
        measured: Row per run: group, and of `MEASURES` both, or `commits_per_s` in
            place of `commit_s`, as `timelines.View.by_run` has it.

    Returns:
        Columns group, replicates, and those of `MEASURES`: a `statistics.Interval`
        each, over the replicates, cut at 0 by `interval_within`.
    """
    if "commit_s" not in measured:
        rate = measured["commits_per_s"]
        measured = measured.assign(commit_s=1 / rate.where(rate > 0))
    rows = []
    for group, mine in measured.groupby("group", sort=False):
        numbers = {name: mine[name].to_numpy(np.float64) for name in MEASURES}
        found = {
            name: interval_within(values, 0, np.inf) for name, values in numbers.items()
        }
        rows.append({"group": group, "replicates": len(mine), **found})
    return pd.DataFrame(rows, columns=pd.Index(["group", "replicates", *MEASURES]))


def table(measured: pd.DataFrame) -> pd.DataFrame | None:
    """Returns `by_group` as text; None where no group has replicates."""
    found = by_group(measured)
    if not (found["replicates"] > 1).any():
        return None
    for name in MEASURES:
        unknown = np.array([np.isnan(each.mean) for each in found[name]])
        found[name] = found[name].map(str).mask(unknown, UNKNOWN)
    return found.rename(columns=MEASURES)
