"""Titles, labels, legends, notes and axes of all figures of a study."""

import math
from collections.abc import Iterable, Sequence

import matplotlib as mpl
import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties
from matplotlib.legend import Legend

from ...simulator.files.study import metric_of_study
from ...simulator.scenario.study import BASE
from ..facts import worded
from ..frames import Study, accounts, data_sets, described, runs, swept_keys
from . import style

LINES_OF_LEGEND = 20
"""Lines of text in a column."""
LINE = 0.165
"""Inches of a line of text."""
MOST_COLUMNS, PANEL = 4, 1.6
"""Panels side by side, and the inches that one takes at least."""
MOST_OF_HEIGHT = 0.25
"""Part of a figure's height that a legend below it takes, at most if it can."""
SMALLEST = 6.0
"""Points of a legend, at least."""
NOTE_SIZE = 7.5
"""Points of a note."""
NOTE_LINE = 1.2 * NOTE_SIZE / 72
"""Inches per line of a note."""

Size = tuple[float, float]
"""Width and height, inches."""


def titled(study: Study, size: Size, note: str = "") -> Figure:
    """Returns an empty figure, in inches, with the study and its data as title.

    For a venue, whose captions have them, the title is left out.
    """
    title = style.text(study.manifest["name"], 60)
    if data := data_sets(study.manifest):
        title += f" — {style.text(', '.join(data), 60)}"
    if study.manifest.get("status") == "incomplete":
        title += " (incomplete)"
    figure = Figure(figsize=size)
    say(figure, note)
    if style.venue() is None:
        figure.suptitle(f"{title}\n{note}".rstrip(), x=0.01, ha="left")
    return figure


def single(
    study: Study, width: float, height: float, note: str = ""
) -> tuple[Figure, Axes]:
    """Returns a titled figure with one pair of axes: so large, or as a venue has it."""
    venue = style.venue()
    figure = titled(study, venue.size() if venue else (width, height), note)
    return figure, figure.add_subplot()


def say(figure: Figure, words: str) -> None:
    """Adds words to the figure's own caption: its label."""
    said = [str(figure.get_label() or ""), " ".join(words.split())]
    figure.set_label("; ".join(filter(None, said)))


def for_print(width: float, height: float) -> Size:
    """Returns the size of a figure, inches: as its content needs; a venue's width."""
    venue = style.venue()
    if venue is None:
        return width, height
    return venue.width, height * min(1.0, venue.points / 9)


def add_note(
    figure: Figure, words: Iterable[str], *, legend_below: bool = False
) -> None:
    """Writes a note below a figure; `supxlabel("")` removes it.

    For a venue it is not drawn: its words are the caption's.
    """
    note = "; ".join(word for word in words if word)
    say(figure, note)
    if style.venue() is not None:
        return
    if legend_below and figure.legends:
        height = figure.legends[0].get_window_extent().height / figure.dpi
        note += "\n" * math.ceil(height / NOTE_LINE)
    figure.supxlabel(
        note, x=0.01, ha="left", fontsize=NOTE_SIZE, color="#505050", wrap=True
    )


def name(study: Study, group: str) -> str:
    """Returns the name of a group: without variants its swept values alone."""
    if {run["variant"] for run in study.manifest["runs"]} != {BASE}:
        return group
    return group.removeprefix(BASE).removeprefix(", ")


def label(study: Study, group: str) -> str:
    """Returns a group's name, and how many of its replicates diverged, if any."""
    table = runs(study)
    ends = table.loc[table["group"] == group, "stop"]
    diverged = int((ends == "diverged").sum())
    called = name(study, group)
    return f"{called} ({diverged} of {len(ends)} diverged)" if diverged else called


def swept_clients(study: Study) -> str:
    """Returns words on the groups of clients that are swept; "" for none."""
    keys = [key.split(".") for key in swept_keys(study)]
    found = [f"{'.'.join(k[3:])} of {k[2]}" for k in keys if k[1:2] == ["groups"]]
    return f"swept: {', '.join(found)}" if found else ""


def replicates(counts: Iterable[int]) -> str:
    """Returns the numbers of replicates of groups as text."""
    known = sorted(set(counts))
    if len(known) < 2:
        return f"{known[0]} replicates" if known else "no replicates"
    return f"{known[0]} to {known[-1]} replicates"


def goal(study: Study, metric: str, value: float) -> str:
    """Returns a target as text, such as `test accuracy ≥ 0.8`."""
    sign = "≥" if described(study, metric).higher_is_better else "≤"
    return f"{style.in_words(metric, study)} {sign} {value:.4g}"


class Cut:
    """Cuts intervals of a figure at their metric's limits, and notes where."""

    def __init__(self, study: Study, metric: str) -> None:
        known = metric_of_study(study.manifest, metric)
        self._bounds = known.bounds if known and known.bounds else (-np.inf, np.inf)
        self._below = self._above = False

    def within(
        self, low: np.ndarray, high: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Returns lower and upper ends as far as the metric can go."""
        least, most = self._bounds
        self._below |= bool((low < least).any())
        self._above |= bool((high > most).any())
        return np.clip(low, least, most), np.clip(high, least, most)

    def __str__(self) -> str:
        """Words on where intervals were cut; "" if none was."""
        cut = zip(self._bounds, (self._below, self._above), strict=True)
        ends = [f"{end:g}" for end, is_cut in cut if is_cut]
        limits = "limits" if len(ends) > 1 else "limit"
        return f", cut at the metric's {limits} {' and '.join(ends)}" if ends else ""


def arms(middle: np.ndarray, low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """Returns the lengths of intervals below and above their middles; 0 where none."""
    return np.nan_to_num(np.reshape([middle - low, high - middle], (2, -1)))


def axis(study: Study, counted: str) -> tuple[str, float]:
    """Returns label and scale of a counted quantity; privacy names its accounting."""
    label, scale = style.axis(counted)
    label = worded(study.manifest, label)
    told = accounts(study).values() if counted == "epsilon" else ()
    known = {(entry["accountants"][0], entry["delta"]) for entry in told}
    if len(known) == 1:
        ((accountant, delta),) = known
        label += f"\n(δ = {delta:g}, by {accountant})"
    return label, scale


def grid(number: int, panel: float = PANEL) -> tuple[int, int]:
    """Returns rows and columns of a grid of panels of a width in inches."""
    venue = style.venue()
    width = MOST_COLUMNS * PANEL if venue is None else venue.width
    most = max(2, int(width / panel))
    columns = min(most, number, 3 if number == 3 else max(2, math.ceil(number**0.5)))
    return math.ceil(number / columns), columns


def panels(
    figure: Figure, number: int, columns: int, *, shared: bool = True
) -> list[Axes]:
    """Returns axes in rows; shared ones have numbers below each column alone."""
    high = math.ceil(number / columns)
    every = figure.subplots(high, columns, sharex=shared, sharey=shared, squeeze=False)
    for axes in every.flat[number:]:
        axes.remove()
    shown = list(every.flat[:number])
    if shared:
        for place, axes in enumerate(shown):
            axes.tick_params(labelbottom=place + columns >= number)
    return shown


def rows(study: Study, groups: Sequence[str]) -> tuple[Figure, Axes]:
    """Returns a figure and its axes with a row for each group, the first on top."""
    names = [style.text(label(study, group), 26) for group in groups]
    lines = max(2.6, 1.5 + max(name.count("\n") for name in names))
    figure = titled(study, for_print(6.4, 1.4 + LINE * lines * len(names)))
    axes = figure.add_subplot()
    axes.set_yticks(range(len(names)), names)
    axes.set_ylim(len(names) - 0.5, -0.5)
    axes.grid(visible=False, axis="y")
    axes.tick_params(axis="y", length=0)
    return figure, axes


def add_legend(
    figure: Figure,
    handles: Sequence[Artist],
    labels: Sequence[str],
    title: str = "",
    *,
    below: bool = False,
) -> None:
    """Adds a legend: next to the axes or, where asked or for a venue, below them.

    One next to the axes makes the figure wider. One below has as many columns as there
    is room for, and smaller letters where it would take more than a quarter of the
    height. One group that has no name needs no legend.
    """
    if not any(labels):
        return
    if not below and style.venue() is None:
        lines = sum(text.count("\n") + 1 for text in labels)
        columns = math.ceil(lines / LINES_OF_LEGEND)
        words = {"title": title, "title_fontsize": small(), "ncols": columns}
        legend = figure.legend(handles, labels, loc="outside right upper", **words)
        box = legend.get_window_extent()
        width, height = figure.get_size_inches()
        needed = box.height / figure.dpi + 2 * LINE
        figure.set_size_inches(width + box.width / figure.dpi, max(height, needed))
        return
    points = FontProperties(size=small()).get_size_in_points()
    while True:
        legend = _widest(figure, handles, labels, title, points)
        height = legend.get_window_extent().height / figure.bbox.height
        if height <= MOST_OF_HEIGHT or points <= SMALLEST:
            return
        legend.remove()
        points = max(SMALLEST, points - 0.5)


def _widest(
    figure: Figure,
    handles: Sequence[Artist],
    labels: Sequence[str],
    title: str,
    points: float,
) -> Legend:
    """Adds a legend with as many columns as there is room for; at least one."""
    rows = 1
    while True:
        columns = math.ceil(len(labels) / rows)  # rows that are equally long
        legend = figure.legend(
            handles, labels, loc="outside lower center", ncols=columns, title=title,
            title_fontsize=small(), fontsize=points, handlelength=1.5, columnspacing=1,
        )  # fmt: skip
        if columns == 1 or legend.get_window_extent().width <= figure.bbox.width:
            return legend
        legend.remove()
        rows += 1


def make_logarithmic(axes: Axes) -> None:
    """Makes the y axis logarithmic if the means that were drawn allow it.

    An interval may reach below zero, and then leaves the axis at the bottom.
    """
    means = np.concatenate([np.ravel(line.get_ydata()) for line in axes.get_lines()])
    means = means[np.isfinite(means)]
    if means.size and means.min() > 0:
        axes.set_yscale("log")
        axes.set_ylim(bottom=means.min() / 2)


def small() -> float:
    """Returns the size of text within axes, points."""
    return mpl.rcParams["legend.fontsize"]
