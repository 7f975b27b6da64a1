"""Figures of a study; each call returns a new one and touches no global state."""

import math

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

from analysis import clients, staleness
from analysis.curves import mean_curve
from analysis.figures import layout, style
from analysis.figures.layout import Size
from analysis.figures.sweeps import is_wide
from analysis.frames import Study, evaluations, groups, joined, metric_of, runs
from analysis.phases import evaluations_by
from analysis.targets import (
    HIGHER_IS_BETTER,
    final_values,
    time_to_target,
    times_to_target,
)
from simulator.trace import StudyError

MAX_PANELS = 12
ROOM = 2.0
"""Times the longest time, as far as intervals of others are drawn."""
SHOWN = 0.995
"""Part of a distribution that a panel shows; it says how much lies beyond."""


def convergence(
    study: Study,
    metric: str = "test_accuracy",
    against: str = "time",
    size: Size | None = None,
) -> Figure:
    """Draws each group's mean curve with its 95 % t-interval over replicates.

    An interval is drawn as far as the metric can go: an accuracy is not above 1. A note
    below says what is drawn. A centralised group is a dashed horizontal line at the
    mean of its final values: its time is not that of any clients. So is a group that
    counts no such thing, as one without privacy against epsilon.

    Args:
        study: finished or not.
        metric: a column of evaluations.
        against: what is counted, of `frames.COUNTED` or `phases.PHASES`.
        size: inches, such as `style.size("one")`; by default as the legend needs.

    Raises:
        StudyError: there is no such column, or nothing is counted in any group.
    """
    known = groups(study)
    looks, axis = style.looks(known), layout.axis(study, against)
    references = _references(study, against)
    curves = {
        group: mean_curve(study, group, metric, against)
        for group in known
        if group not in references
    }
    labels = [style.text(layout.label(study, group)) for group in known]
    with style.context():
        width, height, _ = layout.legend_size(labels)
        figure = layout.titled(study, size or (5.2 + width, max(3.6, 0.2 + height)))
        axes = figure.add_subplot()
        handles, cuts = [], dict.fromkeys([""])
        for group in known:
            if group in references:
                final = _final_mean(study, group, metric)
                look = looks[group]._replace(linestyle=style.DASHED)
                handles.append(axes.axhline(final, zorder=2, **look._asdict()))
                continue
            curve = curves[group]
            x = axis.scale * curve["x"].to_numpy()
            low, high, cut = layout.within(
                metric, curve["low"].to_numpy(), curve["high"].to_numpy()
            )
            cuts[cut] = None
            color = looks[group].color
            band = {"color": color, "alpha": 0.2, "lw": 0, "zorder": 1}
            axes.fill_between(x, low, high, step="post", **band)
            line = {"drawstyle": "steps-post", "zorder": 3, **looks[group]._asdict()}
            handles += axes.plot(x, curve["mean"], **line)
        ends = pd.Series([curve["x"].iloc[-1] for curve in curves.values()])
        if against == "epsilon" and is_wide(ends):
            axes.set_xscale("log")
        else:
            axes.set_xlim(left=0)
        if metric in style.LOGARITHMIC:
            layout.make_logarithmic(axes)
        axes.set(xlabel=axis.label, ylabel=style.metric_label(metric))
        layout.add_legend(figure, handles, labels, size)
        counts = {int(curve["replicates"].iloc[0]) for curve in curves.values()}
        layout.add_note(
            figure,
            (
                _bands(counts, max(cuts, key=len)),
                "dashed: mean final value" if references else "",
                _content(study, known) if against == "commits" else "",
            ),
            legend_below=size is not None,
        )
    return figure


def _bands(counts: set[int], cut: str) -> str:
    """Returns what lines and bands of mean curves are."""
    if max(counts) < 2:
        return "Lines: one replicate of each"
    several = layout.replicates(counts)
    return f"Lines: means over {several}; bands: 95 % t-intervals{cut}"


def _content(study: Study, known: list[str]) -> str:
    """Returns how much a commit applies, where that differs between groups."""
    last = evaluations(study).groupby("run").last()
    ends = last.loc[last["commits"] > 0]
    each = (ends["contributions"] / ends["commits"]).groupby(ends["group"]).mean()
    of = [float(each[group]) for group in known if group in each.index]
    if len(of) < 2 or max(of) <= 1.01 * min(of):
        return ""
    return f"a commit applies {min(of):.3g} to {max(of):.3g} contributions, by group"


def staleness_histogram(
    study: Study, group: str, law: staleness.Law | None = None
) -> Figure:
    """Draws the distribution of each client's staleness in a group of replicates.

    Of more than 12 clients, 12 are shown, evenly spread from the first to the last.
    They have the names that the group's first run gives them.

    Args:
        study: finished or not.
        group: of runs.
        law: gives ages in commits, and their probabilities, that a client's staleness
            should follow in the steady state; drawn over the bars, which are then of
            what follows the start of each run.

    Raises:
        ValueError: nothing was measured in such a group.
    """
    table = joined(study, "staleness")
    table = table[table["group"] == group]
    if table.empty:
        raise ValueError(f"the study has no staleness of a group {group!r}")
    embeddings = (table["quantity"] == "embedding").any()
    quantity = "embedding" if embeddings else "contribution"
    everyone = np.unique(table.loc[table["quantity"] == quantity, "client"])
    spread = np.linspace(0, len(everyone) - 1, min(len(everyone), MAX_PANELS))
    shown = [int(client) for client in everyone[np.rint(spread).astype(int)]]
    known = clients.of_run(study, int(table["run"].iloc[0]))
    names = clients.titles(known, shown)
    columns = min(len(shown), 4)
    rows = math.ceil(len(shown) / columns)
    title = style.text(layout.name(study, group), 60)
    table = runs(study)
    (variant,) = table.loc[table["group"] == group, "variant"].unique()
    points = table.loc[table["variant"] == variant, "group"].nunique()
    if points > 1:
        title += f"; 1 of {points} swept points"
    if len(shown) < len(everyone):
        title += f"; {len(shown)} of {len(everyone)} clients"
    color = style.looks(groups(study))[group].color
    with style.context():
        size = (max(4.2, 0.4 + 2.1 * columns), 1.1 + 1.7 * rows)
        figure = layout.titled(study, size, title)
        for number, client in enumerate(shown, start=1):
            axes = figure.add_subplot(rows, columns, number)
            name = style.text(names[number - 1], 26)
            steady = law is not None
            frame = staleness.histogram(study, group, client, quantity, steady=steady)
            said = _draw_histogram(axes, frame, color)
            if law is not None:
                axes.plot(*law(client), color=style.ink(), lw=1.2, zorder=4)
            axes.set_ylim(bottom=0)
            small = mpl.rcParams["xtick.labelsize"]
            axes.set_title(f"{name}\n{said}", fontsize=small)
        middle = mpl.rcParams["axes.labelsize"]
        after = ", after the start" if law is not None else ""
        figure.supxlabel(style.STALENESS[quantity] + after, fontsize=middle)
        figure.supylabel("Density (per commit)", fontsize=middle)
        handles = [Line2D([], [], color=style.ink(), ls=":", label="mean")]
        if law is not None:
            handles.append(Line2D([], [], color=style.ink(), lw=1.2, label="theory"))
        figure.legend(handles=handles, loc="outside upper right", ncols=2)
    return figure


def speed_up_bars(
    study: Study, metric: str, value: float, size: Size | None = None
) -> Figure:
    """Draws each group's median time to a target, with its 95 % interval.

    Labels say how many times faster than the slowest group it is; at least so many
    where one was not there by its horizon, where its bar, hatched, ends.

    Args:
        study: finished or not.
        metric: a column of evaluations.
        value: of the metric, to be reached.
        size: inches, such as `style.size("one")`; by default as its bars need.
    """
    table = time_to_target(study, metric, value).set_index("group")
    horizons = times_to_target(study, metric, value).groupby("group")["time"].max()
    looks = style.looks(table.index)
    medians = table["median"].to_numpy(np.float64)
    reached = np.isfinite(medians)
    ends = np.where(reached, medians, horizons.loc[table.index].to_numpy(np.float64))
    furthest = ROOM * max(float(ends.max()), float(horizons.max()))
    highs = table["high"].to_numpy(np.float64)[reached]
    cut = bool((highs > furthest).any())
    sign = "≥" if metric in HIGHER_IS_BETTER else "≤"
    goal = style.in_words(metric)
    names = [style.text(layout.label(study, group), 26) for group in table.index]
    lines = max(2.6, 1.5 + max(name.count("\n") for name in names))
    with style.context():
        needed = (6.4, 1.4 + layout.LINE * lines * len(names))
        figure = layout.titled(study, size or needed)
        axes = figure.add_subplot()
        for row, group in enumerate(table.index):
            one, tip, color = table.loc[group], ends[row], looks[group].color
            share = f"({int(one['reached'])} of {int(one['replicates'])})"
            if reached[row]:
                axes.barh(row, tip, height=0.6, color=color, alpha=0.6)
                label = f"{ends.max() / tip:.3g}×" if tip > 0 else "at once"
                label = f"≥ {label}" if tip > 0 and not reached.all() else label
                open_until = max(tip, horizons[group])
                tip = _draw_interval(axes, row, one, open_until, furthest)
            else:
                bar = axes.barh(row, tip, height=0.6, fill=False, edgecolor=color)
                bar[0].set_hatch("////")
                label = "not reached"
            where = {"xytext": (8, 0), "textcoords": "offset points", "va": "center"}
            axes.annotate(
                f"{label} {share}", (tip, row), fontsize=layout.small(), **where
            )
        axes.set_yticks(range(len(names)), names)
        axes.set_ylim(len(names) - 0.5, -0.5)
        axes.grid(visible=False, axis="y")
        axes.tick_params(axis="y", length=0)
        axes.set_xlim(left=0)
        axes.set_xlabel(f"Virtual time to {goal} {sign} {value:.4g} (s)")
        layout.add_note(figure, _bar_words(reached, highs, cut=cut))
    return figure


def _draw_histogram(axes: Axes, frame: pd.DataFrame, color: str) -> str:
    """Draws bins and their mean; each bar stands on the integers of its bin.

    Returns:
        The mean, and which part of the distribution lies above the axis' last value.
    """
    if frame.empty:  # of a client all of whose work was before the start was over
        return "nothing after the start"
    edges = np.unique(frame[["low", "high"]].to_numpy())
    densities = np.zeros(edges.size - 1)
    densities[np.searchsorted(edges, frame["low"])] = frame["density"]
    axes.stairs(densities, edges - 0.5, fill=True, color=color, alpha=0.6, zorder=2)
    middle = staleness.mean(frame)
    axes.axvline(middle, color=style.ink(), ls=":", lw=1.2, zorder=3)
    below = np.cumsum(densities * np.diff(edges))
    last = min(int(np.searchsorted(below, SHOWN)), below.size - 1)
    right = edges[last + 1]
    axes.set_xlim(min(-0.5, edges[0] - 0.5), right - 0.5)
    axes.xaxis.set_major_locator(MaxNLocator(5, integer=True, min_n_ticks=1))
    beyond = 100 * (1 - below[last])
    return f"mean {middle:.3g}" + (
        f"; {beyond:.1g} % > {right - 1:g}" if right < edges[-1] else ""
    )


def _bar_words(reached: np.ndarray, highs: np.ndarray, *, cut: bool) -> list[str]:
    """Returns what is drawn of times to a target, in words."""
    arrow = ", an arrow where it goes on" if cut else ""
    known = not np.isnan(highs).all()
    return [
        "Bars: median",
        f"lines: its 95 % interval{arrow}" if known else "",
        "×: times as fast as the slowest",
        "(k of n): replicates that reached it",
        "" if reached.all() else "hatched: not reached, up to where it was tried",
    ]


def _draw_interval(
    axes: Axes, row: int, one: pd.Series, open_until: float, furthest: float
) -> float:
    """Draws a median's interval, with an arrow where it goes on.

    Args:
        axes: to draw on.
        row: of the group.
        one: its median and interval.
        open_until: where an interval that is open ends in the figure.
        furthest: where one that is closed ends at the latest.

    Returns:
        Where it ends.
    """
    low, high = float(one["low"]), float(one["high"])
    if math.isnan(low) or math.isnan(high):
        return float(one["median"])
    end = min(high, furthest) if math.isfinite(high) else open_until
    axes.plot([low, end], [row, row], color=style.ink(), lw=1.2)
    axes.plot([low], [row], color=style.ink(), marker="|", ms=7)
    closing = "|" if high <= furthest else ">"
    axes.plot([end], [row], color=style.ink(), marker=closing, ms=5)
    return end


def _references(study: Study, against: str) -> set[str]:
    """Returns the groups that are lines: centralised, or with nothing to count.

    Centralised ones are curves where there are no others to compare with them.

    Raises:
        StudyError: nothing is counted in any group.
    """
    table = runs(study)
    found = set(table.loc[table["protocol"] == "centralised", "group"])
    found = set() if len(found) == table["group"].nunique() else found
    evaluated = evaluations_by(study, against)
    ends = metric_of(evaluated, against).groupby(evaluated["group"]).max()
    counted = set(ends.index[np.isfinite(ends.to_numpy(np.float64))])
    if not counted:
        raise StudyError(f"no run of the study has {against} to be counted")
    return found | (set(table["group"]) - counted)


def _final_mean(study: Study, group: str, metric: str) -> float:
    values = final_values(study, metric)
    return float(values.loc[values["group"] == group, "value"].mean())
