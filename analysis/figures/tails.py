"""How stale contributions were, pooled and by groups of clients, on shared axes."""

from collections.abc import Iterator, Sequence

import numpy as np
import pandas as pd
from matplotlib.artist import Artist
from matplotlib.figure import Figure
from matplotlib.ticker import StrMethodFormatter

from ...simulator.files.study import StudyError
from ..clients import GROUP, groups
from ..facts import worded
from ..frames import Study, joined
from ..frames import groups as groups_of_runs
from ..staleness import histogram, stale_groups
from . import facets, layout, style

Lines = list[tuple[str, style.Look, pd.DataFrame]]
"""Names, styles and histograms of a panel's lines."""
EVERYONE = "all clients"

CAPTIONS = {
    "^staleness$": "Share of work with at least some staleness, by client group"
}


def standard(study: Study) -> Iterator[tuple[str, Figure]]:
    """Yields the figure, if anything was ever stale."""
    if stale_groups(study):
        yield "staleness", staleness_tails(study)


def staleness_tails(study: Study) -> Figure:
    """Draws which part of all work was at least so stale, for every group of runs.

    Where a scenario divides its clients into groups, each group of runs has a panel, in
    which a line is of all clients or of a group of them, with how many it has. Else all
    are in one panel, or in those of `convergence`. All panels have the same axes, both
    logarithmic (from 1 on). Groups that were never stale are left out, and named.

    Args:
        study: Study, finished or not.

    Raises:
        StudyError: Nothing was stale in any of the groups.
    """
    known, stale = groups_of_runs(study), stale_groups(study)
    shown = [group for group in known if group in stale]
    if not shown:
        raise StudyError(
            f"nothing in study {study.manifest['name']!r} was ever stale; rounds that "
            f"wait for all are not"
        )
    fresh = [layout.name(study, group) for group in known if group not in stale]
    tiers = _tiers(study, shown)
    with style.context():
        if any(tiers.values()):
            figure, remark = _by_tier(study, tiers)
        else:
            figure, remark = _pooled(study, shown)
        note = (
            "Share of updates that are at least this stale",
            "replicates together",
            layout.swept_clients(study),
            f"never stale: {', '.join(fresh)}" if fresh else "",
            remark,
        )
        layout.add_note(figure, note, legend_below=True)
    return figure


def tail(frame: pd.DataFrame) -> tuple[np.ndarray, np.ndarray]:
    """Returns a staleness and which part of the counts is at least so large."""
    counts = frame["count"].to_numpy(np.float64)
    at_least = np.cumsum(counts[::-1])[::-1] / counts.sum()
    low = frame["low"].to_numpy(np.float64)
    return np.append([0.0], low), np.append([1.0], at_least)  # all is at least fresh


def _by_tier(
    study: Study, tiers: dict[str, dict[str, list[int]]]
) -> tuple[Figure, str]:
    names = dict.fromkeys(name for parts in tiers.values() for name in parts)
    looks = {EVERYONE: style.Look(style.ink(), style.DASHED), **style.looks(names)}
    panels: dict[bytes, tuple[list[str], Lines]] = {}
    for group, parts in tiers.items():
        own = {EVERYONE: None, **parts}
        frames = {name: histogram(study, group, each) for name, each in own.items()}
        lines = [(name, looks[name], frame) for name, frame in frames.items()]
        # What is swept may not change who acts when: the same picture is drawn once.
        same = b"".join(frame.to_numpy().tobytes() for frame in frames.values())
        panels.setdefault(same, ([], lines))[0].append(group)
    every = []
    for (first, *alike), lines in panels.values():
        more = f" and {len(alike)} alike" if alike else ""
        every.append((layout.name(study, first) + more, lines))
    few = facets.spread(every, facets.MOST_PANELS)
    remark = f"{len(few)} of {len(every)} panels are drawn"
    return _draw(study, few), remark if len(few) < len(every) else ""


def _pooled(study: Study, shown: list[str]) -> tuple[Figure, str]:
    divided = facets.facets(study, shown)
    if divided is None:
        looks = style.looks(groups_of_runs(study))
        divided = facets.Facets([("", shown)], 1, "", {}, looks)
    panels = []
    for title, mine in divided.panels:
        names = {each: "" if title else layout.name(study, each) for each in mine}
        names |= {each: divided.words[each] for each in mine if each in divided.words}
        lines = [
            (name, divided.looks[group], histogram(study, group))
            for group, name in names.items()
        ]
        panels.append((title, lines))
    figure = _draw(study, panels, style.key_label(divided.key, study))
    return figure, divided.left_out()


def _draw(
    study: Study, panels: Sequence[tuple[str, Lines]], legend: str = ""
) -> Figure:
    """Draws panels with their titles on shared axes, and a legend with its own."""
    number = len(panels)
    rows, columns = layout.grid(number)
    if number == 1:
        figure, axes = layout.single(study, 5.2, 3.8)
        every = [axes]
    else:
        size = layout.for_print(0.6 + 2.3 * columns, 1.3 + 1.8 * rows)
        figure = layout.titled(study, size)
        every = layout.panels(figure, number, columns)
    embeddings = (joined(study, "staleness")["quantity"] == "embedding").any()
    handles: dict[str, Artist] = {}
    for axes, (title, lines) in zip(every, panels, strict=True):
        for name, look, frame in lines:
            (line,) = axes.plot(*tail(frame), drawstyle="steps-pre", **look._asdict())
            handles[name] = line
        axes.set_title(style.text(title, 36))
    quantity = "embedding" if embeddings else "contribution"
    label = worded(study.manifest, style.STALENESS[quantity])
    for axes in every[-columns:]:
        axes.set_xlabel(label.replace(" of ", "\nof ") if number > 1 else label)
    for axes in every[::columns]:
        axes.set_ylabel("Fraction with staleness ≥ x")
    axes = every[0]
    axes.set_xscale("symlog", linthresh=1)
    axes.xaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
    axes.set_yscale("log")
    axes.set_xlim(left=0)
    labels = [style.text(name) for name in handles]
    layout.add_legend(figure, list(handles.values()), labels, legend, below=True)
    return figure


def _tiers(study: Study, shown: list[str]) -> dict[str, dict[str, list[int]]]:
    who = joined(study, "clients")
    tiers: dict[str, dict[str, list[int]]] = {group: {} for group in shown}
    for group in shown if GROUP in who else ():
        mine = who.loc[who["group"] == group]
        first = mine.loc[mine["run"] == mine["run"].iloc[0]]
        for name, size in groups(first).items():
            own = first.loc[first[GROUP] == name, "client"]
            tiers[group][f"{name} ({size})"] = own.tolist()
    return tiers
