"""Figures of recorded worlds of samples."""

from collections.abc import Iterator
from itertools import cycle

import numpy as np
import pandas as pd
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from ....analysis.figures import facets, layout, style
from ....analysis.figures.lines import Line, lines_over
from ....analysis.figures.staleness import SHOWN
from ....analysis.figures.sweeps import draw_line
from ....analysis.frames import Study, groups
from ....analysis.statistics import t_interval
from .tables import of_runs

MOST = 8
"""Groups that one histogram shows."""
PANELS = {
    "staleness_mean": "Mean staleness (versions)",
    "seconds_per_step": "Virtual seconds per step",
    "samples_dropped": "Samples dropped (share)",
    "tokens_wasted": "Tokens wasted (share)",
}
"""Measures that are drawn over the swept key."""
LOST = ("samples_dropped", "tokens_wasted")
"""Those that are drawn only where some samples are lost."""
SHARE = "generation.machines", "trainer.machines"
"""Swept keys that divide machines between both sides."""


def histogram(study: Study) -> Figure:
    """Draws the shares of trained samples, and of tokens, by staleness."""
    label = {run["run"]: run["label"] for run in study.manifest["runs"]}
    ages = study.table("sample_ages")
    ages = ages.assign(group=ages["run"].map(label))
    known, last = groups(study), 0
    shown = facets.spread(known, MOST)
    looks = style.looks(shown)
    with style.context():
        figure = layout.titled(study, layout.for_print(7.2, 3.4))
        one, two = figure.subplots(1, 2, sharey=True)
        for axes, what in ((one, "samples"), (two, "tokens")):
            for name in shown:
                mine = ages.loc[ages["group"] == name].groupby("staleness")[what].sum()
                share = mine / mine.sum()
                axes.plot(share.index, share, marker="o", ms=3, **looks[name]._asdict())
                enough = share.index[share.cumsum() >= SHOWN]
                last = max(last, int(enough.min()))
            axes.set(xlabel="Staleness (versions)", title=f"Trained {what}")
            axes.xaxis.set_major_locator(MaxNLocator(5, integer=True, min_n_ticks=1))
        oldest = int(ages["staleness"].max())
        one.set(ylabel="Share", xlim=(-0.5, last + 0.5), ylim=(0, None))
        two.set(xlim=one.get_xlim())
        labels = [style.text(layout.label(study, name)) for name in shown]
        layout.add_legend(figure, one.get_lines(), labels)
        beyond = f"at most {100 * (1 - SHOWN):g} % beyond the axis, up to {oldest}"
        note = (
            f"{len(shown)} of {len(known)} groups" if len(shown) < len(known) else "",
            beyond if oldest > last else "",
        )
        layout.add_note(figure, note)
    return figure


def swept(study: Study, key: str) -> Figure:
    """Draws staleness, seconds per step and losses over a swept key.

    Closed forms of the staleness are dashed, where they hold. Points are means over
    replicates, bars 95 % t-intervals.
    """
    table, (lines, along) = of_runs(study).set_index("label"), lines_over(study, key)
    panels = [name for name in PANELS if name not in LOST or table[name].any()]
    looks = style.looks(line.label for line in lines)
    counts = table.groupby(level=0).size()
    closed = table["predicted_staleness_mean"].groupby(level=0).mean()
    with style.context():
        rows, columns = layout.grid(len(panels))
        size = layout.for_print(1.2 + 3 * columns, 0.6 + 2.6 * rows)
        figure = layout.titled(study, size)
        every = layout.panels(figure, len(panels), columns, shared=False)
        handles: list[Artist] = []
        for axes, name in zip(every, panels, strict=True):
            handles = [
                _points(axes, line, table[name], looks[line.label]) for line in lines
            ]
            axes.set(ylabel=PANELS[name], ylim=(0, None))
            axes.set_xlabel(style.key_label(key, study))
        for line in lines:
            dashes = {"color": looks[line.label].color, "ls": style.DASHED, "lw": 1}
            every[0].plot(line.numbers, closed[line.groups], **dashes)
        labels = [style.text(line.label) for line in lines]
        layout.add_legend(figure, handles, labels)
        note = []
        if counts.max() > 1:
            note.append(f"Points: means over {layout.replicates(counts)}")
            note.append("bars: 95 % t-intervals")
        if closed.notna().any():
            note.append("dashed: closed form")
        layout.add_note(figure, [*note, along])
    return figure


def _points(axes: Axes, line: Line, values: pd.Series, look: style.Look) -> Artist:
    """Draws means of a measure and their intervals along a line."""
    of = [np.atleast_1d(values[group]) for group in line.groups]
    mean, low, high = np.array([t_interval(each) for each in of]).T
    return draw_line(axes, line, line.numbers, (mean, low, high), look._asdict())


def best_split(frame: pd.DataFrame) -> Figure:
    """Draws seconds per step and staleness over the machines that generate."""
    with style.context():
        figure = Figure(figsize=(7.2, 3.2))
        one, two = figure.subplots(1, 2)
        lines = _lines(frame, SHARE[0])
        for colour, (name, rows) in zip(cycle(style.palette()), lines, strict=False):
            at = numbers(rows[SHARE[0]]).to_numpy()
            seconds = rows["seconds_per_step"].to_numpy()
            one.plot(at, seconds, "o-", ms=3, c=colour, label=name)
            best = int(np.nanargmin(seconds))
            one.plot(at[best], seconds[best], "*", ms=12, c=colour)
            _frontier(two, rows, at, colour, best)
        one.set(xlabel="Machines that generate", ylabel="Virtual seconds per step")
        one.set(title="Star: the shortest steps", ylim=(0, None))
        two.set(xlabel="Staleness (versions)", ylabel="Virtual seconds per step")
        two.set(title="Numbers: machines that generate", ylim=(0, None))
        if len({*frame["variant"]}) > 1:
            one.legend()
    return figure


def _frontier(
    axes: Axes, rows: pd.DataFrame, at: np.ndarray, colour: str, best: int
) -> None:
    x, y = rows["staleness_mean"].to_numpy(), rows["seconds_per_step"].to_numpy()
    axes.plot(x, y, "o-", ms=3, lw=1, c=colour)
    axes.plot(x[best], y[best], "*", ms=12, c=colour)
    for number, *place in zip(at, x, y, strict=True):
        offset = {"xytext": (3, 3), "textcoords": "offset points", "fontsize": 7}
        axes.annotate(f"{number:g}", (place[0], place[1]), **offset)


def _lines(frame: pd.DataFrame, key: str) -> Iterator[tuple[str, pd.DataFrame]]:
    for name, rows in frame.groupby("variant", sort=False):
        order = numbers(rows[key]).argsort()
        yield style.text(str(name)), rows.iloc[order]


def numbers(values: pd.Series) -> pd.Series:
    """Returns values as numbers, NaN where they are none."""
    return pd.to_numeric(values, errors="coerce")
