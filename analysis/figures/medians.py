"""Medians of the times, or commits, that it took to reach a target, over a sweep.

Replicates that never arrived are drawn as such, where they were last looked at.
"""

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.markers import CARETUP

from ..frames import Study
from ..statistics import MEDIANS, interval_name, median_time
from ..targets import commits_to_stop, default_target, resolution, times_to_target
from . import layout, style
from .files import plain
from .lines import Line, Lines, lines_over, pinned, swept_key
from .speed_ups import axis_label, target_words
from .sweeps import draw_line, figure_of_lines, is_wide, words_along

ROOM = 2.0
"""Times the largest amount, as far as intervals are drawn."""
MOST_LABELLED = 12
"""Groups of which the caption says how many replicates arrived, and points of a line
that say it of themselves."""
LOW = 3.0
"""Inches below which a figure is low."""
CAPTIONS = {
    "^commits-over-": "Commits until the target over what is swept",
    "^time-to-target-over-": "Virtual time until the target over what is swept, with "
    f"95 % intervals of medians; {MEDIANS}",
}
"""Captions of the standard figures, by a pattern of their names."""


def standard(study: Study) -> Iterator[tuple[str, Figure]]:
    """Yields commits and times to the study's target over the swept number, if any."""
    key, target = swept_key(study), default_target(study)
    if key is not None and study.manifest["scenario"]["stop"].get("windowed"):
        yield f"commits-over-{plain(key)}", commits_over(study, key)
    if key is not None and target.is_known:
        figure = time_to_target_over(study, key, target.metric, target.value)
        yield f"time-to-target-over-{plain(key)}", figure


def time_to_target_over(
    study: Study,
    key: str,
    metric: str,
    value: float,
    at: Mapping[str, Any] | None = None,
) -> Figure:
    """Draws the virtual time to a target against a swept number.

    Medians with 95 % intervals. A replicate that did not reach the target
    is a hollow triangle at its end, or at the study's if it diverged or stalled; a line
    has a gap where half of them or more did not. Lines are those of `final_over`: only
    replicates are pooled.

    Args:
        study: Study, finished or not.
        key: Key swept over numbers.
        metric: Column of the table `evaluations`.
        value: Value of the metric to reach.
        at: Values of other keys that are swept, to which the figure is confined.

    Raises:
        StudyError: The key is not swept over numbers, others have too many values, the
            metric was not evaluated or cannot have the value.
    """
    times = times_to_target(study, metric, value)
    words = (resolution(times), target_words(study, metric, value))
    said = "; ".join(filter(None, words))
    figure, axes = _medians_over(study, key, times, said, at)
    # The label is longer than the axis, in a low figure also in two lines.
    breaks = r" (?=to )| (?=[≥≤])" if figure.get_figheight() < LOW else r" (?=to )"
    axes.set_ylabel(re.sub(breaks, "\n", axis_label(study, metric, value)))
    return figure


def commits_over(
    study: Study,
    key: str,
    at: Mapping[str, Any] | None = None,
) -> Figure:
    """Draws the commits until runs stopped at their target against a swept number.

    Medians with 95 % intervals. A run that did not stop there is a hollow
    triangle at the commits that it made; a line has a gap where half or more of the
    replicates did. Lines are those of `final_over`.

    Args:
        study: Study, finished or not, whose runs stop at a target.
        key: Key swept over numbers.
        at: Values of other keys that are swept, to which the figure is confined.

    Raises:
        StudyError: The key is not swept over numbers, or others have too many values.
    """
    commits = commits_to_stop(study)
    said = resolution(commits, "commits")
    figure, axes = _medians_over(study, key, commits, said, at)
    axes.set_ylabel("Commits to the target")
    return figure


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


def _medians_over(
    study: Study,
    key: str,
    times: pd.DataFrame,
    words: str,
    at: Mapping[str, Any] | None,
) -> tuple[Figure, Axes]:
    """Draws medians against a swept number; the vertical axis has no label yet.

    Args:
        study: Study with the lines.
        key: Swept key.
        times: What it took each run, as `times_to_target` has it.
        words: Further words for the note.
        at: Values to which the figure is confined.
    """
    columns = ["time", "reached", "low", "high"]
    taken = {
        str(group): Taken(*(rows[name].to_numpy() for name in columns))
        for group, rows in times.groupby("group")
    }
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
        low, high = np.fmin(median, low), np.fmin(np.fmax(median, high), ceiling)
        handle: Any = None
        if np.isfinite(median).any():
            handle = draw_line(axes, line, x, (median, low, high), look)
        if goes_on.any() and not line.is_level:  # a level's band ends with the axes
            arrows: dict[str, Any] = {"ls": "none", "marker": CARETUP, "ms": 5}
            axes.plot(x[goes_on], high[goes_on], color=look["color"], **arrows)
        place = {"transform": axes.get_yaxis_transform()} if line.is_level else {}
        across = np.ones(1) if line.is_level else x
        marks: Any = _draw_missed(axes, across, mine, look, place, told=few)
        return marks if handle is None else handle

    with style.context():
        figure, axes = figure_of_lines(study, key, drawn, draw, pinned(at))
        if is_wide(amounts):
            axes.set_yscale("log")
        else:
            axes.set_ylim(bottom=0)
        missed = [group for group in groups if not taken[group].reached.all()]
        shown = [taken[group] for group in groups]
        note = _words(drawn, shown, words, goes_on=any(open_ends), told=few)
        layout.add_note(figure, note)
        if 0 < len(missed) <= MOST_LABELLED:
            shares = (f"{layout.name(study, g)} {taken[g].share}" for g in missed)
            layout.say(figure, f"arrived: {', '.join(shares)}, of the others all")
    return figure, axes


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
    counts = {each.reached.size for each in shown}
    yield f"Points: medians over {layout.replicates(counts)}"
    if max(counts) > 1:
        unbounded = ", an arrow where it is unbounded" if goes_on else ""
        yield f"bars: {interval_name(min(counts))}{unbounded}"
    if any(not each.reached.all() for each in shown):
        share = " (k of n did)" if told else ""
        yield f"△: one that did not arrive, at its end{share}"
    if any(2 * each.reached.sum() <= each.reached.size for each in shown):
        yield "no median where half or more did not"
    yield words
    yield words_along(drawn)
