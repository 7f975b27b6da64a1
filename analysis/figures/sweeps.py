"""Final values over a swept key."""

from collections.abc import Callable, Iterator
from typing import cast

import numpy as np
import pandas as pd
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import NullFormatter
from numpy.typing import ArrayLike

from ..frames import Study, first_metric, runs
from ..instants import in_words, seen_at, too_late, values_at
from ..spending import protected
from ..statistics import t_interval
from ..targets import final_values, for_means
from . import layout, style
from .files import plain
from .lines import At, Line, lines_over, pinned, swept_key

FINAL = "Final: mean of the last tenth of a run's evaluations"
RATIO = 20.0
"""Ratio of the largest to the smallest swept value; from there on the axis is
logarithmic."""
LEAST_GEOMETRIC = 3
"""Values whose growth can be seen."""
EVEN = 1.5
"""Ratio of the largest to the smallest step of logarithms that are still even."""
MOST_TICKS = 8
"""Swept values that are ticks of their axis."""

Ends = tuple[np.ndarray, np.ndarray, np.ndarray]
"""Means or medians, and lower and upper ends of their intervals."""
Draw = Callable[[Axes, Line, np.ndarray, dict], Artist]
"""Draws a line through some points in a style, and returns its handle."""


CAPTIONS = {
    "^(?!(?:commits|time-to-target)-over-).*-over-(?!.*-and-)": "Final values (of the "
    "last tenth of evaluations) over the swept key, with 95 % intervals"
}


def standard(study: Study) -> Iterator[tuple[str, Figure]]:
    """Yields the first metric over the swept number, if there is one."""
    key = swept_key(study)
    if key is not None:
        metric = first_metric(study.manifest)
        yield f"{metric}-over-{plain(key)}", final_over(study, key, metric)


def final_over(
    study: Study,
    key: str,
    metric: str = "test_accuracy",
    at: At | None = None,
    *,
    after: float | None = None,
    against: str = "time",
) -> Figure:
    """Draws final values against a swept key, a line for each variant.

    With `after` they are those at an instant, as in `value_at`. Where other keys are
    swept as well, there is a line for each of their values: only replicates are
    averaged. Bars are 95 % t-intervals over them, as far as the metric can go. A
    variant that is not swept is a horizontal line with its interval as a band.

    Args:
        study: Study, finished or not.
        key: Swept key, in full or its end; values that are no numbers are categories.
        metric: Column of the table `evaluations`.
        at: Values of other keys that are swept, to which the figure is confined.
        after: Instant at which the metric is looked at: virtual seconds, or what else
            `against` counts; without it, final values are drawn.
        against: Count of `after`, of `frames.COUNTED` or `phases.PHASES`.

    Raises:
        StudyError: The key is not swept, others have too many values, the metric was
            not evaluated, or no run lasted so long.
    """
    lines, along = lines_over(study, key, at)
    if after is None:
        values, privacy = final_values(study, metric), ""
        label, about = style.final_label(metric, study), FINAL
        if (runs(study)["stop"] == "target").any():
            about += "; where a run reached stop.target, it ended there"
    else:
        values = _values_at(study, metric, after, against)
        privacy = protected(study, against)
        when = in_words(after, against)
        label = f"{style.metric_label(metric, study)} after {when}"
        about = seen_at(study, metric, after, against)
    samples = {
        str(group): each.dropna().to_numpy(np.float64)
        for group, each in values.groupby("group")["value"]
    }
    counts = {samples[group].size for line in lines for group in line.groups}
    cut = layout.Cut(study, metric)

    def draw(axes: Axes, line: Line, x: np.ndarray, look: dict) -> Artist:
        found = [t_interval(samples[group]) for group in line.groups]
        mean, low, high = np.array(found, np.float64).T
        low, high = cut.within(low, high)
        return draw_line(axes, line, x, (mean, low, high), look)

    with style.context():
        figure, axes = figure_of_lines(study, key, lines, draw, pinned(at))
        axes.set_ylabel(label)
        note = [about]
        if max(counts, default=0) > 1:
            note.append(f"points: means over {layout.replicates(counts)}")
            note.append(f"bars: 95 % t-intervals{cut}")
        layout.add_note(figure, (*note, along, privacy))
    return figure


def draw_line(axes: Axes, line: Line, x: np.ndarray, ends: Ends, look: dict) -> Artist:
    """Draws means or medians with their intervals, and returns their handle."""
    middle, low, high = ends
    if line.is_level:
        if low[0] < high[0]:
            axes.axhspan(low[0], high[0], color=look["color"], alpha=0.15, lw=0)
        return axes.axhline(middle[0], zorder=2, **look)
    arms = layout.arms(middle, low, high)
    bars = axes.errorbar(x, middle, arms, marker="o", ms=3, capsize=2, **look)
    return cast(Artist, bars)  # a container, which a legend takes as it takes artists


def _values_at(study: Study, metric: str, at: float, against: str) -> pd.DataFrame:
    """Returns the values of runs at an instant; none of a group with a mere bound."""
    values = for_means(study, metric, values_at(study, metric, at, against))
    if values["value"].isna().all():
        raise too_late(study, at, against)
    endless = values["low"].eq(-np.inf) | values["high"].eq(np.inf)
    bounded = values["group"].isin(values.loc[endless, "group"])
    return values.assign(value=values["value"].mask(bounded))


def is_wide(values: ArrayLike) -> bool:
    """Returns whether values spread enough for a logarithmic axis."""
    known = np.asarray(values, np.float64)
    known = known[np.isfinite(known)]
    return bool(known.size and known.min() > 0 and known.max() / known.min() > RATIO)


def is_geometric(values: ArrayLike) -> bool:
    """Returns whether swept values grow by about the same factor at each step.

    That is so of 1, 2, 4, 8 and of 10, 20, 50, 100, but not of 1, 2, 3 or 4, 6, 8.
    """
    known = np.unique(np.asarray(values, np.float64))
    known = known[np.isfinite(known)]
    if known.size < LEAST_GEOMETRIC or known[0] <= 0:
        return False
    steps, factors = np.diff(known), np.diff(np.log(known))
    spread = factors.max() / factors.min()
    return bool(spread < EVEN and spread < steps.max() / steps.min())


def _scale_axis(axes: Axes, numbers: np.ndarray, *, logarithmic: bool) -> None:
    """Scales the x axis, with ticks at what was swept where there is room.

    Else Matplotlib names its own, or powers of ten and no numbers between them.
    """
    known = np.unique(numbers[np.isfinite(numbers)])
    places = known
    if logarithmic:
        axes.set_xscale("log")
        axes.xaxis.set_minor_formatter(NullFormatter())
        places = np.log(known)
    apart = np.diff(places) / np.ptp(places)
    if known.size <= MOST_TICKS and apart.min(initial=1.0) > 1 / (2 * MOST_TICKS):
        axes.set_xticks(known, [f"{value:g}" for value in known])
        axes.set_xticks([], minor=True)


def _shifted(x: np.ndarray, number: int, of: int, *, logarithmic: bool) -> np.ndarray:
    """Moves points a little aside, so that the bars of lines can be told apart."""
    part = 0.012 * (number - (of - 1) / 2)
    if logarithmic:
        return x * (x.max() / x.min()) ** part
    return x + part * (x.max() - x.min())


def figure_of_lines(
    study: Study, key: str, lines: list[Line], draw: Draw, note: str
) -> tuple[Figure, Axes]:
    """Draws all lines, and a legend next to them."""
    labels = [style.text(line.label) for line in lines]
    looks = style.looks(line.label for line in lines)
    numbers = np.concatenate([line.numbers for line in lines])
    names, many = lines[0].names, len(lines)
    wide = not names and (is_wide(numbers) or is_geometric(numbers))
    figure, axes = layout.single(study, 5.0, 3.6, style.text(note, 80))
    handles = []
    for number, line in enumerate(lines):
        x, look = line.numbers, looks[line.label]._asdict()
        if not line.is_level:
            x = _shifted(x, number, many, logarithmic=wide)
            if names and many <= len(style.palette()):
                look["linestyle"] = "none"  # nothing is between two categories
        handles.append(draw(axes, line, x, look))
    if names:
        axes.set_xticks(range(len(names)), [style.text(name, 22) for name in names])
        axes.tick_params(axis="x", labelrotation=30 if max(map(len, names)) > 8 else 0)
        axes.set_xlim(-0.5, len(names) - 0.5)
    else:
        _scale_axis(axes, numbers, logarithmic=wide)
    axes.set_xlabel(style.key_label(key, study))
    layout.add_legend(figure, handles, labels)
    return figure, axes
