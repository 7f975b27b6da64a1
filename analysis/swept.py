"""Figures over a swept number: final values, and commits until a target."""

import math

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from analysis import style
from analysis.frames import Study, runs, short, swept_columns
from analysis.statistics import kaplan_meier_median, t_interval
from analysis.targets import final_values

RATIO = 20.0
"""From the smallest to the largest swept value; from there on the axis is
logarithmic."""


def swept_keys(study: Study) -> list[str]:
    """Returns the keys that take two or more values in a study, in their order."""
    found: dict[str, set] = {}
    for run in study.manifest["runs"]:
        for key, value in run["parameters"].items():
            found.setdefault(key, set()).add(short(value))
    return [key for key, values in found.items() if len(values) > 1]


def swept_key(study: Study) -> str | None:
    """Returns the one key that is swept over two or more numbers, if there is one."""
    if len(swept_columns(study)) != 1 or len(several := swept_keys(study)) != 1:
        return None
    values = (run["parameters"].get(several[0], 0) for run in study.manifest["runs"])
    return several[0] if all(isinstance(v, int | float) for v in values) else None


def final_over(study: Study, key: str, metric: str) -> Figure:
    """Draws final values against a swept number, a line for each variant.

    Bars are 95 % t-intervals over replicates, as far as the metric can go. A variant
    that is not swept is a horizontal line with its interval as a band.

    Args:
        study: finished or not.
        key: that is swept over numbers.
        metric: a column of evaluations.

    Raises:
        StudyError: the metric was not evaluated.
    """
    finals = final_values(study, metric).merge(
        _of_groups(study, key), on="group", how="inner"
    )
    variants = list(dict.fromkeys(finals["variant"]))
    looks = style.looks(variants)
    with style.context():
        figure, axes = _axes(study, key, finals[key])
        for number, variant in enumerate(variants):
            mine = finals.loc[finals["variant"] == variant]
            look = looks[variant]._asdict()
            label = style.text(variant)
            if mine[key].isna().all():
                values = mine["value"].to_numpy(np.float64)
                mean, low, high = t_interval(values[np.isfinite(values)])
                axes.axhline(mean, label=label, zorder=2, **look)
                if math.isfinite(low):
                    axes.axhspan(low, high, color=look["color"], alpha=0.15, lw=0)
                continue
            rows = [
                (x, *t_interval(values.dropna().to_numpy(np.float64)))
                for x, values in mine.groupby(key)["value"]
            ]
            x, mean, low, high = np.array(rows, np.float64).T
            off = _shifted(x, number, len(variants), logarithmic=is_wide(finals[key]))
            least, most = style.BOUNDS.get(metric, (-np.inf, np.inf))
            low, high = np.clip(low, least, most), np.clip(high, least, most)
            errors = np.nan_to_num(np.array([mean - low, high - mean]))
            axes.errorbar(
                off, mean, errors, label=label, marker="o", ms=3, capsize=2, **look
            )
        axes.set_ylabel(style.metric_label(metric))
        figure.legend(loc="outside right upper")
    return figure


def commits_over(study: Study, key: str) -> Figure:
    """Draws the commits until runs stopped at their target against a swept number.

    Kaplan-Meier medians with 95 % intervals; an arrow stands where fewer than half of
    the replicates stopped there, at the commits of the longest run.

    Args:
        study: finished or not, whose runs stop at a target.
        key: that is swept over numbers.
    """
    table = runs(study)[["variant", "group", "replicate", "commits", "stop"]]
    table = table.merge(_of_groups(study, key)[["group", key]], on="group", how="inner")
    variants = list(dict.fromkeys(table["variant"]))
    looks = style.looks(variants)
    with style.context():
        figure, axes = _axes(study, key, table[key])
        axes.set_yscale("log")
        for number, variant in enumerate(variants):
            mine = table.loc[table["variant"] == variant]
            look = looks[variant]._asdict()
            label = style.text(variant)
            if mine[key].isna().all():
                median = _median(mine)
                if math.isfinite(median[0]):
                    axes.axhline(median[0], label=label, zorder=2, **look)
                continue
            points = [(x, *_median(rows)) for x, rows in mine.groupby(key)]
            most = [rows["commits"].max() for _, rows in mine.groupby(key)]
            x, median, low, high = np.array(points, np.float64).T
            x = _shifted(x, number, len(variants), logarithmic=is_wide(table[key]))
            known = np.isfinite(median)
            high = np.where(np.isfinite(high), high, np.maximum(most, median))
            errors = np.array([median - low, high - median])[:, known]
            axes.errorbar(
                x[known], median[known], np.maximum(np.nan_to_num(errors), 0),
                label=label, marker="o", ms=3, capsize=2, **look,
            )  # fmt: skip
            axes.plot(
                x[~known], np.array(most)[~known], ls="none", marker="^", mfc="none",
                color=look["color"], label=None if known.any() else label,
            )  # fmt: skip
        axes.set_ylabel("Commits to the target (△: not reached by then)")
        figure.legend(loc="outside right upper")
    return figure


def _median(rows: pd.DataFrame) -> tuple[float, float, float]:
    reached = (rows["stop"] == "target").to_numpy(bool)
    return kaplan_meier_median(rows["commits"].to_numpy(np.float64), reached)


def _of_groups(study: Study, key: str) -> pd.DataFrame:
    """Returns each group's variant and swept value."""
    return runs(study)[["group", "variant", key]].drop_duplicates()


def is_wide(values: pd.Series) -> bool:
    """Says whether values spread so far that their axis should be logarithmic."""
    known = values.dropna().to_numpy(np.float64)
    return bool(known.min() > 0 and known.max() / known.min() > RATIO)


def _shifted(x: np.ndarray, number: int, of: int, *, logarithmic: bool) -> np.ndarray:
    """Moves points a little aside, so that the bars of variants can be told apart."""
    part = 0.012 * (number - (of - 1) / 2)
    if logarithmic:
        return x * (x.max() / x.min()) ** part
    return x + part * (x.max() - x.min())


def _axes(study: Study, key: str, values: pd.Series) -> tuple[Figure, Axes]:
    figure = Figure(figsize=(6.4, 3.4), layout="constrained")
    figure.suptitle(style.text(study.manifest["name"], 80))
    axes = figure.add_subplot()
    axes.set_xlabel(style.metric_label(key.split(".")[-1]))
    if is_wide(values):
        axes.set_xscale("log")
    return figure, axes
