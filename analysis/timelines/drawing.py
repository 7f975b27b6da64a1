"""Pictures of a recorded timeline: `figures.gantt`, and worlds next to each other."""

from collections.abc import Iterator
from functools import partial
from itertools import islice
from typing import TypeVar

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.text import Text

from ...simulator.files.study import inward
from ...simulator.files.study.jobs import job_pieces
from ...simulator.files.timeline import COMMITS, some
from ..facts import Entry, worded
from ..figures import gantt, layout, style
from ..figures.sweeps import is_wide
from ..frames import Study
from ..statistics import t_interval
from .stragglers import most_waited_for
from .view import View, frame_of


def standard(seen: View, seconds: float | None) -> Iterator[tuple[str, Figure]]:
    """Yields the figures of a timeline, as `report.standard` does."""
    for name, figure in _drawn(seen, seconds):
        for text in figure.findobj(Text):
            text.set_text(worded(seen.manifest, text.get_text()))
        yield name, figure


def _drawn(seen: View, seconds: float | None) -> Iterator[tuple[str, Figure]]:
    known, name, forms = seen.runs, seen.manifest["name"], seen.forms
    if seen.is_whole:
        first = list(known.drop_duplicates("group")["run"])
        entries = [seen.manifest["runs"][run] for run in first[: gantt.MOST_PANELS]]
        jobs = pd.concat([_shown(seen.study, entry) for entry in entries])
        made = pd.concat([_commits(seen.study, entry["run"]) for entry in entries])
        figure = gantt.gantt(seen.study, first, jobs, made, seen.incidents, seconds)
        yield "gantt", figure
    found = {
        str(group): seen.histogram(mine)
        for group, mine in known.groupby("group", sort=False)
    }
    found = {group: frame for group, frame in found.items() if len(frame)}
    laws = {group: forms[group].law for group in found}
    means = {group: forms[group].of_run.get("staleness_mean") for group in found}
    if found:
        called = partial(_called, seen.study)
        figure = gantt.staleness(called(found), called(laws), called(means), name)
        yield "staleness", figure
    if len(laws) > 1:
        yield "comparison", comparison(_compared(seen), name)
    for group, top, round_s in islice(most_waited_for(seen), 1):
        title = (
            f"{layout.name(seen.study, group)}: a round takes {round_s:.3g} virtual s"
        )
        yield "stragglers", waited_for(top, title)


def _shown(study: Study, entry: Entry) -> pd.DataFrame:
    """Returns the jobs of a run's clients that have lines, read a file at a time."""
    run, number = entry["run"], entry["num_clients"]
    first = np.full(number, np.inf)
    for piece in study.pieces("jobs", run, ["run", "client", "read_time"]):
        np.minimum.at(first, inward(piece["client"]), piece["read_time"].to_numpy())
    there = np.flatnonzero(np.isfinite(first))
    reads = pd.DataFrame({"client": there + 1, "read_time": first[there]})
    has_line = np.isin(np.arange(1, number + 1), gantt.lines(reads, number))
    pieces = (some(jobs, has_line[jobs.client]) for _, jobs in job_pieces(study, run))
    return frame_of(pieces).assign(run=run)


def _commits(study: Study, run: int) -> pd.DataFrame:
    """Returns when a run's commits were made: columns run and time."""
    times = []
    for piece in study.pieces("rows", run, ["run", "place", "time", "kind"]):
        first = piece["place"].to_numpy() == 0
        made = np.isin(piece["kind"].to_numpy(), COMMITS) & first
        times.append(piece["time"].to_numpy()[made])
    return pd.DataFrame({"time": np.concatenate([np.zeros(0), *times])}).assign(run=run)


def waited_for(top: pd.DataFrame, title: str) -> Figure:
    """Draws what each client adds to a round; `top` is of `most_waited_for`."""
    with style.context():
        figure = Figure(figsize=(5.0, 1.4 + 0.32 * len(top)))
        axis = figure.subplots()
        bars = axis.barh(top["client"], top["adds_s"], color=style.OKABE_ITO[0])
        shares = [f"last in {share:.0%}" for share in top["last"]]
        axis.bar_label(bars, shares, padding=3)
        axis.margins(x=0.25)
        axis.invert_yaxis()
        axis.set_xlabel("Added to a round (virtual s)")
        axis.set_ylabel("Client")
        figure.suptitle(style.text(title, 60), x=0.01, ha="left")
    return figure


Item = TypeVar("Item")


def _called(study: Study, of_groups: dict[str, Item]) -> dict[str, Item]:
    return {layout.name(study, group): value for group, value in of_groups.items()}


def _compared(seen: View) -> pd.DataFrame:
    measured, forms = seen.by_run.copy(), seen.forms
    entries = [seen.manifest["runs"][run] for run in measured["run"]]
    for column in PANELS:
        measured[f"{column}_theory"] = [
            forms[entry["label"]].of_run.get(column, np.nan) for entry in entries
        ]
    measured["variant"] = [
        layout.name(seen.study, entry["variant"]) for entry in entries
    ]
    measured["group"] = [layout.name(seen.study, entry["label"]) for entry in entries]
    swept = [entry["parameters"] for entry in entries]
    keys = {key for point in swept for key in point}
    values = [next(iter(point.values()), None) for point in swept]
    numbers = len(keys) == 1 and all(isinstance(v, int | float) for v in values)
    measured["x"] = values if numbers else np.nan
    measured["parameter"] = keys.pop() if numbers else ""
    return measured


PANELS = {
    "contributions_per_s": "Client updates\nper virtual s",
    "staleness_mean": "Mean staleness\n(server updates)",
    "staleness_99": "99 % staleness\n(server updates)",
}


def comparison(measured: pd.DataFrame, name: str) -> Figure:
    """Draws speed and staleness: against a swept number, else as bars.

    Args:
        measured: Row per run with the columns of `PANELS`, those with `_theory` where
            a closed form is known (NaN where not), `variant`, `group` and `x` (the
            swept number; NaN where nothing, or more than one number, is swept).
        name: Name of the study.
    """
    swept = bool(measured["x"].notna().all())
    with style.context():
        groups = measured["group"].nunique()
        height = 3.0 if swept else max(2.2, 0.9 + 0.32 * groups)
        figure = Figure(figsize=(7.2, height))
        axes = figure.subplots(1, len(PANELS), sharey=not swept)
        for axis, (column, label) in zip(axes, PANELS.items(), strict=True):
            if swept:
                _lines(axis, measured, column)
                axis.set_title(label)
            else:
                _bars(axis, measured, column)
                axis.set_xlabel(label)
        if swept:
            axes[1].set_xlabel(style.key_label(measured["parameter"].iloc[0]))
        handles, labels = axes[0].get_legend_handles_labels()
        if handles:
            figure.legend(handles, labels, loc="outside lower center", ncols=4)
        figure.suptitle(style.text(name, 60), x=0.01, ha="left")
        counts = measured.groupby("group").size()
        points, ends = ("Points", "bands") if swept else ("Bars", "lines")
        note = [f"{points}: means over {layout.replicates(counts)}"]
        note += [f"{ends}: 95 % t-intervals"] if counts.max() > 1 else []
        layout.add_note(figure, note, legend_below=bool(handles))
    return figure


def _lines(axis: Axes, measured: pd.DataFrame, column: str) -> None:
    for number, (variant, mine) in enumerate(measured.groupby("variant", sort=False)):
        colour = style.OKABE_ITO[number % len(style.OKABE_ITO)]
        at = sorted(mine["x"].unique())
        low, mean, high = _intervals([mine.loc[mine["x"] == x, column] for x in at])
        label = style.text(str(variant)) or None
        axis.plot(at, mean, marker="o", markersize=3, color=colour, label=label)
        axis.fill_between(at, low, high, color=colour, alpha=0.2, linewidth=0)
        theory = mine.groupby("x")[f"{column}_theory"].first()
        if theory.notna().any():
            known = (theory.index.to_numpy(np.float64), theory.to_numpy(np.float64))
            look = {"color": style.INK, "linestyle": style.DASHED, "linewidth": 0.9}
            named = axis.get_legend_handles_labels()[1]
            label = None if "closed form" in named else "closed form"
            axis.plot(*known, **look, label=label)
    if is_wide(measured["x"]):
        axis.set_xscale("log")
    if is_wide(measured[column]):
        axis.set_yscale("log")


def _bars(axis: Axes, measured: pd.DataFrame, column: str) -> None:
    groups = list(dict.fromkeys(measured["group"]))
    low, mean, high = _intervals(
        [measured.loc[measured["group"] == group, column] for group in groups]
    )
    at = np.arange(len(groups))
    spread = np.stack([mean - low, high - mean])
    axis.barh(at, mean, xerr=spread, color=style.OKABE_ITO[0], height=0.7)
    if not np.nanmax(high, initial=0.0) > 0:
        axis.set_xlim(0, 1)
    theory = measured.groupby("group", sort=False)[f"{column}_theory"].first()
    known = theory.to_numpy(np.float64)
    if np.isfinite(known).any():
        axis.plot(known, at, "D", color=style.INK, markersize=4, label="closed form")
    axis.set_yticks(at, [style.text(str(group)) for group in groups])
    if axis.get_subplotspec().is_first_col():  # pyright: ignore[reportOptionalMemberAccess]
        axis.invert_yaxis()


def _intervals(samples: list[pd.Series]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    known = (np.asarray(sample, np.float64) for sample in samples)
    found = [t_interval(values[np.isfinite(values)]) for values in known]
    mean, low, high = np.array(found).T
    low, high = (np.where(np.isfinite(end), end, mean) for end in (low, high))
    return low, mean, high
