"""Histograms of staleness, a panel for each client."""

import math
import textwrap
from collections.abc import Iterator

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

from ...simulator.files.study import StudyError
from .. import clients, staleness
from ..frames import Study, groups, runs
from ..statistics import short
from . import facets, layout, style
from .files import plain

MAX_PANELS = 12
MAX_FIGURES = 12
"""Variants that standard figures show, one each; `staleness_histogram` draws any."""
SHOWN = 0.995
"""Fraction of a distribution that a panel shows; a note has the rest."""


CAPTIONS = {"^staleness-": "Staleness of each client's work; line: mean or closed form"}


def standard(study: Study) -> Iterator[tuple[str, Figure]]:
    """Yields each variant at its first point of the sweep, unless it is never stale.

    Of more than 12 such variants, 12 are shown, evenly spread; their titles tell.
    """
    names, known = _file_names(groups(study)), staleness.stale_groups(study)
    firsts = runs(study).drop_duplicates("variant")["group"]
    stale = [group for group in firsts if group in known]
    shown = facets.spread(stale, MAX_FIGURES)
    for group in shown:
        figure = staleness_histogram(study, group)
        if len(shown) < len(stale):
            title = figure.get_suptitle()
            title += f"\n{len(shown)} of {len(stale)} variants drawn"
            figure.suptitle(title, x=0.01, ha="left")
        yield f"staleness-{names[group]}", figure


def staleness_histogram(
    study: Study, group: str, law: staleness.Law | None = None
) -> Figure:
    """Draws the distribution of each client's staleness in a group of replicates.

    Of more than 12 clients, 12 are shown, evenly spread from the first to the last.
    They have the names that the group's first run gives them.

    Args:
        study: Study, finished or not.
        group: Name of a group of runs.
        law: Ages in commits and their probabilities, for a client, in the steady
            state; drawn over the bars, which then leave out the start of each run. By
            default that of `staleness_law`, where one is known.

    Raises:
        StudyError: There is no such group, or nothing was measured in it.
    """
    table = staleness.binned(study, group)
    if table.empty:
        raise StudyError(f"the study has no staleness of a group {group!r}")
    law = law or staleness.staleness_law(study, group)
    quantity = staleness.default_quantity(table)
    everyone = np.unique(table.loc[table["quantity"] == quantity, "client"])
    shown = facets.spread(everyone.tolist(), MAX_PANELS)
    known = clients.of_run(study, int(table["run"].iloc[0]))
    names = clients.titles(known, shown)
    rows, columns = layout.grid(len(shown))
    variants = runs(study).drop_duplicates("group").set_index("group")["variant"]
    points = (variants == variants[group]).sum()
    few = f"{len(shown)} of {len(everyone)} clients, evenly spread"
    words = [
        style.text(layout.name(study, group), 60),
        f"1 of {points} swept points" if points > 1 else "",
        layout.swept_clients(study),
        few if len(shown) < len(everyone) else "",
    ]
    title = textwrap.fill("; ".join(filter(None, words)), 70)
    color = facets.looks(study)[group].color
    with style.context():
        size = layout.for_print(max(4.2, 0.4 + 2.1 * columns), 1.1 + 1.7 * rows)
        figure = layout.titled(study, size, title)
        every = layout.panels(figure, len(shown), columns, shared=False)
        small, middle = mpl.rcParams["xtick.labelsize"], mpl.rcParams["axes.labelsize"]
        steady = law is not None
        found = staleness.of_clients(study, group, shown, quantity, steady=steady)
        for axes, client, name, (frame, mean) in zip(
            every, shown, names, found, strict=True
        ):
            words = draw_histogram(axes, frame, color, mean, law and law(client))
            axes.set_title(f"{style.text(name, 26)}\n{words}", fontsize=small)
        after = ", after the start" if steady else ""
        figure.supxlabel(style.STALENESS[quantity] + after, fontsize=middle)
        figure.supylabel("Density (per unit of staleness)", fontsize=middle)
        handles = [Line2D([], [], color=style.ink(), ls=":", label="mean")]
        if steady:
            handles.append(Line2D([], [], color=style.ink(), lw=1.2, label="theory"))
        figure.legend(handles=handles, loc="outside upper right", ncols=2)
    return figure


def draw_histogram(
    axes: Axes,
    frame: pd.DataFrame,
    color: str,
    mean: float,
    law: tuple[np.ndarray, np.ndarray] | None = None,
) -> str:
    """Draws bins, a mean and a law; each bar stands on the integers of its bin.

    Returns:
        The mean, and the fraction of the distribution above the axis' last value.
    """
    if law is not None:  # before the axis ends, which then is high enough for both
        axes.plot(*law, zorder=4, color=style.ink(), lw=1.2)
    if frame.empty:  # of a client all of whose work was before the start was over
        return "nothing after the start"
    edges, densities, shown = _bars(frame)
    axes.stairs(densities, edges - 0.5, fill=True, color=color, alpha=0.6, zorder=2)
    axes.set_ylim(bottom=0)
    axes.axvline(mean, color=style.ink(), ls=":", lw=1.2, zorder=3)
    right = edges[shown]
    axes.set_xlim(min(-0.5, edges[0] - 0.5), right - 0.5)
    axes.xaxis.set_major_locator(MaxNLocator(5, integer=True, min_n_ticks=1))
    if right == edges[-1]:
        return f"mean {short(mean)}"
    beyond = 100 * float(np.sum((densities * np.diff(edges))[shown:]))
    return f"mean {short(mean)}; {beyond:.1g} % > {right - 1:g}"


def _bars(frame: pd.DataFrame) -> tuple[np.ndarray, np.ndarray, int]:
    """Returns bars of one width for the bins of a histogram, which may differ in it.

    There are no more than the counts can resolve (Rice's rule: twice the cube root);
    a bin of several integers counts as evenly filled.

    Returns:
        Edges of the bars; their densities; and the number of the edge up to which most
        of the distribution is shown. Beyond, bars are the bins themselves.
    """
    ends = np.unique(frame[["low", "high"]].to_numpy(np.float64))
    counts = np.zeros(ends.size - 1)
    counts[np.searchsorted(ends, frame["low"])] = frame["count"]
    below = np.concatenate([[0.0], np.cumsum(counts)])
    total = below[-1]
    last = min(int(np.searchsorted(below, SHOWN * total)), ends.size - 1)
    span = ends[last] - ends[0]
    width = max(1, math.ceil(span / (2 * total ** (1 / 3))))
    inside = ends[0] + width * np.arange(math.ceil(span / width) + 1)
    edges = np.concatenate([inside, ends[ends > inside[-1]]])
    heights = np.diff(np.interp(edges, ends, below)) / (np.diff(edges) * total)
    return edges, heights, inside.size - 1


def _file_names(known: list[str]) -> dict[str, str]:
    """Returns a different name for each group that any file system takes."""
    names: dict[str, str] = {}
    for group in known:
        first = plain(group).lower() or "group"
        name, number = first, 1
        while name in names.values():
            number += 1
            name = f"{first}-{number}"
        names[group] = name
    return names
