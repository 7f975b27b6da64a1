"""Pictures of a study so far: curves, staleness, and who does what when."""

from collections.abc import Iterator
from itertools import islice
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from ...simulator.metrics import find
from ...simulator.timeline import COMMITS
from ...simulator.trace import is_summary, is_world
from .. import clients, facts, worlds
from ..curves import mean_curves
from ..figures import gantt, layout, learning_curves, style
from ..figures import staleness as histograms
from ..frames import Study, first_metric
from ..page.pictures import Picture, picture
from ..timelines import chrome
from ..timelines import report as timeline_report
from ..watching import Watched

MOST_HISTOGRAMS = 3
"""Variants whose staleness is shown; the report has more of them."""
MOST_JOBS = 50_000
"""First jobs of a run that are looked at for its timeline."""


def curves(seen: Watched) -> list[Picture]:
    """Returns the learning curves so far, those of runs under way among them."""
    if is_world(seen.manifest):
        return []
    if seen.rows.empty:
        known = islice(learning_curves.standard(seen.study), 2) if seen.ended else ()
        caption = next(iter(learning_curves.CAPTIONS.values()))
        return [
            picture(name, figure, f"{caption}: {_of(name)}") for name, figure in known
        ]
    metric = first_metric(seen.manifest)
    under_way = seen.rows["run"].nunique()
    caption = (
        f"{style.in_words(metric).capitalize()} so far: solid lines are means over "
        f"replicates that have ended, dashed ones runs under way ({under_way})"
    )
    return [picture("curves", so_far(seen, metric), caption)]


def _of(name: str) -> str:
    """Returns what a standard figure of curves is over, from its name."""
    return f"over {name.removeprefix('convergence-').replace('-', ', ')}"


def so_far(seen: Watched, metric: str) -> Figure:
    """Draws the mean curve of each group, and each run under way by itself.

    Args:
        seen: Study under way.
        metric: Column of the table of evaluations.
    """
    ended = {run["label"] for run in seen.ended}
    # The time of a centralised run is not that of any clients.
    central = any(facts.of(run, "is_reference") for run in seen.runs)
    against = "commits" if central else "time"
    of_run = {run["run"]: run["label"] for run in seen.runs}
    present = {of_run[run] for run in seen.rows["run"].unique()} | ended
    known = [g for g in dict.fromkeys(of_run.values()) if g in present]
    looks, axis = style.looks(dict.fromkeys(of_run.values())), style.axis(against)
    labels = [style.text(layout.name(seen.study, group)) for group in known]
    mine = [group for group in known if group in ended]
    means = mean_curves(seen.study, mine, metric, against) if mine else {}
    with style.context():
        figure = layout.titled(seen.study, (5.2, 3.6))
        axes = figure.add_subplot()
        for group, curve in means.items():
            x = axis.scale * curve["x"]
            line = {"drawstyle": "steps-post", "zorder": 3, **looks[group]._asdict()}
            axes.plot(x, curve["mean"], **line)
        for run, rows in seen.rows.groupby("run"):
            if metric in rows:
                line = {"lw": 0.9, "ls": "--", "zorder": 2, "drawstyle": "steps-post"}
                line["color"] = looks[of_run[run]].color
                axes.plot(axis.scale * rows[against], rows[metric], **line)
        axes.set_xlim(left=0)
        if (record := find(metric)) is not None and record.logarithmic:
            layout.make_logarithmic(axes)
        axes.set(xlabel=axis.label, ylabel=style.metric_label(metric, seen.study))
        handles: list[Any] = [Line2D([], [], **looks[g]._asdict()) for g in known]
        layout.add_legend(figure, handles, labels, None)
    return figure


def staleness(seen: Watched) -> list[Picture]:
    """Returns how stale the work of the first variants was, of runs that have ended."""
    if not seen.ended:
        return []
    if is_world(seen.manifest):
        return [_of_world(seen.study, "staleness")]
    caption = next(iter(histograms.CAPTIONS.values()))
    drawn = islice(histograms.standard(seen.study), MOST_HISTOGRAMS)
    return [
        picture(name, figure, f"{caption}: {name.removeprefix('staleness-')}")
        for name, figure in drawn
    ]


def timeline(seen: Watched) -> list[Picture]:
    """Returns who did what when, in the first run of each group that has ended."""
    if not seen.ended or not _has_jobs(seen):
        return []
    if is_world(seen.manifest):
        return [_of_world(seen.study, "gantt")]
    firsts = {run["label"]: run for run in reversed(seen.ended)}
    order = [run for run in seen.ended if firsts[run["label"]] is run]
    panels = [_panel(seen.study, run) for run in order[: gantt.MOST_PANELS]]
    panels = [panel for panel in panels if len(panel.jobs)]
    if not panels:
        return []
    seconds = gantt.first_seconds(panels[0].jobs, panels[0].num_clients)
    figure = gantt.gantt(panels, seconds, seen.manifest["name"])
    return [picture("gantt", figure, timeline_report.CAPTIONS["gantt"])]


def _has_jobs(seen: Watched) -> bool:
    return "jobs" in seen.study.files and not is_summary(seen.manifest)


def _of_world(study: Study, wanted: str) -> Picture:
    report = worlds.report_of(study.manifest)
    found = (f for name, f in report.standard(study) if name == wanted)
    return picture(wanted, next(found), report.caption(wanted))


def trace_events(seen: Watched) -> dict[str, Any] | None:
    """Returns the first run that has ended as trace events; None if there is none."""
    if not seen.ended or not _has_jobs(seen):
        return None
    run = seen.ended[0]
    panel = _panel(seen.study, run)
    titles = clients.titles(panel.known, range(1, panel.num_clients + 1))
    name = f"{run['label']}, replicate {run['replicate']}"
    seen_of = panel.jobs, panel.commits, panel.incidents, titles
    events: Iterator[dict[str, Any]] = chrome.events(run["run"], name, *seen_of)
    return {"traceEvents": list(events), "displayTimeUnit": "ms"}


def _panel(study: Study, run: dict[str, Any]) -> gantt.Panel:
    """Returns the first jobs of a run."""
    number, clients_ = run["run"], run["num_clients"]
    jobs = _rows(study, "jobs", number)
    if is_world(study.manifest):
        rows = _rows(study, "rows", number)
        commits = rows.loc[rows["kind"].isin(COMMITS) & (rows["place"] == 0), "time"]
    else:
        rows = _rows(study, "commits", number)
        commits = rows.loc[rows["kind"].isin(COMMITS), "time"]
    return gantt.Panel(
        layout.name(study, run["label"]),
        jobs,
        np.unique(commits.to_numpy(np.float64)),
        _rows(study, "incidents", number),
        clients_,
        run["virtual_s"],
        clients.of_run(study, number),
    )


def _rows(study: Study, table: str, run: int) -> pd.DataFrame:
    """Returns the first rows of a run in a table; a run may have millions."""
    found = study.arrow(table, run).slice(0, MOST_JOBS).to_pandas()
    words = found.select_dtypes("category").columns
    return found.astype(dict.fromkeys(words, object))
