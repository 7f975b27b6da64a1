"""Accuracy of one model for each client and each group of clients: tidy tables."""

import math

import numpy as np
import pandas as pd

from ..simulator.files.study import StudyError
from .clients import GROUP
from .folders import takes_folder
from .frames import Study, groups, joined
from .targets import final

METRIC = "client_accuracy"
"""Column of the table `workers` with the test accuracy of each client."""


@takes_folder
def by_client(study: Study, metric: str = METRIC) -> pd.DataFrame:
    """Returns the final accuracy of every client of every run.

    Returns:
        Columns group (of runs), replicate, client (from 1), client_group (null where
        the scenario has none), num_samples, value: the mean over the last tenth of the
        run's evaluations, as in `targets.final`.

    Raises:
        StudyError: The metric was not evaluated.
    """
    table = joined(study, "workers")
    if metric not in table or table[metric].isna().all():
        raise StudyError(
            f"{metric} must be evaluated, but the study has none of it; add it to "
            f"evaluate.metrics"
        )
    ordered = table.sort_values(["run", "client", "time"])
    keys = ["run", "group", "replicate", "client"]
    found = ordered.groupby(keys, sort=False)[metric]
    found = found.apply(lambda values: final(values.to_numpy(np.float64))).reset_index()
    who = study.table("clients").reindex(
        columns=pd.Index(["run", "client", GROUP, "num_samples"])
    )
    found = found.merge(who, on=["run", "client"]).rename(columns={metric: "value"})
    return found[["group", "replicate", "client", GROUP, "num_samples", "value"]]


@takes_folder
def spread(study: Study, metric: str = METRIC) -> pd.DataFrame:
    """Returns the spread of the clients' final accuracies in each group of runs.

    Returns:
        Columns group (of runs), replicate, clients (`all`, or the name of their group
        in the scenario), count, mean, std (over clients), worst_decile (mean over the
        tenth of the clients, rounded up, that ends lowest), min.

    Raises:
        StudyError: The metric was not evaluated.
    """
    table = by_client(study, metric)
    rows = []
    for (group, replicate), mine in table.groupby(["group", "replicate"], sort=False):
        rows.append((group, replicate, "all", *_measured(mine["value"])))
        for name, own in mine.groupby(GROUP, sort=False):
            rows.append((group, replicate, name, *_measured(own["value"])))
    columns = ["group", "replicate", "clients", "count", "mean", "std"]
    found = pd.DataFrame(rows, columns=pd.Index([*columns, "worst_decile", "min"]))
    order = {group: number for number, group in enumerate(groups(study))}
    return found.sort_values(
        "group", key=lambda column: column.map(order), kind="stable", ignore_index=True
    )


def _measured(values: pd.Series) -> tuple[int, float, float, float, float]:
    ordered = np.sort(values.to_numpy(np.float64))
    worst = ordered[: math.ceil(ordered.size / 10)]
    mean, std = float(ordered.mean()), float(ordered.std())
    return ordered.size, mean, std, float(worst.mean()), float(ordered[0])
