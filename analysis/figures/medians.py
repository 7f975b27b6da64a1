"""Medians of the times, or commits, that it took to reach a target, over a sweep.

Replicates that never arrived are drawn as such, where they were last looked at.
"""

import math
import re
from collections.abc import Iterator, Sequence
from typing import cast

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
from .lines import At, Line, lines_over, pinned, swept_key
from .speed_ups import axis_label, target_words
from .sweeps import draw_line, figure_of_lines, is_wide

ROOM = 2.0
"""Times the largest amount, as far as intervals are drawn."""
MOST_LABELLED = 12
"""Most groups whose arrived replicates the caption counts; also most points of a line
with their own counts."""
LOW = 3.0
"""Inches below which a figure is low."""
CAPTIONS = {
    "^commits-over-": "Server updates until the target over the swept key",
    "^time-to-target-over-": "Virtual time until the target over the swept key, with "
    f"95 % intervals of medians; {MEDIANS}",
}


def standard(study: Study) -> Iterator[tuple[str, Figure]]:
    """Yields commits and times to the study's target over the swept number, if any."""
    key, target = swept_key(study), default_target(study)
    if key is not None and study.manifest["scenario"]["stop"].get("windowed"):
        yield f"commits-over-{plain(key)}", commits_over(study, key)
    if key is not None and target.is_known:
        figure = time_to_target_over(study, key, target.metric, target.value)
        yield f"time-to-target-over-{plain(key)}", figure


def time_to_target_over(
    study: Study, key: str, metric: str, value: float, at: At | None = None
) -> Figure:
    """Draws the virtual time to a target against a swept key.

    Medians with 95 % intervals. A replicate that did not reach the target
    is a hollow triangle at its end, or at the study's if it diverged or stalled; a line
    has a gap where half of them or more did not. Lines are those of `final_over`: only
    replicates are pooled.

    Args:
        study: Study, finished or not.
        key: Swept key, as in `final_over`.
        metric: Column of the table `evaluations`.
        value: Value of the metric to reach.
        at: Values of other keys that are swept, to which the figure is confined.

    Raises:
        StudyError: The key is not swept, others have too many values, the metric was
            not evaluated or cannot have the value.
    """
    times = times_to_target(study, metric, value)
    words = (resolution(times), target_words(study, metric, value))
    said = "; ".join(filter(None, words))
    figure, axes = _medians_over(study, key, times, said, at)
    # The label is longer than the axis, in a low figure also in two lines.
    breaks = r" (?=to )| (?=[≥≤])" if figure.get_figheight() < LOW else r" (?=to )"
    axes.set_ylabel(re.sub(breaks, "\n", axis_label(study, metric, value)))
    return figure


def commits_over(study: Study, key: str, at: At | None = None) -> Figure:
    """Draws the commits until runs stopped at their target against a swept key.

    Medians with 95 % intervals. A run that did not stop there is a hollow
    triangle at the commits that it made; a line has a gap where half or more of the
    replicates did. Lines are those of `final_over`.

    Args:
        study: Study, finished or not, whose runs stop at a target.
        key: Swept key, as in `final_over`.
        at: Values of other keys that are swept, to which the figure is confined.

    Raises:
        StudyError: The key is not swept, or others have too many values.
    """
    commits = commits_to_stop(study)
    said = resolution(commits, "commits")
    figure, axes = _medians_over(study, key, commits, said, at)
    axes.set_ylabel("Server updates to the target")
    return figure


def _medians_over(
    study: Study, key: str, times: pd.DataFrame, words: str, at: At | None
) -> tuple[Figure, Axes]:
    """Draws medians of `times_to_target`; the vertical axis has no label yet."""
    lines, along = lines_over(study, key, at)
    groups = [group for line in lines for group in line.groups]
    times = times.loc[times["group"].isin(groups)]
    counts = times.groupby("group").agg(arrived=("reached", "sum"), of=("time", "size"))
    shares = {row[0]: f"{row[1]} of {row[2]}" for row in counts.itertuples()}
    ceiling = ROOM * float(times["time"].max())
    longest = max(len(line.groups) for line in lines)
    few = len(lines) <= len(style.palette()) and longest <= MOST_LABELLED
    open_ends: list[bool] = []

    def draw(axes: Axes, line: Line, x: np.ndarray, look: dict) -> Artist:
        mine = [times.loc[times["group"] == group] for group in line.groups]
        ends = (rows[["low", "high"]].to_numpy(np.float64).T for rows in mine)
        found = np.array([median_time(*pair) for pair in ends])
        found[~np.isfinite(found[:, 0])] = math.nan
        median, low, high = found.T
        goes_on = high > ceiling
        open_ends.extend(goes_on)
        low, high = np.fmin(median, low), np.fmin(np.fmax(median, high), ceiling)
        handle = None
        if np.isfinite(median).any():
            handle = draw_line(axes, line, x, (median, low, high), look)
        if goes_on.any() and not line.is_level:  # a level's band ends with the axes
            axes.plot(
                x[goes_on], high[goes_on],
                color=look["color"], ls="none", marker=CARETUP, ms=5,
            )  # fmt: skip
        said = [shares[group] if few else "" for group in line.groups]
        marks = _draw_missed(axes, line, x, mine, said, look["color"])
        return cast(Artist, marks if handle is None else handle)

    with style.context():
        figure, axes = figure_of_lines(study, key, lines, draw, pinned(at))
        if is_wide(times["time"]):
            axes.set_yscale("log")
        else:
            axes.set_ylim(bottom=0)
        note = _words(counts, goes_on=any(open_ends), told=few)
        layout.add_note(figure, (*note, words, along))
        missed = counts.index[counts["arrived"] < counts["of"]]
        if 0 < len(missed) <= MOST_LABELLED:
            said = (
                f"{layout.name(study, group)} {shares[group]}"
                for group in groups
                if group in missed
            )
            layout.say(figure, f"arrived: {', '.join(said)}, of the others all")
    return figure, axes


def _draw_missed(
    axes: Axes,
    line: Line,
    x: np.ndarray,
    mine: Sequence[pd.DataFrame],
    shares: Sequence[str],
    color: str,
) -> Artist | None:
    """Draws replicates that did not arrive, and words on how many did."""
    late = [rows.loc[~rows["reached"], "time"].to_numpy() for rows in mine]
    if not sum(map(len, late)):  # an empty line would take room at the corner
        return None
    place = axes.transData
    if line.is_level:
        x, place = np.ones(1), axes.get_yaxis_transform()
    (marks,) = axes.plot(
        np.repeat(x, [ends.size for ends in late]), np.concatenate(late),
        ls="none", marker="^", ms=5, mfc="none", color=color, clip_on=False,
        transform=place,
    )  # fmt: skip
    for across, ends, share in zip(x, late, shares, strict=True):
        if share and ends.size:
            axes.annotate(
                share, (across, ends.max()), (5, 0),
                xycoords=place, textcoords="offset points",
                va="center", color=color, fontsize=layout.small(),
            )  # fmt: skip
    return marks


def _words(counts: pd.DataFrame, *, goes_on: bool, told: bool) -> Iterator[str]:
    reached, replicates = counts["arrived"], counts["of"]
    yield f"Points: medians over {layout.replicates(replicates)}"
    if replicates.max() > 1:
        unbounded = ", an arrow where it is unbounded" if goes_on else ""
        yield f"bars: {interval_name(int(replicates.min()))}{unbounded}"
    if (reached < replicates).any():
        share = " (k of n did)" if told else ""
        yield f"△: one that did not arrive, at its end{share}"
    if (2 * reached <= replicates).any():
        yield "no median where half or more did not"
