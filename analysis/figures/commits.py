"""Commits until runs stopped at their target, over a swept number."""

import math
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from analysis.figures import layout, style
from analysis.figures.layout import Size
from analysis.figures.lines import Line, lines_over, pinned, swept_key
from analysis.figures.names import plain
from analysis.figures.sweeps import figure_of_lines, words_along
from analysis.frames import Study, runs
from analysis.statistics import kaplan_meier_median

CAPTIONS = {"^commits-over-": "Commits until the target over what is swept"}
"""Captions of the standard figures, by a pattern of their names."""


def standard(study: Study) -> Iterator[tuple[str, Figure]]:
    """Yields the figure if runs stop at a diagnostic and a number is swept."""
    key = swept_key(study)
    if key is not None and study.manifest["scenario"]["stop"].get("windowed"):
        yield f"commits-over-{plain(key)}", commits_over(study, key)


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
        study: Study, finished or not, whose runs stop at a target.
        key: Key swept over numbers.
        at: Values of other keys that are swept, to which the figure is confined.
        size: Width and height in inches, such as `style.size("one")`; by default as the
            legend needs.

    Raises:
        StudyError: The key is not swept over numbers, or others have too many values.
    """
    size = layout.for_print(size)
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
        # An open interval ends at the longest run, where observation ended.
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
        figure, axes = figure_of_lines(study, key, drawn, draw, pinned(at), size)
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
                words_along(drawn),
            ),
            legend_below=size is not None,
        )
    return figure


def _median(rows: pd.DataFrame) -> tuple[float, float, float]:
    reached = (rows["stop"] == "target").to_numpy(bool)
    return kaplan_meier_median(rows["commits"].to_numpy(np.float64), reached)
