"""What clients have taken: joules, money and carbon, from the jobs of a study."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd

from ..simulator.files.study import Study, is_summary
from ..simulator.files.study.jobs import incidents_of, jobs_of
from ..simulator.parts.metrics import SPENDABLE
from ..simulator.world.expenses import Expenses


def taken(study: Study, evaluations: pd.DataFrame) -> dict[str, pd.Series]:
    """Returns columns of what clients had taken by each evaluation, as far as known.

    Args:
        study: Study, finished or not.
        evaluations: Evaluations, with columns run and time.

    Returns:
        `joules`, `price` and `carbon_g`, NaN where no rate says it; none of which no
        run says anything, or that a study without jobs cannot know.
    """
    found: dict[str, pd.Series] = {}
    for entry, expenses in _each(study):
        mine = evaluations.loc[evaluations["run"] == entry["run"], "time"]
        for spent in SPENDABLE:
            values = expenses.up_to(spent, mine.to_numpy(np.float64))
            if not np.isnan(values).all():
                nothing = pd.Series(np.nan, evaluations.index)
                found.setdefault(spent, nothing)[mine.index] = values
    return found


def taken_by_end(study: Study) -> dict[str, pd.Series]:
    """Returns what clients had taken in all, by run, as far as `taken` knows it."""
    ends = pd.DataFrame(study.manifest["runs"]).reindex(columns=["run", "virtual_s"])
    ends = ends.rename(columns={"virtual_s": "time"}).set_index("run", drop=False)
    return taken(study, ends)


def spent_by_activity(study: Study) -> pd.DataFrame:
    """Returns what each group of clients has taken in each run, by what they did.

    Args:
        study: Study, finished or not, with the table `jobs`.

    Returns:
        Columns run, group, replicate, clients (the name of their group, or `all`),
        spent (`joules` or `price`), activity (`idle`, `compute`, `upload`, `download`,
        `upload_message`, `download_message`), amount. No rows without rates.
    """
    rows = []
    for entry, expenses in _each(study):
        groups = (entry["scenario"].get("clients") or {}).get("groups") or ("all",)
        run = entry["run"], entry["label"], entry["replicate"]
        for spent in SPENDABLE[:2]:
            for name, of in zip(groups, expenses.by_activity(spent), strict=True):
                rows += [(*run, name, spent, *amount) for amount in of.items()]
    names = ("run", "group", "replicate", "clients", "spent", "activity", "amount")
    return pd.DataFrame(rows, columns=pd.Index(names))


def _each(study: Study) -> Iterator[tuple[dict[str, Any], Expenses]]:
    """Yields the runs that have ended and of which something has a rate."""
    for entry in () if is_summary(study.manifest) else study.manifest["runs"]:
        if "tariffs" in entry and "virtual_s" in entry:
            run, until = entry["run"], float(entry["virtual_s"])
            record = jobs_of(study, run), incidents_of(study, run)
            yield entry, Expenses(entry["tariffs"], *record, until)
