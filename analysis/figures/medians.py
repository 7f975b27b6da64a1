"""Medians of what it took to reach something, over a swept number.

Replicates that never arrived are drawn as such, where they were last looked at.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.markers import CARETUP

from ..frames import Study
from ..statistics import interval_name, median_time
from . import layout, style
from .layout import Size
from .lines import Line, Lines, lines_over, pinned
from .sweeps import figure_of_lines, is_wide, words_along

ROOM = 2.0
"""Times the largest amount, as far as intervals are drawn."""
MOST_LABELLED = 12
"""Groups of which the caption says how many replicates arrived, and points of a line
that say it of themselves."""


class Taken(NamedTuple):
    """What it took the replicates of a group.

    Attributes:
        amounts: Amount until each arrived, or was last looked at.
        reached: Whether each arrived.
        low: Amount up to which each had not arrived; infinite if it never will.
        high: Amount at which it was seen to have arrived; infinite if it was not.
    """

    amounts: np.ndarray
    reached: np.ndarray
    low: np.ndarray
    high: np.ndarray

    @property
    def share(self) -> str:
        """How many replicates arrived, of all."""
        return f"{int(self.reached.sum())} of {self.reached.size}"


def taken_by(times: pd.DataFrame) -> dict[str, Taken]:
    """Returns what it took each group, of a table such as that of `times_to_target`."""
    columns = ["time", "reached", "low", "high"]
    return {
        str(group): Taken(*(rows[name].to_numpy() for name in columns))
        for group, rows in times.groupby("group")
    }


def medians_over(
    study: Study,
    key: str,
    taken: Mapping[str, Taken],
    words: str = "",
    at: Mapping[str, Any] | None = None,
    size: Size | None = None,
) -> tuple[Figure, Axes]:
    """Draws medians against a swept number, a line for each variant.

    Lines are those of `final_over`: only replicates are pooled. A line has a gap where
    half or more did not arrive; a hollow triangle is a replicate that did not, at the
    amount up to which it was looked at. Axes are logarithmic where values spread far.

    Args:
        study: Study, finished or not.
        key: Key swept over numbers.
        taken: What it took each group.
        words: Further words for the note.
        at: Values of other keys that are swept, to which the figure is confined.
        size: Width and height in inches, such as `style.size("one")`; by default as the
            legend needs.

    Returns:
        The figure, and its axes, whose vertical one has no label yet.

    Raises:
        StudyError: The key is not swept over numbers, or others have too many values.
    """
    size = layout.for_print(size)
    drawn = lines_over(study, key, at)
    groups = [group for line in drawn.lines for group in line.groups]
    amounts = np.concatenate([taken[group].amounts for group in groups])
    ceiling = ROOM * float(amounts.max())
    longest = max(len(line.groups) for line in drawn.lines)
    few = len(drawn.lines) <= len(style.palette()) and longest <= MOST_LABELLED
    open_ends: list[bool] = []

    def draw(axes: Axes, line: Line, x: np.ndarray, look: dict) -> Artist:
        mine = [taken[group] for group in line.groups]
        found = np.array([median_time(each.low, each.high) for each in mine])
        found[~np.isfinite(found[:, 0])] = math.nan
        median, low, high = found.T
        goes_on = high > ceiling
        open_ends.extend(goes_on)
        ends = np.fmin(median, low), np.fmin(np.fmax(median, high), ceiling)
        draw_line = _draw_level if line.is_level else _draw_points
        handle = draw_line(axes, x, (median, *ends), goes_on, look)
        place = {"transform": axes.get_yaxis_transform()} if line.is_level else {}
        across = np.ones(1) if line.is_level else x
        marks = _draw_missed(axes, across, mine, look, place, told=few)
        known: Any = marks if handle is None else handle
        return known

    with style.context():
        figure, axes = figure_of_lines(study, key, drawn, draw, pinned(at), size)
        if is_wide(amounts):
            axes.set_yscale("log")
        else:
            axes.set_ylim(bottom=0)
        missed = [group for group in groups if not taken[group].reached.all()]
        shown = [taken[group] for group in groups]
        note = _words(drawn, shown, words, goes_on=any(open_ends), told=few)
        layout.add_note(figure, note, legend_below=size is not None)
        if 0 < len(missed) <= MOST_LABELLED:
            shares = (f"{layout.name(study, g)} {taken[g].share}" for g in missed)
            layout.say(figure, f"arrived: {', '.join(shares)}, of the others all")
    return figure, axes


Ends = tuple[np.ndarray, np.ndarray, np.ndarray]
"""Medians, and lower and upper ends of their intervals; NaN where not known."""


def _draw_points(
    axes: Axes, x: np.ndarray, ends: Ends, goes_on: np.ndarray, look: dict
) -> Artist | None:
    """Draws a line through medians; None where none is known."""
    median, low, high = ends
    errors = np.nan_to_num(np.array([median - low, high - median]))
    bars: Any = axes.errorbar(x, median, errors, marker="o", ms=3, capsize=2, **look)
    arrows: dict[str, Any] = {"ls": "none", "marker": CARETUP, "ms": 5}
    if goes_on.any():
        axes.plot(x[goes_on], high[goes_on], color=look["color"], **arrows)
    return None if np.isnan(median).all() else bars


def _draw_level(
    axes: Axes, x: np.ndarray, ends: Ends, goes_on: np.ndarray, look: dict
) -> Artist | None:
    """Draws the median of what is not swept as a level; None where it is not known."""
    del x, goes_on  # an unbounded band ends with the axes
    median, low, high = (float(end[0]) for end in ends)
    if math.isnan(median):
        return None
    if low < high:
        axes.axhspan(low, high, color=look["color"], alpha=0.15, lw=0)
    return axes.axhline(median, zorder=2, **look)


def _draw_missed(
    axes: Axes,
    x: np.ndarray,
    mine: Sequence[Taken],
    look: dict,
    place: dict,
    *,
    told: bool,
) -> Artist | None:
    """Draws replicates that did not arrive, and how many did where there is room."""
    late = [~each.reached for each in mine]
    across = [np.full(each.sum(), at) for at, each in zip(x, late, strict=True)]
    up = [each.amounts[rows] for each, rows in zip(mine, late, strict=True)]
    if not sum(map(len, up)):  # an empty line would take room at the corner
        return None
    (marks,) = axes.plot(
        np.concatenate(across), np.concatenate(up),
        ls="none", marker="^", ms=5, mfc="none", color=look["color"], clip_on=False,
        **place,
    )  # fmt: skip
    for number, each in enumerate(mine):
        if told and late[number].any():
            axes.annotate(
                each.share,
                (x[number], up[number].max()),
                xycoords=place.get("transform", "data"),
                xytext=(5, 0),
                textcoords="offset points",
                va="center",
                color=look["color"],
                fontsize=layout.small(),
            )
    return marks


def _words(
    drawn: Lines, shown: Sequence[Taken], words: str, *, goes_on: bool, told: bool
) -> Iterator[str]:
    """Yields words on points, bars and triangles."""
    counts = {each.reached.size for each in shown}
    yield f"Points: medians over {layout.replicates(counts)}"
    if max(counts) > 1:
        unbounded = ", an arrow where it is unbounded" * goes_on
        yield f"bars: {interval_name(min(counts))}{unbounded}"
    if any(not each.reached.all() for each in shown):
        share = " (k of n did)" * told
        yield f"△: one that did not arrive, at its end{share}"
    if any(2 * each.reached.sum() <= each.reached.size for each in shown):
        yield "no median where half or more did not"
    yield words
    yield words_along(drawn)
