"""Comparison of a search's trials: the score of each, and the best of them."""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
import pandas as pd
from jaxtyping import Float

from ..simulator.files.study import StudyError
from ..simulator.parts.errors import documented_key
from ..simulator.scenario import tuning
from ..simulator.scenario.grid import Span
from ..simulator.scenario.tuning import Objective, Tune
from .facts import Entry
from .folders import takes_folder
from .frames import Study, described, evaluations, metric_of, parameters, runs
from .statistics import Interval, first_reached, held, interval_within
from .targets import final, lost, mean_interval

BORDER = 0.05
"""Part of a searched range that counts as its border."""

Scores = Mapping[str, Float[np.ndarray, " replicates"]]
"""Value of each replicate, by trial: the smaller the better, infinite for a run that
diverged."""


@takes_folder
def sought(study: Study) -> Objective:
    """Returns the objective of a study of trials.

    Raises:
        StudyError: It is no such study.
    """
    scenario = study.manifest["scenario"]
    if not scenario.get("tune"):
        raise StudyError(
            f"{study.folder}: must be a study of stalesim tune, but has no tune; make "
            f"one"
        )
    tune = Tune.model_validate(scenario["tune"])
    return tuning.of(tune, tuple(scenario["evaluate"]["metrics"]))


@takes_folder
def scores(study: Study) -> Scores:
    """Returns every trial's score, replicate by replicate.

    Raises:
        StudyError: The study is of no search, or a reason of `values`.
    """
    return {trial: mine for (_, trial), mine in values(study, sought(study)).items()}


@takes_folder
def values(
    study: Study, objective: Objective
) -> dict[tuple[str, str], Float[np.ndarray, " replicates"]]:
    """Returns the values of the replicates of trials, by variant and trial.

    Args:
        study: Study whose sweep are the trials.
        objective: The objective: the smaller the better; a metric of which more is
            better has the other sign. Infinite for a run that diverged or that never
            reached the target of a time.

    Raises:
        StudyError: A run failed, or ended before the instant at which the metric is
            taken.
    """
    sign = -1.0 if _falls(study, objective) else 1.0
    ends = runs(study).assign(bad=lost(study, objective.metric))
    curves = dict(iter(evaluations(study).groupby("run")))
    found: dict[tuple[str, str], dict[int, float]] = {}
    told = {run["run"]: run for run in study.manifest["runs"]}
    for run in told.values():
        if run["stop"] == "failed":
            raise StudyError(
                f"{study.folder}: {run['label']} (replicate {run['replicate']}) "
                f"failed: {run['stop_reason']}; mend it, or leave such values out of "
                f"the search, and repeat the command"
            )
    for number, replicate, bad in zip(
        *(ends[key] for key in ("run", "replicate", "bad")), strict=True
    ):
        run = told[number]
        value = np.inf
        if not bad:
            value = sign * _value(curves.get(number), objective, run, study)
        trial = run["variant"], tuning.name(run["parameters"])
        found.setdefault(trial, {})[replicate] = value
    return {
        name: np.array([mine[i] for i in sorted(mine)]) for name, mine in found.items()
    }


def _falls(study: Study, objective: Objective) -> bool:
    higher = described(study, objective.metric).higher_is_better
    return higher and objective.target is None


def _value(
    rows: pd.DataFrame | None, objective: Objective, run: Entry, study: Study
) -> float:
    if rows is None:
        raise StudyError(
            f"{study.folder}: {run['label']} was never evaluated; evaluate more often"
        )
    measured = metric_of(rows, objective.metric).to_numpy(np.float64)
    counted = metric_of(rows, objective.column).to_numpy(np.float64)
    if objective.target is not None:
        higher = described(study, objective.metric).higher_is_better
        return first_reached(counted, measured, objective.target, higher=higher)[1]
    if objective.at is None:
        return final(measured)
    end = run["virtual_s"] if objective.unit == "s" else counted[-1]
    if end < objective.at:
        raise StudyError(
            f"{study.folder}: {run['label']} ended at {end:.4g} {objective.unit} "
            f"({run['stop_reason']}), before {objective.at:g}; let runs continue "
            f"longer, or take an earlier instant"
        )
    value = float(held(counted, measured, np.array([objective.at]))[0])
    if np.isnan(value):
        raise StudyError(
            f"{study.folder}: {run['label']} was first evaluated at {counted[0]:.4g} "
            f"{objective.unit}, after {objective.at:g}; evaluate earlier"
        )
    return value


@takes_folder
def in_words(study: Study) -> str:
    """Returns the objective of the trials as text, and when it was evaluated.

    A metric at an instant is taken from the last evaluation up to then.
    """
    objective = sought(study)
    if objective.target is not None:
        return f"virtual s to {objective.metric} {objective.target:g}"
    if objective.at is None:
        return objective.metric
    ended, table = runs(study), evaluations(study)
    table = table[table["run"].isin(ended["run"][~lost(study, objective.metric)])]
    counted = metric_of(table, objective.column).astype(np.float64)
    until = counted.loc[counted <= objective.at].groupby(table["run"]).last()
    first, last, at = until.min(), until.max(), objective.at
    if first == at:
        return f"{objective.metric} at {at:g} {objective.unit}"
    when = f"{last:g}" if first == last else f"{first:g} to {last:g}"
    which = "evaluation" if first == last else "evaluations"
    unit = objective.unit
    return f"{objective.metric} at {when} {unit}, the last {which} by {at:g} {unit}"


@takes_folder
def borders(study: Study, parameters: Entry) -> str:
    """Returns the best values (`Best.parameters`) at the edge of the searched ones.

    Those are within `BORDER` of the searched range from one of its ends, on its scale,
    or ends of a list of three or more numbers.
    """
    tune = Tune.model_validate(study.manifest["scenario"]["tune"])
    found = []
    for key, searched in tune.over.items():
        ends, scale = _ends(searched)
        key, value = documented_key(key), parameters[documented_key(key)]
        if ends is None or not isinstance(value, int | float):
            continue
        low, high, at = (
            np.log(number) if scale == "log" else number for number in (*ends, value)
        )
        if min(at - low, high - at) <= BORDER * (high - low):
            found.append(f"{key}={value:.4g} of {ends[0]:g} to {ends[1]:g}")
    return ", ".join(found)


def _ends(searched: tuple | Span) -> tuple[tuple[float, float] | None, str]:
    if isinstance(searched, Span):
        low, high = sorted((searched.from_, searched.to))
        return (low, high), searched.scale
    numbers = all(isinstance(v, int | float) for v in searched) and len(searched) > 2
    return ((min(searched), max(searched)) if numbers else None), "linear"


def rank(values: Float[np.ndarray, " n"]) -> tuple[int, float]:
    """Returns the order of trials: by their diverged runs, then by the others' mean."""
    sound = values[np.isfinite(values)]
    return values.size - sound.size, float(sound.mean()) if sound.size else np.inf


class Best(NamedTuple):
    """The best trial of a search.

    Attributes:
        parameters: Values of the searched keys, in the words that pages have.
        value: Mean of the metric and its 95 % t-interval, over replicates that chose no
            trial, or their range where that exceeds the metric's limits; NaN bounds for
            fewer than two, or where one diverged.
        fresh: Number of these replicates.
        diverged: How many of them diverged, or never reached the target.
    """

    parameters: Entry
    value: Interval
    fresh: int
    diverged: int


@takes_folder
def best(study: Study) -> Best:
    """Returns the best trial of a finished search, as its own replicates have it.

    Its value on the replicates that chose it is biased: of many trials the luckiest
    wins. So its value comes from the replicates that only the winner has.

    Raises:
        StudyError: The study is of no search, or it has not ended.
    """
    found, asked = scores(study), study.manifest["scenario"]["replicates"]
    more = [name for name, values in found.items() if values.size > asked]
    if len(more) != 1:
        raise StudyError(
            f"{study.folder}: must be a search that has ended; continue with stalesim "
            f"resume {study.folder}"
        )
    (name,) = more
    fresh = found[name][asked:]
    chosen = next(
        parameters(run)
        for run in study.manifest["runs"]
        if tuning.name(run["parameters"]) == name
    )
    sound = fresh[np.isfinite(fresh)]
    objective = sought(study)
    values = -sound if _falls(study, objective) else sound
    if objective.target is None:
        interval = mean_interval(study, objective.metric, values)
    else:
        interval = interval_within(values, 0, np.inf)
    if sound.size < fresh.size:
        interval = interval._replace(low=float("nan"), high=float("nan"))
    return Best(chosen, interval, fresh.size, fresh.size - sound.size)
