"""Time to a target: k of n replicates, and a median that knows of the others."""

from collections.abc import Iterator

import numpy as np
import pandas as pd

from analysis.frames import Study, evaluations, groups
from analysis.statistics import first_reached, kaplan_meier_median

HIGHER_IS_BETTER = ("test_accuracy",)
"""Metrics whose target is reached from below; all others from above."""
FINAL = 0.1
"""The final value of a run is the mean of its last tenth of evaluations."""


def final(values: np.ndarray) -> float:
    """Returns the mean of the last tenth of a run's evaluations, at least one."""
    return float(values[-max(1, round(FINAL * values.size)) :].mean())


def _by_run(study: Study) -> Iterator[tuple[tuple[str, int], pd.DataFrame]]:
    """Yields every run's group, replicate and evaluations."""
    runs = evaluations(study).groupby(["group", "replicate"], sort=False)
    return iter(runs)  # pyright: ignore[reportReturnType]


def final_values(study: Study, metric: str) -> pd.DataFrame:
    """Returns every run's final value: columns group, replicate, value."""
    rows = [
        (group, replicate, final(run[metric].to_numpy(np.float64)))
        for (group, replicate), run in _by_run(study)
    ]
    return pd.DataFrame(rows, columns=pd.Index(["group", "replicate", "value"]))


def default_target(study: Study) -> tuple[str, float]:
    """Returns the metric and value that time-to-target tables use.

    The scenario's own target, else that of its first claim that has one, else the
    final value that is 95 % of the best group's mean (or, of a loss, that value over
    0.95).
    """
    scenario = study.manifest["scenario"]
    stated = [scenario["stop"].get("target")]
    stated += [claim.get("to") for claim in scenario.get("claims", [])]
    for target in stated:
        if target:
            metric, value = next(iter(target.items()))
            return metric, float(value)
    metric = scenario["evaluate"]["metrics"][0]
    means = final_values(study, metric).groupby("group")["value"].mean()
    if metric in HIGHER_IS_BETTER:
        return metric, 0.95 * float(means.max())
    return metric, float(means.min()) / 0.95


def times_to_target(study: Study, metric: str, value: float) -> pd.DataFrame:
    """Returns each run's time to a target.

    Returns:
        Columns group, replicate, time (virtual s; of the last evaluation where it was
        not reached), reached.
    """
    higher = metric in HIGHER_IS_BETTER
    rows = []
    for (group, replicate), run in _by_run(study):
        time, reached = first_reached(
            run["time"].to_numpy(np.float64),
            run[metric].to_numpy(np.float64),
            value,
            higher=higher,
        )
        rows.append((group, replicate, time, reached))
    columns = pd.Index(["group", "replicate", "time", "reached"])
    return pd.DataFrame(rows, columns=columns)


def time_to_target(study: Study, metric: str, value: float) -> pd.DataFrame:
    """Returns each group's Kaplan-Meier median time to a target.

    Returns:
        Columns group, median, low, high (virtual s; infinite where fewer than half of
        the replicates reached it), reached, replicates.
    """
    times = times_to_target(study, metric, value)
    rows = []
    for group in groups(study):
        mine = times.loc[times["group"] == group]
        median = kaplan_meier_median(
            mine["time"].to_numpy(np.float64), mine["reached"].to_numpy(bool)
        )
        rows.append((group, *median, int(mine["reached"].sum()), len(mine)))
    columns = pd.Index(["group", "median", "low", "high", "reached", "replicates"])
    return pd.DataFrame(rows, columns=columns)
