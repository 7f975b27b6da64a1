"""Time to a target: k of n replicates, and a median that accounts for the others."""

import math
from typing import NamedTuple

import numpy as np
import pandas as pd

from ..simulator.files.study import StudyError
from ..simulator.scenario.tuning import objective
from .frames import (
    Study,
    configurations,
    described,
    evaluations,
    first_metric,
    groups,
    metric_of,
    runs,
    unit_of,
    who,
)
from .phases import evaluations_by
from .statistics import (
    Interval,
    first_reached,
    interval_within,
    median_after,
    median_time,
    short,
)

FINAL = 0.1
"""The final value of a run is the mean of its last tenth of evaluations."""
OF_BEST = 0.95
"""Part of the best group's final value that is the target where none is stated."""
HOPELESS = ("diverged", "stalled")
"""Ends of runs that would never have reached a target, however long they ran."""


class MetricTarget(NamedTuple):
    """A metric and the value that is to be reached.

    Attributes:
        metric: Column of the table `evaluations`.
        value: Value of the metric.
        stated: Whether the scenario states it; else it is 95 % of the best mean.
    """

    metric: str
    value: float
    stated: bool

    @property
    def is_known(self) -> bool:
        """Whether there is one, which there is not where all runs diverged."""
        return not math.isnan(self.value)


def final(values: np.ndarray) -> float:
    """Returns the mean of the last tenth of a run's evaluations, at least one."""
    return float(values[-max(1, round(FINAL * values.size)) :].mean())


def final_values(study: Study, metric: str | None = None) -> pd.DataFrame:
    """Returns the final value of each run: the mean of its last tenth of evaluations.

    Args:
        study: Study, finished or not.
        metric: Column of the table `evaluations`; by default the study's first metric.

    Returns:
        Columns variant, group, the swept keys, replicate, value: NaN for a run that
        diverged or was never evaluated.

    Raises:
        StudyError: The metric was not evaluated.
    """
    known = runs(study)
    curves = _by_run(evaluations(study), metric or first_metric(study.manifest))
    values = [
        math.nan if stop == "diverged" or run not in curves else final(curves[run][1])
        for run, stop in zip(known["run"], known["stop"], strict=True)
    ]
    return who(study).assign(value=values)


def final_bounds(study: Study, metric: str) -> pd.DataFrame:
    """Returns the bounds of every run's final value.

    Returns:
        Columns of `who`, value (NaN for a run that was never evaluated and did not
        diverge), and its bounds low, high, as `or_worse`.

    Raises:
        StudyError: The metric was not evaluated.
    """
    return or_worse(study, metric, final_values(study, metric), lost(study, metric))


def mean_interval(study: Study, metric: str, values: np.ndarray) -> Interval:
    """Returns a mean with its interval, cut at the metric's limits."""
    bounds = described(study, metric).bounds or (-math.inf, math.inf)
    return interval_within(values, *bounds)


RANGES = "the range of replicates in brackets where that leaves what the metric can be"
"""Words on intervals of `mean_interval`."""


def or_worse(
    study: Study, metric: str, values: pd.DataFrame, bad: np.ndarray
) -> pd.DataFrame:
    """Returns values with their bounds, in columns value, low and high.

    A run that diverged has the worst value that the metric can have, or where there is
    none that any evaluation of the study has seen; or anything worse.
    """
    value = values["value"].mask(bad, worst_value(study, metric))
    worse = "low" if described(study, metric).higher_is_better else "high"
    ends = values.assign(value=value, low=value, high=value)
    beyond = -np.inf if worse == "low" else np.inf
    ends[worse] = ends[worse].mask(bad, beyond)
    # Where nothing finite was seen, nothing is known of it.
    return ends.assign(
        low=ends["low"].mask(bad & ends["low"].isna(), -np.inf),
        high=ends["high"].mask(bad & ends["high"].isna(), np.inf),
    )


def for_means(study: Study, metric: str, ends: pd.DataFrame) -> pd.DataFrame:
    """Returns values whose bounds are closed at a worst value that the metric has.

    A mean can count such a value; of one that may be any worse there is no mean.
    """
    if described(study, metric).worst is None:
        return ends
    return ends.assign(low=ends["value"], high=ends["value"])


def worst_value(study: Study, metric: str) -> float:
    """Returns the worst value that a metric can have, or else that a study has seen.

    The largest where lower is better, the smallest where higher is.

    NaN if the metric has no worst value and nothing finite was seen.

    Raises:
        StudyError: The metric was not evaluated.
    """
    seen = metric_of(evaluations(study), metric).to_numpy(np.float64)
    seen = seen[np.isfinite(seen)]
    known = described(study, metric)
    if known.worst is not None:
        return known.worst
    if not seen.size:
        return float("nan")
    return float(seen.min() if known.higher_is_better else seen.max())


def lost(study: Study, metric: str) -> np.ndarray:
    """Returns the runs that ended diverged, or ended with a number that is not finite.

    Raises:
        StudyError: The metric was not evaluated.
    """
    table = evaluations(study)
    values = metric_of(table, metric).astype(np.float64)
    evaluated = values.groupby(table["run"]).count() > 0
    last = table.groupby("run").tail(1)
    unsound = ~np.isfinite(values[last.index]) & last["run"].map(evaluated)
    ends = runs(study)
    broken = ends["run"].isin(last.loc[unsound, "run"])
    return ((ends["stop"] == "diverged") | broken).to_numpy(bool)


def final_quantities(
    study: Study, quantity: str, *, diverged: bool = False
) -> pd.DataFrame:
    """Returns what every run has come to: columns of `who`, and value.

    Virtual time, commits and contributions are counted to the run's end, all else to
    its last evaluation. NaN for a run without such a count.

    Args:
        study: Study, finished or not.
        quantity: Quantity, of `stalesim.simulator.parts.metrics.QUANTITIES`.
        diverged: Whether a diverged run has its value up to then; else NaN.

    Raises:
        StudyError: It is the privacy spent, and no run accounts for it.
    """
    table = runs(study)
    values = table.get(quantity)
    if values is None:
        evaluated = evaluations_by(study, quantity)
        last = metric_of(evaluated, quantity).groupby(evaluated["run"]).last()
        values = table["run"].map(last)
    values = values.astype(np.float64)
    if not diverged:
        values = values.mask(table["stop"] == "diverged")
    return who(study).assign(value=values)


def default_target(study: Study) -> MetricTarget:
    """Returns the metric and value that time-to-target tables use.

    Where all runs diverged and none is stated there is no such value: it is NaN, which
    nothing reaches.

    The scenario's own target, else that of its first claim that has one, else the
    objective of `tune` or `compare`, else the final value that is 95 % of the best
    group's mean (or, of a loss, that value over 0.95; below zero the other way round).
    Targets in a metric that was not evaluated are skipped.
    """
    scenario = study.manifest["scenario"]
    evaluated = scenario["evaluate"]["metrics"]
    stated = [scenario["stop"].get("target")]
    stated += [claim.get("to") for claim in scenario.get("claims", [])]
    searches = (scenario.get(key) or {} for key in ("tune", "compare"))
    for text in filter(None, (search.get("objective") for search in searches)):
        aim = objective(text)
        stated.append({} if aim.target is None else {aim.metric: aim.target})
    for target in stated:
        for metric, value in (target or {}).items():
            if metric in evaluated:
                return MetricTarget(metric, float(value), stated=True)
    metric = first_metric(study.manifest)
    means = final_values(study, metric).groupby("group")["value"].mean()
    if described(study, metric).higher_is_better:
        best = float(means.max())
        near = OF_BEST * best if best >= 0 else best / OF_BEST
    else:
        best = float(means.min())
        near = best / OF_BEST if best >= 0 else OF_BEST * best
    return MetricTarget(metric, near, stated=False)


def origin(study: Study, metric: str) -> str:
    """Returns words on `default_target`: which part it is of the best final value."""
    higher = described(study, metric).higher_is_better
    share = f"{100 * OF_BEST:g} %" if higher else f"1/{OF_BEST:g}"
    return f"{share} of the best variant's final value"


def times_to_target(
    study: Study, metric: str, value: float, against: str = "time"
) -> pd.DataFrame:
    """Returns each run's time to a target, or what else it took.

    A run was at its target between two evaluations. One that reached it neither before
    it ended nor ever would, because it diverged or stalled, is seen to wait until the
    study's last evaluation.

    Args:
        study: Study, finished or not.
        metric: Column of the table `evaluations`.
        value: Value of the metric.
        against: Count, of `frames.COUNTED` or `phases.PHASES`: updates are `commits`,
            and the privacy spent is `epsilon`.

    Returns:
        Columns variant, group, the swept keys, replicate, time (in its unit; of the
        last evaluation where it was not reached; NaN for a run that counts no such
        thing), reached, and the times between which it was: low (of the evaluation
        before; infinite where it never would), high (infinite where it was not
        reached).

    Raises:
        StudyError: The metric was not evaluated, or cannot have the value.
    """
    known = described(study, metric)
    if rule := known.range_missed(value):
        raise StudyError(
            f"the target of {metric} must be {rule}, got {value:g}; change it"
        )
    higher = known.higher_is_better
    table = evaluations_by(study, against)
    curves = _by_run(table, metric, against)
    horizon = max((float(times[-1]) for times, _ in curves.values()), default=0.0)
    uncounted = set(table["run"]) - set(table.loc[table[against].notna(), "run"])
    rows = []
    for run, stop in runs(study)[["run", "stop"]].itertuples(index=False):
        times, values = curves.get(run, (np.zeros(0), np.zeros(0)))
        low, high = 0.0, math.inf
        if times.size:
            low, high = first_reached(times, values, value, higher=higher)
        reached = math.isfinite(high)
        time = high if reached else low
        if not reached and stop in HOPELESS:
            time, low = horizon, math.inf
        if run in uncounted:
            time = low = high = math.nan
        rows.append((time, reached, low, high))
    columns = pd.Index(["time", "reached", "low", "high"])
    return who(study).join(pd.DataFrame(rows, columns=columns))


def resolution(times: pd.DataFrame, against: str = "time") -> str:
    """Returns the resolution of times to a target, as text; "" if none is known.

    Evaluations alone see a target reached: a time is known up to the one before.
    """
    apart = (times["high"] - times["low"])[times["reached"]]
    apart = apart[(apart > 0) & np.isfinite(apart)]
    if apart.empty:
        return ""
    ends = dict.fromkeys(f"{end:.3g}" for end in (apart.min(), apart.max()))
    unit = unit_of(against)
    return f"resolution {' to '.join(ends)} {unit} (between evaluations)"


def commits_to_stop(study: Study) -> pd.DataFrame:
    """Returns each run's commits until it stopped at its target.

    Columns as in `times_to_target`. An evaluation that ended a run bounds the time by
    the one before; a mean over commits (`stop.windowed`) ends a run between
    evaluations, with the very commit.
    """
    table, seen = runs(study), evaluations(study)
    commits = table["commits"].astype(np.float64)
    end = seen["run"].map(table.set_index("run")["commits"])
    earlier = seen.loc[seen["commits"] < end].groupby("run")["commits"].max()
    before = table["run"].map(earlier)
    evaluated = table["run"].isin(seen.loc[seen["commits"] == end, "run"])
    reached = table["stop"] == "target"
    low = commits.mask(reached & evaluated, before.fillna(0.0))
    return who(study).assign(
        time=commits,
        reached=reached,
        low=low.mask(table["stop"].isin(HOPELESS), math.inf),
        high=commits.where(reached, math.inf),
    )


def time_to_target(
    study: Study, metric: str, value: float, against: str = "time"
) -> pd.DataFrame:
    """Returns each group's median time to a target.

    Args:
        study: Study, finished or not.
        metric: Column of the table `evaluations`.
        value: Value of the metric.
        against: Count, as in `times_to_target`.

    Returns:
        Columns variant, group, the swept keys, median (of the first evaluation at which
        half of the replicates had arrived; infinite where half or more did not), low,
        high (as `statistics.median_interval`, in its unit; NaN where there is nothing
        to count), reached, replicates, and `after`, which the median is not before.

    Raises:
        StudyError: The metric was not evaluated.
    """
    times = times_to_target(study, metric, value, against)
    rows = []
    for group in groups(study):
        mine = times.loc[times["group"] == group]
        ends = mine[["low", "high"]].dropna().to_numpy(np.float64).T
        counts = int(mine["reached"].sum()), len(mine)
        rows.append((*median_time(*ends), *counts, median_after(ends[0])))
    columns = pd.Index(["median", "low", "high", "reached", "replicates", "after"])
    return configurations(study).join(pd.DataFrame(rows, columns=columns))


def not_reached(after: float, unit: str = "") -> str:
    """Returns the bounds of a median that half or more of the replicates lack."""
    return f"> {short(after)}{unit}" if math.isfinite(after) else "never"


def time_to_default(study: Study) -> tuple[MetricTarget, pd.DataFrame]:
    """Returns the study's default target, and `time_to_target` to it.

    Where there is none, no group has reached it.
    """
    target = default_target(study)
    if target.is_known:
        return target, time_to_target(study, target.metric, target.value)
    counts = runs(study).groupby("group", sort=False).size().to_numpy()
    never = {"median": math.inf, "low": math.nan, "high": math.nan, "reached": 0}
    never |= {"replicates": counts, "after": math.inf}
    return target, configurations(study).assign(**never)


def _by_run(
    table: pd.DataFrame, metric: str, against: str = "time"
) -> dict[object, tuple[np.ndarray, np.ndarray]]:
    x = metric_of(table, against).to_numpy(np.float64, na_value=np.nan)
    y = metric_of(table, metric).to_numpy(np.float64, na_value=np.nan)
    known = ~(np.isnan(x) | np.isnan(y))
    if not known.any():
        return {}
    x, y, run = x[known], y[known], table["run"].to_numpy()[known]
    order = np.argsort(run, kind="stable")
    numbers, first = np.unique(run[order], return_index=True)
    parts = (np.split(column[order], first[1:]) for column in (x, y))
    return dict(zip(numbers.tolist(), zip(*parts, strict=True), strict=True))
