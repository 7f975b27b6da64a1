"""Learning curves: means over replicates, against time or what else is counted."""

from collections.abc import Iterator, Sequence

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from ...simulator.files.study import StudyError, metric_of_study
from ...simulator.parts.errors import documented_key
from .. import facts
from ..curves import mean_curves
from ..frames import (
    Study,
    chosen,
    evaluations,
    first_metric,
    groups,
    metric_of,
    runs,
    swept_columns,
)
from ..phases import evaluations_by
from ..spending import protected
from ..targets import final_values
from . import facets, layout, style
from .sweeps import is_wide

CAPTIONS = {"^convergence-|-against-(?!privacy)": "Learning curves"}
"""The note says what lines and bands are."""

MOST_ENTRIES = 12
"""Swept values that a legend names; colours show those in between."""


def standard(study: Study) -> Iterator[tuple[str, Figure]]:
    """Yields the first metric against time and commits, the others against commits.

    Where all protocols have rounds, these are counted in place of commits: a sequential
    round has several commits, a parallel one has one.
    """
    first = first_metric(study.manifest)
    every = study.manifest["scenario"]["evaluate"]["metrics"]
    others = [metric for metric in every if metric != first]
    rounds = all(facts.of(run).get("in_rounds") for run in study.manifest["runs"])
    counted = "rounds" if rounds else "commits"
    for against in ("time", counted):
        yield f"convergence-{against}", convergence(study, first, against)
    for other in others:
        yield f"convergence-{counted}-{other}", convergence(study, other, counted)


def convergence(
    study: Study,
    metric: str | None = None,
    against: str = "time",
    *,
    groups: Sequence[str] | None = None,
    panels: str | None = None,
) -> Figure:
    """Draws each group's mean curve with its 95 % t-interval over replicates.

    Intervals are cut at the metric's limits: an accuracy is not above 1. A note below
    explains what is drawn. A centralised group is a dashed horizontal line at the mean
    of its final values, because its time is not the clients'. So is a group without the
    axis' quantity, as one without privacy against epsilon.

    Each of up to 12 swept values has a panel, with a line for each variant. Other
    studies with more groups than there are colours have a panel for each variant and
    value of other keys, in which colours, dark to light, show the number with most
    swept values; or one for each group, before all others in grey.

    Args:
        study: Study, finished or not.
        metric: Column of the table `evaluations`; by default the study's first metric.
        against: Count on the axis, of `frames.COUNTED` or `phases.PHASES`.
        groups: Groups, or variants with all their groups, that are drawn; by default
            all.
        panels: Swept key of which each value has a panel, or `variant`.

    Raises:
        StudyError: There is no such group, column or swept key, or nothing is counted
            in any group.
    """
    known = chosen(study, groups)
    if documented_key(str(against)) in swept_columns(study):
        raise StudyError(
            f"against must be a count such as time, got the swept key {against}; "
            f"write panels={against!r}, or take final_over"
        )
    divided = facets.facets(study, known, panels)
    metric = metric or first_metric(study.manifest)
    drawn = _Curves(study, metric, against, known, divided)
    with style.context():
        figure = _of_all(drawn) if divided is None else _of_panels(drawn, divided)
        layout.add_note(figure, drawn.words(), legend_below=divided is not None)
        layout.say(figure, drawn.ends())
    return figure


END = {"marker": "s", "markersize": 4, "markevery": [-1]}
"""Looks of the last point of a line that ends where a budget was spent."""


class _Curves:
    def __init__(
        self,
        study: Study,
        metric: str,
        against: str,
        known: list[str],
        divided: facets.Facets | None,
    ) -> None:
        self.study, self.metric, self.against = study, metric, against
        self.known = known
        self.looks = divided.looks if divided else style.looks(groups(study))
        self.label, self.scale = layout.axis(study, against)
        self.references = _references(study, against)
        own = [group for group in self.known if group not in self.references]
        self.curves = mean_curves(study, own, metric, against)
        self.cut = layout.Cut(study, metric)
        ended = runs(study)
        self.spent = set(ended.loc[ended["stop"] == "privacy", "group"]) & {*own}

    def draw(
        self, axes: Axes, group: str, shade: float = 0.2, *, pale: bool = False
    ) -> Line2D:
        """Draws a group's curve on its band; a pale one is behind all others."""
        look = self.looks[group]
        if group in self.references:  # its time is not that of any clients
            finals = final_values(self.study, self.metric).groupby("group")["value"]
            look = look._replace(linestyle=style.DASHED)
            return axes.axhline(finals.mean()[group], zorder=2, **look._asdict())
        curve = self.curves[group]
        x = self.scale * curve["x"].to_numpy()
        if pale:
            thin = {"color": facets.PALE, "lw": 0.6, "zorder": 0.5}
            return axes.plot(x, curve["mean"], drawstyle="steps-post", **thin)[0]
        low, high = curve["low"].to_numpy(), curve["high"].to_numpy()
        low, high = self.cut.within(low, high)
        band = {"color": look.color, "alpha": shade, "lw": 0, "zorder": 1}
        axes.fill_between(x, low, high, step="post", **band)
        line = {"drawstyle": "steps-post", "zorder": 3, **look._asdict()}
        line |= END if group in self.spent else {}
        return axes.plot(x, curve["mean"], **line)[0]

    def finish(self, axes: Axes) -> None:
        """Sets the scales of drawn axes."""
        ends = pd.Series([curve["x"].iloc[-1] for curve in self.curves.values()])
        # Budgets may differ by powers of ten; a linear axis shows only the last.
        if self.against == "epsilon" and is_wide(ends):
            axes.set_xscale("log")
        else:
            axes.set_xlim(left=0)
        record = metric_of_study(self.study.manifest, self.metric)
        if record is not None and record.logarithmic:
            layout.make_logarithmic(axes)

    def words(self) -> list[str]:
        """Returns what is drawn, for the note."""
        counts = {int(curve["replicates"].iloc[0]) for curve in self.curves.values()}
        lines = "Lines: one replicate of each"
        if max(counts) > 1:
            lines = f"Lines: means over {layout.replicates(counts)}; "
            lines += f"bands: 95 % t-intervals{self.cut}"
        return [
            lines,
            "dashed: mean final value" if self.references else "",
            "squares: privacy budget spent" if self.spent else "",
            _content(self.study, self.known) if self.against == "commits" else "",
            protected(self.study, self.against),
        ]

    def ends(self) -> str:
        """Returns where the means of some groups end, in words."""
        if len(self.curves) > len(style.palette()):
            return ""
        last = (
            f"{layout.name(self.study, group)} {curve['mean'].iloc[-1]:.3g}"
            for group, curve in self.curves.items()
        )
        return f"means of the last evaluation: {', '.join(last)}"


def _of_all(drawn: _Curves) -> Figure:
    study = drawn.study
    labels = [style.text(layout.label(study, group)) for group in drawn.known]
    figure, axes = layout.single(study, 5.2, 3.6)
    handles = [drawn.draw(axes, group) for group in drawn.known]
    drawn.finish(axes)
    ylabel = style.metric_label(drawn.metric, study)
    axes.set(xlabel=drawn.label, ylabel=ylabel)
    layout.add_legend(figure, handles, labels)
    return figure


def _of_panels(drawn: _Curves, divided: facets.Facets) -> Figure:
    study, panels = drawn.study, divided.panels
    rows, columns = layout.grid(len(panels))
    wanted = 0.6 + 2.1 * columns, 1.2 + 1.6 * rows
    if columns == 1:  # of a size that the legend below leaves room in
        wanted = 5.2, 4.0
    figure = layout.titled(study, layout.for_print(*wanted))
    layout.say(figure, divided.left_out())
    every = layout.panels(figure, len(panels), columns)
    handles: dict[str, Artist] = {}
    for axes, (title, mine) in zip(every, panels, strict=True):
        for group in () if divided.words else drawn.curves:
            if group not in mine:
                drawn.draw(axes, group, pale=True)
        for group in mine:
            line = drawn.draw(axes, group, 0.3 / max(2, len(mine)) + 0.05)
            line.set_linewidth(mpl.rcParams["lines.linewidth"] * 0.75)
            handles.setdefault(divided.words.get(group, ""), line)
        drawn.finish(axes)
        axes.set_title(style.text(title, 26), fontsize=layout.small())
    for axes in every[-columns:]:
        axes.set_xlabel(drawn.label)
    for axes in every[::columns]:
        axes.set_ylabel(style.metric_label(drawn.metric, study))
    known, title = list(filter(None, handles)), ""
    if divided.key:
        title = style.key_label(divided.key, study)
        known.sort(key=float)
    labels = facets.spread(known, MOST_ENTRIES)
    if len(labels) < len(known):
        title += f" ({len(labels)} of {len(known)} are named)"
    entries = [handles[label] for label in labels]
    names = [style.text(label) for label in labels]
    layout.add_legend(figure, entries, names, title, below=True)
    return figure


def _content(study: Study, known: list[str]) -> str:
    last = evaluations(study).groupby("run").last()
    ends = last.loc[last["commits"] > 0]
    whole = ends["contributions"] // ends["commits"]
    left = ends["contributions"] % ends["commits"]
    # What is left of equal commits is in a buffer that is not full at the end.
    applied = whole.where(left < whole, ends["contributions"] / ends["commits"])
    each = applied.groupby(ends["group"]).mean()
    of = [float(each[group]) for group in known if group in each.index]
    if len(of) < 2 or max(of) <= 1.01 * min(of):
        return ""
    low, high = min(of), max(of)
    return f"{low:.3g} to {high:.3g} client updates per server update, by variant"


def _references(study: Study, against: str) -> set[str]:
    """Returns the groups that are lines: centralised, or with nothing to count.

    Centralised ones are curves where there are no others to compare with them.
    """
    table = runs(study)
    entries = study.manifest["runs"]
    alone = {run["run"] for run in entries if facts.of(run).get("is_reference")}
    found = set(table.loc[table["run"].isin(alone), "group"])
    found = set() if len(found) == table["group"].nunique() else found
    evaluated = evaluations_by(study, against)
    ends = metric_of(evaluated, against).groupby(evaluated["group"]).max()
    counted = set(ends.index[np.isfinite(ends.to_numpy(np.float64))])
    if not counted:
        raise StudyError(f"no run of the study has {against} to be counted")
    return found | (set(table["group"]) - counted)
