"""Pictures of a recorded timeline: work of clients over time, and its staleness.

Each takes frames and returns a new figure; none touches global state.
"""

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.collections import PolyCollection
from matplotlib.colors import to_rgba_array
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from ..clients import are_named, names, of_run
from ..facts import Entry
from ..frames import Study
from ..staleness import mean as mean_of_bins
from . import layout, style
from .facets import spread
from .staleness import draw_histogram

MOST_CLIENTS = 30
"""Lines of a picture."""
MOST_PANELS = 4
"""Groups of runs in one picture."""
JOBS = 60
"""Number of jobs that are shown by default, about."""
BARS = {
    "download": "#56B4E9",
    "computing": "#0072B2",
    "upload": "#009E73",
    "waiting": "#E69F00",
    "not applied": "#c0c0c0",
}
"""Colours of a client's stages; `waiting` is for the server, service included."""
MARKERS = {
    "CRASHED": "x",
    "REJOINED": "^",
    "LEFT": "s",
    "RESENT": "o",
    "GAVE_UP": "X",
    "DUPLICATE": "D",
    "REJECTED": "v",
    "TIMED_OUT": "P",
}
TICKS = 2000
"""Number of successive commits."""
Law = tuple[np.ndarray, np.ndarray]
"""Staleness in commits and its probabilities."""


def lines(jobs: pd.DataFrame, num_clients: int) -> list[int]:
    """Returns the clients that have a line of a picture, at most 30.

    Of more, those that read first; where more do so at once, an evenly spread choice.
    """
    if num_clients <= MOST_CLIENTS:
        return list(range(1, num_clients + 1))
    first = jobs.groupby("client")["read_time"].min().sort_values(kind="stable")
    until = first.iloc[: MOST_CLIENTS + 1].max()
    at_once = np.sort(first.index[first <= until].to_numpy(np.int64))
    return spread(at_once.tolist(), MOST_CLIENTS)


def first_seconds(jobs: pd.DataFrame, num_clients: int, num_jobs: int = JOBS) -> float:
    """Returns the virtual seconds in which some jobs of the drawn clients ended."""
    shown = lines(jobs, num_clients)
    mine = jobs.loc[jobs["client"].isin(shown)]
    ends = _ends(mine).dropna().sort_values()
    if num_clients > len(shown):
        # A client that is selected now and then would end its second job much later.
        firsts = _ends(mine.loc[~mine["client"].duplicated()]).dropna()
        return 2 * float(firsts.quantile(0.9)) if len(firsts) else 1.0
    return float(ends.iloc[min(num_jobs, len(ends)) - 1]) if len(ends) else 1.0


def gantt(
    study: Study,
    runs: Sequence[int],
    jobs: pd.DataFrame,
    commits: pd.DataFrame,
    incidents: pd.DataFrame,
    seconds: float | None,
) -> Figure:
    """Draws the stages of each client in the first seconds of some runs, of 4 at most.

    A line per client, or of 30 of them (`lines`); commits are ticks above, incidents
    markers. A job under way whose stages are not known yet is not drawn. Without a
    number of seconds, in which some jobs of the first run end.
    """
    entries = [study.manifest["runs"][run] for run in runs[:MOST_PANELS]]
    of_runs = [jobs.loc[jobs["run"] == entry["run"]] for entry in entries]
    shown = [
        lines(mine, entry["num_clients"])
        for mine, entry in zip(of_runs, entries, strict=True)
    ]
    if seconds is None:
        seconds = first_seconds(of_runs[0], entries[0]["num_clients"])
    heights = [0.5 + 0.17 * len(those) for those in shown]
    title = style.text(study.manifest["name"], 60)
    if len(entries) < len(runs):
        title += f"; {len(entries)} of {len(runs)} groups"
    used: dict[str, None] = {}
    marks: dict[str, None] = {}
    with style.context():
        figure = Figure(figsize=(8.0, 1.3 + sum(heights)))
        figure.suptitle(title, x=0.01, ha="left")
        stack = figure.subplots(
            len(entries), squeeze=False, sharex=True, height_ratios=heights
        )[:, 0]
        for axes, entry, mine, those in zip(
            stack, entries, of_runs, shown, strict=True
        ):
            run, line_of = entry["run"], {who: y for y, who in enumerate(those, 1)}
            events = incidents.loc[incidents["run"] == run]
            used |= _draw_stages(axes, mine, events, line_of, seconds)
            _draw_commits(axes, commits.loc[commits["run"] == run, "time"], seconds)
            marks |= _draw_incidents(axes, events, line_of, seconds)
            if entry["virtual_s"] < seconds:
                axes.axvspan(
                    entry["virtual_s"], seconds, color="#f0f0f0", lw=0, zorder=0
                )
            _name_lines(axes, study, entry, those)
        stack[-1].set(xlabel=style.AXES["time"], xlim=(0, seconds))
        handles: list = [Patch(color=BARS[part], label=part) for part in used]
        handles.append(
            Line2D([], [], label="server update", color=style.INK, marker="|", ls="")
        )
        handles += [_marker(mark, mark.lower().replace("_", " ")) for mark in marks]
        figure.legend(handles=handles, loc="outside lower center", ncols=5)
    return figure


def staleness(
    histograms: Mapping[str, pd.DataFrame],
    laws: Mapping[str, Law | None],
    means: Mapping[str, float | None],
    name: str = "",
) -> Figure:
    """Draws the staleness of each group's contributions.

    Args:
        histograms: Tables of `timelines.histogram`, by group.
        laws: Known laws by group, drawn over the bars.
        means: Means of theory by group, drawn where no law is known.
        name: Name of the study.
    """
    rows, columns = layout.grid(len(histograms))
    looks = style.looks(histograms)
    with style.context():
        figure = Figure(figsize=(max(4.6, 0.4 + 2.9 * columns), 1.2 + 2.1 * rows))
        figure.suptitle(style.text(name, 60), x=0.01, ha="left")
        every = layout.panels(figure, len(histograms), columns, shared=False)
        for axes, (group, frame) in zip(every, histograms.items(), strict=True):
            low = frame["staleness"]
            law, mean = laws.get(group), means.get(group)
            bins = frame.assign(low=low, high=low + 1)
            own = mean_of_bins(bins)
            said = draw_histogram(axes, bins, looks[group].color, own, law)
            if law is None and mean is not None:
                axes.axvline(mean, color=style.INK, lw=3.5, alpha=0.3, zorder=2)
            axes.set_title(f"{style.text(group)}\n{said}".lstrip("\n"), fontsize=8)
        for axes in every[-columns:]:
            axes.set_xlabel(style.STALENESS["contribution"], fontsize=8)
        figure.supylabel(f"{style.SHARE},\nafter the start", fontsize=9, ma="center")
        handles = [Line2D([], [], color=style.INK, ls=":", label="mean")]
        known = [(laws.get(group), means.get(group)) for group in histograms]
        if any(law is not None for law, _ in known):
            handles.append(Line2D([], [], color=style.INK, lw=1.2, label="theory: law"))
        if any(law is None and mean is not None for law, mean in known):
            look = {"color": style.INK, "lw": 3.5, "alpha": 0.3}
            handles.append(Line2D([], [], **look, label="theory: mean"))
        figure.legend(handles=handles, loc="outside lower center", ncols=3)
    return figure


def stages(jobs: pd.DataFrame, incidents: pd.DataFrame) -> pd.DataFrame:
    """Divides jobs into the stages of a client, one after the other.

    Where clients do not wait for their uploads, waiting ends with their next read. A
    download begins when the job before has been computed, if it was read before that:
    until then the job waited in its client's queue.

    Returns:
        Columns client, job, stage (a key of `BARS`), start, end (virtual s); stages
        that took no time are left out.
    """
    work = jobs.loc[jobs["kind"] == "work"].sort_values("read_time", kind="stable")
    crashes = incidents.loc[incidents["incident"] == "CRASHED", ["client", "time"]]
    work = pd.merge_asof(
        work, crashes.astype({"client": work["client"].dtype, "time": np.float64}),
        left_on="read_time", right_on="time", by="client", direction="forward",
    )  # fmt: skip
    read, computed = work["read_time"], work["computed_time"]
    following = work.groupby("client")["read_time"].shift(-1)
    crashed = (work["outcome"] == "CRASHED") & computed.isna()
    computed = computed.where(~crashed, work["time"])
    sent, arrived, applied = (
        work[f"{what}_time"] for what in ("sent", "arrived", "applied")
    )
    before = work.groupby("client")["computed_time"].shift(1).fillna(-np.inf)
    started = np.minimum(work["begun_time"].fillna(computed), computed)
    pieces = [
        ("download", np.maximum(read, before), started),
        ("computing", started, computed),
        ("upload", sent, arrived),
        ("waiting", arrived, np.minimum(applied, following.fillna(np.inf))),
    ]
    keys = work[["client", "job"]]
    table = pd.concat(
        [keys.assign(stage=name, start=a, end=b) for name, a, b in pieces]
    )
    table = table.loc[table["end"] > table["start"]]
    return table.sort_values(["client", "start"], kind="stable", ignore_index=True)


def _draw_stages(
    axes: Axes,
    jobs: pd.DataFrame,
    incidents: pd.DataFrame,
    line_of: dict[int, int],
    seconds: float,
) -> dict[str, None]:
    """Draws the stages of clients that have lines, and returns those it drew."""
    in_time = jobs["read_time"] < seconds
    shown = jobs.loc[in_time & jobs["client"].isin(list(line_of))]
    table = stages(shown, incidents)
    failed = shown["outcome"].isin(("REJECTED", "LOST", "CRASHED"))
    bad = pd.MultiIndex.from_frame(shown.loc[failed, ["client", "job"]])
    is_bad = pd.MultiIndex.from_frame(table[["client", "job"]]).isin(bad)
    parts = np.where(is_bad, "not applied", table["stage"])
    # Stages lie on each other in the order of their first bars.
    order = np.argsort(pd.factorize(table["stage"])[0], kind="stable")
    found, which = np.unique(parts[order], return_inverse=True)
    start, end = (table[each].to_numpy()[order] for each in ("start", "end"))
    line = table["client"].map(line_of).to_numpy(np.float64)[order]
    low, high = line - 0.31, line + 0.31
    bars = np.stack([[start, start, end, end], [low, high, high, low]], axis=-1)
    # One artist: an artist of its own for each of thousands takes seconds.
    colors = to_rgba_array([BARS[part] for part in found])[which]
    every = list(bars.swapaxes(0, 1))
    axes.add_collection(
        PolyCollection(every, zorder=2, edgecolors="white", lw=0.4, facecolors=colors)
    )
    return dict.fromkeys(parts[order])


def _draw_commits(axes: Axes, times: "pd.Series[float]", seconds: float) -> None:
    """Draws a tick for each place that can be seen apart, of a million commits too."""
    commits = times.loc[times <= seconds].to_numpy(np.float64)
    _, told = np.unique(np.floor(commits / seconds * TICKS), return_index=True)
    commits = commits[told]
    axes.plot(commits, np.full(commits.size, 0.15), "|", color=style.INK, ms=5)


def _draw_incidents(
    axes: Axes, incidents: pd.DataFrame, line_of: dict[int, int], seconds: float
) -> dict[str, None]:
    """Draws a marker for each incident, and returns those it drew."""
    soon = incidents["time"] <= seconds
    near = incidents.loc[soon & incidents["client"].isin(list(line_of))]
    marks: dict[str, None] = {}
    for what, mine in near.groupby("incident", sort=False):
        marks[str(what)] = None
        line = _marker(str(what), "")
        line.set_data(mine["time"], mine["client"].map(line_of))
        axes.add_line(line)
    return marks


def _name_lines(axes: Axes, study: Study, entry: Entry, clients: list[int]) -> None:
    count, known = len(clients), of_run(study, entry["run"])
    title = style.text(layout.name(study, entry["label"]), 60)
    if count < entry["num_clients"]:
        title += f"; {count} of {entry['num_clients']} clients"
    axes.set_title(title.lstrip("; "))
    axes.set(ylim=(count + 0.5, -0.3), ylabel="Client")
    named = are_named(known)
    ticks = range(1, count + 1, 1 if named else max(1, count // 6))
    at = [clients[tick - 1] for tick in ticks]
    size = 6 if named and count > MOST_CLIENTS // 3 else 8
    called = [style.text(name, 60) for name in names(known, at)]
    axes.set_yticks(ticks, called, fontsize=size)
    axes.grid(visible=False, axis="y")


def _marker(what: str, label: str) -> Line2D:
    return Line2D(
        [], [], color="#D55E00", marker=MARKERS.get(what, "*"), ms=4.5, ls="",
        zorder=5, label=label, markeredgecolor=style.INK, markeredgewidth=0.5,
    )  # fmt: skip


def _ends(jobs: pd.DataFrame) -> pd.Series:
    """Returns the time at which each job was applied, or its last known time."""
    times = [f"{what}_time" for what in ("applied", "arrived", "sent", "computed")]
    return jobs[times].max(axis=1)
