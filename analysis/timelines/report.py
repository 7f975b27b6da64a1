"""Tables of a recorded timeline, with closed forms next to measures.

Pictures are made by `drawing`, which is imported for them alone, as Matplotlib is.
"""

from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from ...simulator.files.timeline import IN_COMMITS
from .. import clients, facts, speeds
from ..frames import Study
from . import measures, stragglers
from .view import View, view

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MOST_GROUPS = 4
"""Most groups whose clients are listed; more would scroll the rest away."""
MOST_CLIENTS = 20
"""Most rows that a table lists one by one."""
START = "start (s)"
NOT_OVER = "not over"
"""Words for a start that is not over: all of the run is measured."""
QUEUED = "queued (s)"
"""Time from a read to computing, where jobs wait in their clients' queues."""
RUNS = {
    "start_s": START,
    "commits_per_s": "server updates/s",
    "contributions_per_s": "client updates/s",
    "staleness_mean": "mean staleness",
    "staleness_50": "50 %",
    "staleness_90": "90 %",
    "staleness_99": "99 %",
    "staleness_max": "max",
}
ENDS = {
    "applied": "applied",
    "rejected": "rejected",
    "lost": "lost",
    "crashed": "crashed",
    "stopped": "stopped",
    "waiting_mean": "wait (s)",
    "queue_length": "at server",
    "queued_mean": QUEUED,
}
STARTS = {"started": "started", "missed": "missed"}
PARALLEL = {"jobs": "jobs", "waves": "waves", "wave_width": "width"}
SPEEDS = [START, "server updates/s", "client updates/s", "wait (s)", "utilisation"]
"""Columns that a log without times leaves out."""
CLIENTS = {
    "staleness_mean": "mean staleness",
    "staleness_max": "max",
    "utilisation": "utilisation",
    "available": "available",
    "waiting_mean": "wait (s)",
    "queued_mean": QUEUED,
    "uploads": "uploads",
    "incidents": "incidents",
}
"""Columns of the tables, and their headings."""


def measured(study: Study | View) -> pd.DataFrame:
    """Returns the measures of each run, as numbers."""
    return view(study).by_run


def tables(study: Study | View) -> Iterator[tuple[str, pd.DataFrame]]:
    """Yields the closing tables with their titles; cells are text.

    Closed forms follow measures in brackets, except where clients are summarised.

    Raises:
        StudyError: No run has ended.
    """
    seen = view(study)
    own = partial(facts.worded, seen.manifest)
    entries = seen.manifest["runs"]
    in_commits = all(entry.get("player") == IN_COMMITS for entry in entries)
    for title, frame in _tables(seen):
        known = frame.drop(columns=SPEEDS, errors="ignore") if in_commits else frame
        yield own(title), known.rename(columns=own)


def _tables(seen: View) -> Iterator[tuple[str, pd.DataFrame]]:
    forms, name = seen.forms, seen.manifest["name"]
    measured = measures.by_group(seen.by_run)
    replicates = int(measured["replicates"].max())
    note = f", means of {replicates} replicates" if replicates > 1 else ""
    of_runs = {group: form.of_run for group, form in forms.items()}
    title = f"{name}: speed and staleness (server updates) after the start{note}"
    yield f"{title}; in brackets: closed form", _cells(measured, of_runs, RUNS)
    if (fast := speeds.table(seen.by_run)) is not None:
        yield f"{name}: {speeds.TITLE} after the start; {speeds.NOTE}", fast
    title = f"{name}: shares of jobs; waiting after the start"
    entries = seen.manifest["runs"]
    queues = any(facts.of(entry).get("queues_jobs") for entry in entries)
    used = {QUEUED: queues, "stopped": bool(measured["stopped"].any())}
    columns = {c: t for c, t in ENDS.items() if used.get(t, True)}
    yield title, _cells(measured, of_runs, columns)
    if measured["waves"].notna().any():
        title = f"{name}: waves, each of jobs that can be computed at once"
        yield title, _cells(measured, of_runs, PARALLEL)
    starts = measures.averaged(measures.starts(seen.runs), ["group"])
    if starts["missed"].any():
        title = f"{name}: starts of jobs; missed: no place or no client was free{note}"
        yield title, _cells(starts, {group: {} for group in forms}, STARTS)
    if (gaps := _spectral_gaps(seen)) is not None:
        yield f"{name}: averaging between workers", gaps
    if seen.divided:
        runs, ages, _ = seen.counts
        parted = measures.by_client_group(runs, ages, seen.divided)
        columns = {c: t for c, t in RUNS.items() if c in parted}
        frame = _cells(parted, {group: {} for group in forms}, columns)
        frame.insert(1, "clients", parted["clients"])
        frame.insert(2, "contributions", [_text(n) for n in parted["contributions"]])
        title = f"{name}: staleness (server updates) by client group, after the start"
        yield title, frame
    if len(forms) > MOST_GROUPS:  # a terminal would lose the tables above
        return
    yield from stragglers.tables(seen)
    measured = seen.by_client
    for group, form in forms.items():
        mine = measured.loc[measured["group"] == group].reset_index(drop=True)
        who, columns = seen.who(group), CLIENTS
        if not facts.of(seen.entry(group)).get("queues_jobs"):
            mine = mine.drop(columns="queued_mean", errors="ignore")
            columns = {c: t for c, t in CLIENTS.items() if t != QUEUED}
        if len(mine) > MOST_CLIENTS:
            frame = measures.by_part(mine, who[clients.GROUP])
            frame["measure"] = frame["measure"].map(CLIENTS)
            numbers = frame.pop("number").astype(str)
            frame["clients"] += " (" + numbers + ")"
            yield f"{group}: {len(mine)} clients", frame.map(_short)
            continue
        frame = pd.DataFrame({"client": clients.names(who, mine["client"])})
        for column, title in columns.items():
            theory = form.of_clients.get(column)
            if column in mine:
                values = mine[column]
                frame[title] = [
                    _with(value, None if theory is None else theory[number])
                    for number, value in enumerate(values)
                ]
            elif theory is not None:
                frame[title] = [f"[{value:.4g}]" for value in theory]
        yield f"{group}: clients", frame


CAPTIONS = {
    "gantt": "Activity of each client, for the first jobs",
    "staleness": "Staleness of client updates, with closed forms where known",
    "comparison": "Speed and staleness, with closed forms where known",
    "stragglers": "Clients that rounds wait for, and the seconds that they add",
}
"""Captions of the figures, by name."""


OUTPUTS = (
    "Server updates and client updates per virtual second; staleness of client updates "
    "(server updates between a client's read and the use of its work); shares of "
    "jobs that were applied, rejected, lost, crashed or stopped; waiting; use of each "
    "client; waves, each of independent jobs, and their width, the jobs of a wave. "
    "Means over replicates; in brackets the closed form of the steady state, where one "
    "is known. Speed, staleness, waiting and use are measured after the start of each "
    "run, when the jobs that first filled the system have ended, or over the whole run "
    "where they have not, speed up to the last server update; maxima, shares, counts "
    "and waves are of all of it."
)
"""The measured quantities, for a report."""


def caption(name: str) -> str:
    """Returns the caption of a figure of a timeline."""
    return CAPTIONS[name]


def standard(
    study: Study | View, seconds: float | None = None
) -> "Iterator[tuple[str, Figure]]":
    """Yields the figures of a timeline with their file names, one at a time."""
    from . import drawing  # imports Matplotlib

    return drawing.standard(view(study), seconds)


def _spectral_gaps(seen: View) -> pd.DataFrame | None:
    entries = seen.manifest["runs"]
    if not (seen.is_whole and any(facts.of(each).get("averages") for each in entries)):
        return None
    rows, known = seen.rows, seen.runs
    found: dict[str, list[float]] = {}
    for run, group, number in zip(
        known["run"], known["group"], known["num_clients"], strict=True
    ):
        gap = measures.spectral_gap(rows.loc[rows["run"] == run], int(number))
        if np.isfinite(gap):
            found.setdefault(group, []).append(gap)
    if not found:
        return None
    gaps = [_text(float(np.mean(each))) for each in found.values()]
    return pd.DataFrame({"variant": list(found), "spectral gap per averaging": gaps})


def _cells(
    measured: pd.DataFrame, theory: dict[str, dict[str, float]], columns: dict[str, str]
) -> pd.DataFrame:
    frame = pd.DataFrame({"variant": measured["group"]})
    for column, title in columns.items():
        if title == START:
            ends = measured[column]
            frame[title] = [NOT_OVER if np.isnan(at) else _text(at) for at in ends]
            continue
        pairs = zip(measured["group"], measured[column], strict=True)
        frame[title] = [_with(v, theory[group].get(column)) for group, v in pairs]
    return frame


def _with(value: float, theory: float | None) -> str:
    return _text(value) + ("" if theory is None else f" [{theory:.4g}]")


def _short(value: float | str) -> str:
    return f"{value:.3g}" if isinstance(value, float) else _text(value)


def _text(value: float | str) -> str:
    if isinstance(value, str):
        return value
    return "-" if np.isnan(value) else f"{value:.4g}"
