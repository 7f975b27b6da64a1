"""Joules that clients have drawn, from the jobs of a study."""

from collections.abc import Iterator

import numpy as np
import pandas as pd

from ..simulator.files.study import Study, is_summary
from ..simulator.files.study.jobs import incidents_of, jobs_of
from ..simulator.world.expenses import Expenses
from .facts import Entry


def joules(study: Study, evaluations: pd.DataFrame) -> pd.Series | None:
    """Returns what clients had drawn by each evaluation, joules.

    Returns:
        NaN of runs without rates; None if no run has any, or the study keeps no jobs.
    """
    found = pd.Series(np.nan, evaluations.index)
    for entry, expenses in _each(study):
        mine = evaluations.loc[evaluations["run"] == entry["run"], "time"]
        found[mine.index] = expenses.up_to(mine.to_numpy(np.float64))
    return None if found.isna().all() else found


def joules_by_end(study: Study) -> pd.Series | None:
    """Returns the clients' total energy, by run, as far as `joules` has it."""
    ends = pd.DataFrame(study.manifest["runs"]).reindex(columns=["run", "virtual_s"])
    ends = ends.rename(columns={"virtual_s": "time"}).set_index("run", drop=False)
    return joules(study, ends)


def spent_by_activity(study: Study) -> pd.DataFrame:
    """Returns each client group's energy in each run, by activity.

    Args:
        study: Study, finished or not, with the table `jobs`.

    Returns:
        Columns run, group, replicate, clients (the name of their group, or `all`),
        activity (`idle`, `compute`, `upload`, `download`, `upload_message`,
        `download_message`), joules. No rows without rates.
    """
    rows = []
    for entry, expenses in _each(study):
        groups = (entry["scenario"].get("clients") or {}).get("groups") or ("all",)
        run = entry["run"], entry["label"], entry["replicate"]
        for name, of in zip(groups, expenses.by_activity(), strict=True):
            rows += [(*run, name, *amount) for amount in of.items()]
    names = ("run", "group", "replicate", "clients", "activity", "joules")
    return pd.DataFrame(rows, columns=pd.Index(names))


def _each(study: Study) -> Iterator[tuple[Entry, Expenses]]:
    for entry in () if is_summary(study.manifest) else study.manifest["runs"]:
        if "tariffs" in entry and "virtual_s" in entry:
            run, until = entry["run"], float(entry["virtual_s"])
            record = jobs_of(study, run), incidents_of(study, run)
            yield entry, Expenses(entry["tariffs"], *record, until)
