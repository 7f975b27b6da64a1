"""Bars of times to a target, with how many times faster each group is."""

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ..frames import Study, groups
from ..paired import times_as_fast
from ..statistics import MEDIANS, interval_name
from ..targets import (
    MetricTarget,
    default_target,
    not_reached,
    origin,
    resolution,
    time_to_target,
    times_to_target,
)
from . import facets, layout, style

RATIO = "median over pairs of replicates"
"""Caption of the ratio, which is the same as in a claim on speed."""


CAPTIONS = {
    "^time-to-target(-[^o]|$)": f"Virtual time until the target: medians; {MEDIANS}"
}


def standard(study: Study) -> Iterator[tuple[str, Figure]]:
    """Yields the time to the study's target, where there are groups to compare."""
    target = default_target(study)
    if len(groups(study)) > 1 and target.is_known:
        yield "time-to-target", speed_up_bars(study, target.metric, target.value)


def speed_up_bars(study: Study, metric: str, value: float) -> Figure:
    """Draws each group's median time to a target, with its 95 % interval.

    Labels are speed-ups over the slowest group, measured as for a claim
    (`paired.times_as_fast`). A hatched bar ends at the horizon of a group that did not
    reach the target. Where `convergence` has a panel for each swept value, the axis has
    these values, each variant has a colour, and the slowest is of the same value.

    Args:
        study: Study, finished or not.
        metric: Column of the table `evaluations`.
        value: Value of the metric to reach.
    """
    table = time_to_target(study, metric, value).set_index("group")
    times = times_to_target(study, metric, value)
    horizons = times.groupby("group")["time"].max()
    divided, looks = facets.facets(study), facets.looks(study)
    panels: list[tuple[str, list[Any]]] = [("", list(table.index))]
    if divided is not None and divided.by_value:
        panels = divided.panels
    medians = dict(zip(table.index, table["median"].to_numpy(np.float64), strict=True))
    reached = np.isfinite([*medians.values()])
    highs = table["high"].to_numpy(np.float64)[reached]
    bars = [
        (group, max(mine, key=lambda each: np.nan_to_num(medians[each], nan=np.inf)))
        for _, mine in panels
        for group in mine
    ]
    ratios = {
        slowest: times_as_fast(study, slowest, metric, value).set_index("group")
        for slowest in dict.fromkeys(slowest for _, slowest in bars)
    }
    with style.context():
        figure, axes = layout.rows(study, [group for group, _ in bars])
        where = {"xytext": (8, 0), "textcoords": "offset points", "va": "center"}
        handles: dict[str, Artist] = {}
        for row, (group, slowest) in enumerate(bars):
            one, tip, color = table.loc[group], medians[group], looks[group].color
            share = f"({int(one['reached'])} of {int(one['replicates'])})"
            if math.isfinite(tip):
                (bar,) = axes.barh(row, tip, height=0.6, color=color, alpha=0.6)
                label, fast = "at once" if tip <= 0 else "", ratios[slowest].loc[group]
                if tip > 0 and not math.isnan(fast["ratio"]):
                    label = f"{fast['bound']} {fast['ratio']:.3g}×"
                open_until = max(tip, horizons[group])
                tip = _draw_interval(axes, row, one, open_until)
            else:
                tip = horizons[group]
                (bar,) = axes.barh(row, tip, height=0.6, fill=False, edgecolor=color)
                bar.set_hatch("////")
                known = not_reached(one["after"], " s")
                label = known if one["reached"] else "not reached"
            said = f"{label} {share}".lstrip()
            axes.annotate(said, (tip, row), fontsize=layout.small(), **where)
            if len(panels) > 1 and divided is not None:
                handles.setdefault(divided.words[group], bar)
        if len(panels) > 1:
            sizes = np.array([len(mine) for _, mine in panels])
            ends = np.cumsum(sizes)
            across = {"transform": axes.get_yaxis_transform(), "lw": 0.6}
            axes.hlines(ends[:-1] - 0.5, 0, 1, color=facets.PALE, **across)
            middles = ends - (sizes + 1) / 2
            axes.set_yticks(middles, [style.text(title, 26) for title, _ in panels])
            names = [style.text(name) for name in handles]
            layout.add_legend(figure, [*handles.values()], names)
        axes.set_xlim(left=0)
        axes.set_xlabel(axis_label(study, metric, value))
        few = int(table["replicates"].min())
        note = [*_bar_words(reached, highs, few), resolution(times)]
        if len(panels) > 1:
            note.append("the slowest: at the same value")
        layout.add_note(figure, [*note, target_words(study, metric, value)])
        if len(table) <= len(style.palette()):
            medians_said = (
                f"{layout.name(study, group)} {median:.4g} s"
                for group, median in medians.items()
                if math.isfinite(median)
            )
            layout.say(figure, f"medians: {', '.join(medians_said) or 'none'}")
    return figure


def axis_label(study: Study, metric: str, value: float) -> str:
    """Returns the label of an axis of times to a target."""
    return f"Virtual time to {layout.goal(study, metric, value)} (s)"


def target_words(study: Study, metric: str, value: float) -> str:
    """Returns words on a target the scenario leaves open; "" of one that it states."""
    if default_target(study) != MetricTarget(metric, value, stated=False):
        return ""
    return f"target: {origin(study, metric)}"


def _bar_words(reached: np.ndarray, highs: np.ndarray, few: int) -> list[str]:
    arrow = ", an arrow where it is unbounded" if np.isinf(highs).any() else ""
    known = not np.isnan(highs).all()
    return [
        "Bars: median",
        f"lines: its {interval_name(few)}{arrow}" if known else "",
        f"×: times as fast as the slowest, {RATIO}",
        "(k of n): replicates that reached it",
        "" if reached.all() else "hatched: half or more did not, to where they tried",
    ]


def _draw_interval(axes: Axes, row: int, one: pd.Series, open_until: float) -> float:
    """Draws a median's interval, an arrow where it is unbounded; returns its end."""
    low, high = float(one["low"]), float(one["high"])
    if math.isnan(low) or math.isnan(high):
        return float(one["median"])
    end = high if math.isfinite(high) else open_until
    axes.plot([low, end], [row, row], color=style.ink(), lw=1.2)
    axes.plot([low], [row], color=style.ink(), marker="|", ms=7)
    closing = "|" if math.isfinite(high) else ">"
    axes.plot([end], [row], color=style.ink(), marker=closing, ms=5)
    return end
