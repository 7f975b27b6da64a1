"""Values of a metric at an instant: after some seconds, commits or bytes."""

import warnings

import numpy as np
import pandas as pd

from ..simulator.files.study import StudyError, StudyWarning
from .frames import Study, configurations, groups, metric_of, runs, unit_of, who
from .phases import evaluations_by
from .statistics import UNKNOWN, t_interval
from .targets import for_means, lost, or_worse

FROZEN = "stalled"
"""End of a run in which nothing could change any more: its last value stays."""
ENDS = {"time": "virtual_s"}
"""Columns of runs with the count at their end, where the names differ."""


def in_words(at: float, against: str = "time") -> str:
    """Returns words such as `60 s`, or `500 commits`."""
    return f"{at:g} {unit_of(against)}"


def too_late(study: Study, at: float, against: str) -> StudyError:
    """Returns the error for an instant after the end of every run."""
    return StudyError(
        f"no run of study {study.manifest['name']!r} lasted for "
        f"{in_words(at, against)}; take less"
    )


def values_at(
    study: Study, metric: str, at: float, against: str = "time"
) -> pd.DataFrame:
    """Returns every run's value of a metric at an instant.

    That is the value of the last evaluation up to then; none is drawn between two. A
    run that diverged before has the worst value that the metric can have or, where
    there is none, is at least as bad as the worst that any evaluation of the study has
    seen. A run that stalled keeps its last value. One that ended otherwise before the
    instant has no value there.

    Args:
        study: Study, finished or not.
        metric: Column of the table `evaluations`.
        at: Instant: virtual seconds, or what else is counted.
        against: Count, of `frames.COUNTED` or `phases.PHASES`.

    Returns:
        Columns variant, group, the swept keys, replicate, value (NaN where there is
        none), evaluated (the count at that evaluation), and the value's bounds low,
        high, as `targets.or_worse`.

    Raises:
        StudyError: The metric was not evaluated, or the count is not known.
    """
    table = evaluations_by(study, against)
    x, y = (metric_of(table, name).astype(np.float64) for name in (against, metric))
    # What is not finite is how a run diverged, and no value of it.
    known = np.isfinite(x) & np.isfinite(y)
    last = pd.DataFrame({"run": table["run"], "x": x, "y": y}).loc[known]
    until = last.loc[last["x"] <= at].groupby("run").last()
    ended = runs(study)
    furthest = ended["run"].map(last.groupby("run")["x"].max())
    bad = lost(study, metric) & (furthest < at).to_numpy(bool)
    name = ENDS.get(against, against)
    ends = np.fmax(furthest, ended[name]) if name in ended else furthest
    there = (ends >= at) | (ended["stop"] == FROZEN)
    found = who(study).assign(
        value=ended["run"].map(until["y"]).where(there),
        evaluated=ended["run"].map(until["x"]).where(there & ~bad),
    )
    return or_worse(study, metric, found, bad)


def seen_at(study: Study, metric: str, at: float, against: str = "time") -> str:
    """Returns when a metric was evaluated for an instant, as text; "" if just then."""
    seen = values_at(study, metric, at, against)["evaluated"].dropna()
    ends = dict.fromkeys(f"{end:.4g}" for end in (seen.min(), seen.max()))
    if seen.empty or seen.min() == at:
        return ""
    unit = unit_of(against)
    return f"After {in_words(at, against)}: as evaluated at {' to '.join(ends)} {unit}"


def value_at(
    study: Study, metric: str, at: float, against: str = "time"
) -> pd.DataFrame:
    """Returns each group's mean value of a metric at an instant.

    Args:
        study: Study, finished or not.
        metric: Column of the table `evaluations`.
        at: Instant: virtual seconds, or what else is counted.
        against: Count, of `frames.COUNTED` or `phases.PHASES`.

    Returns:
        Columns variant, group, the swept keys, mean, low, high (95 % t-interval over
        replicates, which of few may leave what the metric can be; NaN where a value is
        only bounded, or there are fewer than two), known (replicates that have a value
        there), replicates. A warning names groups of which no run lasted so long.

    Raises:
        StudyError: The metric was not evaluated, or the count is not known.
    """
    found = means_at(study, metric, at, against)
    if gone := found.loc[found["known"] == 0, "group"].tolist():
        warnings.warn(
            f"no run of {', '.join(gone)} lasted for {in_words(at, against)}: there is "
            f"no value then (NaN); take less",
            StudyWarning,
            stacklevel=2,
        )
    return found


def means_at(
    study: Study, metric: str, at: float, against: str = "time"
) -> pd.DataFrame:
    """Returns the table of `value_at`, for callers that report gaps themselves."""
    table = for_means(study, metric, values_at(study, metric, at, against))
    rows = []
    for group in groups(study):
        mine = table.loc[table["group"] == group]
        values = mine["value"].dropna().to_numpy(np.float64)
        bounded = np.isinf(mine[["low", "high"]]).any(axis=None)
        interval = UNKNOWN if bounded else t_interval(values)  # bounds have no mean
        rows.append((*interval, values.size, len(mine)))
    columns = pd.Index(["mean", "low", "high", "known", "replicates"])
    return configurations(study).join(pd.DataFrame(rows, columns=columns))
