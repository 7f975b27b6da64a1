"""Figures over a swept number: final values, and commits until a target."""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from analysis.figures import layout, style
from analysis.figures.layout import Size
from analysis.figures.lines import Line, Lines, lines_over, pinned
from analysis.frames import Study, runs
from analysis.statistics import kaplan_meier_median, t_interval
from analysis.targets import final_values

RATIO = 20.0
"""From the smallest to the largest swept value; from there on the axis is
logarithmic."""


def final_over(
    study: Study,
    key: str,
    metric: str = "test_accuracy",
    at: Mapping[str, Any] | None = None,
    size: Size | None = None,
) -> Figure:
    """Draws final values against a swept number, a line for each variant.

    Where other keys are swept as well, there is a line for each of their values: only
    replicates are averaged. Bars are 95 % t-intervals over them, as far as the metric
    can go. A variant that is not swept is a horizontal line with its interval as a
    band.

    Args:
        study: finished or not.
        key: key swept over numbers.
        metric: a column of evaluations.
        at: values of other keys that are swept, to which the figure is confined.
        size: inches, such as `style.size("one")`; by default as the legend needs.

    Raises:
        StudyError: the key is not swept over numbers, others have too many values, or
            the metric was not evaluated.
    """
    drawn = lines_over(study, key, at)
    finals = final_values(study, metric).groupby("group")["value"]
    samples = {
        str(group): values.dropna().to_numpy(np.float64) for group, values in finals
    }
    counts = {samples[group].size for line in drawn.lines for group in line.groups}
    cuts = [""]

    def draw(axes: Axes, line: Line, x: np.ndarray, look: dict) -> Artist:
        found = [t_interval(samples[group]) for group in line.groups]
        mean, low, high = np.array(found, np.float64).T
        low, high, cut = layout.within(metric, low, high)
        cuts.append(cut)
        if line.is_level:
            if math.isfinite(low[0]):
                band = {"color": look["color"], "alpha": 0.15, "lw": 0}
                axes.axhspan(low[0], high[0], **band)
            return axes.axhline(mean[0], zorder=2, **look)
        errors = np.nan_to_num(np.array([mean - low, high - mean]))
        bars: Any = axes.errorbar(x, mean, errors, marker="o", ms=3, capsize=2, **look)
        return bars

    with style.context():
        figure, axes = _figure(study, key, drawn, draw, pinned(at), size)
        axes.set_ylabel(style.final_label(metric))
        several = max(counts, default=0) > 1
        ends = f"bars: 95 % t-intervals{max(cuts, key=len)}" if several else ""
        layout.add_note(
            figure,
            (
                "Final: mean of the last tenth of a run's evaluations",
                f"points: means over {layout.replicates(counts)}" if several else "",
                ends,
                _along(drawn),
            ),
            legend_below=size is not None,
        )
    return figure


def commits_over(
    study: Study,
    key: str,
    at: Mapping[str, Any] | None = None,
    size: Size | None = None,
) -> Figure:
    """Draws the commits until runs stopped at their target against a swept number.

    Kaplan-Meier medians with 95 % intervals; a triangle stands where fewer than half of
    the replicates stopped there, at the commits of the longest run. Lines are those of
    `final_over`.

    Args:
        study: finished or not, whose runs stop at a target.
        key: key swept over numbers.
        at: values of other keys that are swept, to which the figure is confined.
        size: inches, such as `style.size("one")`; by default as the legend needs.

    Raises:
        StudyError: the key is not swept over numbers, or others have too many values.
    """
    drawn = lines_over(study, key, at)
    table = runs(study)
    mine = {str(group): rows for group, rows in table.groupby("group")}
    marks: set[str] = set()

    def draw(axes: Axes, line: Line, x: np.ndarray, look: dict) -> Artist:
        found = [_median(mine[group]) for group in line.groups]
        median, low, high = np.array(found, np.float64).T
        most = np.array([mine[group]["commits"].max() for group in line.groups])
        known = np.isfinite(median)
        if line.is_level:
            level = median[0] if known[0] else math.nan
            return axes.axhline(level, zorder=2, **look)
        marks.update(["open"] * bool(np.isinf(high[known]).any()))
        marks.update(["missed"] * bool((~known).any()))
        high = np.where(np.isfinite(high), high, np.maximum(most, median))
        middle = median[known]
        errors = np.nan_to_num(np.array([middle - low[known], high[known] - middle]))
        bars: Any = axes.errorbar(
            x[known], middle, np.maximum(errors, 0),
            marker="o", ms=3, capsize=2, **look,
        )  # fmt: skip
        missed = {"ls": "none", "marker": "^", "mfc": "none", "color": look["color"]}
        (triangles,) = axes.plot(x[~known], most[~known], **missed)
        return bars if known.any() else triangles

    with style.context():
        figure, axes = _figure(study, key, drawn, draw, pinned(at), size)
        axes.set_yscale("log")
        axes.set_ylabel("Commits to the target")
        counts = {len(mine[group]) for line in drawn.lines for group in line.groups}
        layout.add_note(
            figure,
            (
                f"Points: medians over {layout.replicates(counts)}",
                "bars: 95 % intervals" if max(counts) > 1 else "",
                "open ones up to the longest run" if "open" in marks else "",
                "△: not reached by then" if "missed" in marks else "",
                _along(drawn),
            ),
            legend_below=size is not None,
        )
    return figure


def _along(drawn: Lines) -> str:
    """Returns words on keys that change together with the swept number."""
    keys = " and ".join(map(style.text, drawn.along))
    return f"along with it changes {keys}" if keys else ""


def _median(rows: pd.DataFrame) -> tuple[float, float, float]:
    reached = (rows["stop"] == "target").to_numpy(bool)
    return kaplan_meier_median(rows["commits"].to_numpy(np.float64), reached)


def is_wide(values: Any) -> bool:
    """Says whether values spread so far that their axis should be logarithmic."""
    known = np.asarray(values, np.float64)
    known = known[~np.isnan(known)]
    return bool(known.min() > 0 and known.max() / known.min() > RATIO)


def _shifted(x: np.ndarray, number: int, of: int, *, logarithmic: bool) -> np.ndarray:
    """Moves points a little aside, so that the bars of lines can be told apart."""
    part = 0.012 * (number - (of - 1) / 2)
    if logarithmic:
        return x * (x.max() / x.min()) ** part
    return x + part * (x.max() - x.min())


def _figure(
    study: Study, key: str, drawn: Lines, draw: Any, note: str, size: Size | None
) -> tuple[Figure, Axes]:
    """Draws all lines, and a legend next to them.

    Args:
        study: study with the figure's title.
        key: swept key.
        drawn: the lines.
        draw: draws one into axes, at some places and in a look; returns its handle.
        note: stands below the title.
        size: inches, or None.
    """
    labels = [style.text(line.label) for line in drawn.lines]
    looks = style.looks(line.label for line in drawn.lines)
    numbers = np.concatenate([line.numbers for line in drawn.lines])
    wide, many = is_wide(numbers), len(drawn.lines)
    width, height, _ = layout.legend_size(labels)
    size_in = size or (5.0 + width, max(3.6, 0.4 + height))
    figure = layout.titled(study, size_in, style.text(note, 80))
    axes = figure.add_subplot()
    handles = []
    for number, line in enumerate(drawn.lines):
        x = line.numbers
        if not line.is_level:
            x = _shifted(x, number, many, logarithmic=wide)
        handles.append(draw(axes, line, x, looks[line.label]._asdict()))
    if wide:
        axes.set_xscale("log")
    axes.set_xlabel(style.key_label(key))
    layout.add_legend(figure, handles, labels, size)
    return figure, axes
