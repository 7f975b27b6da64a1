"""Pictures of a recorded timeline: joins `comparison` and `figures.gantt`."""

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from ...simulator.files.timeline import COMMITS
from .. import clients
from ..figures import gantt, layout
from ..frames import Study
from . import comparison
from .view import View


def standard(seen: View, seconds: float | None) -> Iterator[tuple[str, Figure]]:
    """Yields the figures of a timeline, as `report.standard` does."""
    known, name, forms = seen.runs, seen.name, seen.forms
    if seen.is_whole:
        first = list(known.drop_duplicates("group")["run"])
        panels = list(_panels(seen, first[: gantt.MOST_PANELS + 1]))
        if seconds is None:
            seconds = gantt.first_seconds(panels[0].jobs, panels[0].num_clients)
        yield "gantt", gantt.gantt(panels, seconds, name)
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
        yield "comparison", comparison.comparison(_compared(seen), name)


def _called(study: Study, of_groups: dict[str, Any]) -> dict[str, Any]:
    return {layout.name(study, group): value for group, value in of_groups.items()}


def _compared(seen: View) -> pd.DataFrame:
    measured, forms = seen.by_run.copy(), seen.forms
    entries = [seen.manifest["runs"][run] for run in measured["run"]]
    for column in comparison.PANELS:
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


def _panels(seen: View, wanted: list[int]) -> Iterator[gantt.Panel]:
    jobs, rows, incidents = seen.jobs, seen.rows, seen.incidents
    made = rows.loc[rows["kind"].isin(COMMITS) & (rows["place"] == 0)]
    for run in wanted:
        entry = seen.manifest["runs"][run]
        yield gantt.Panel(
            layout.name(seen.study, entry["label"]),
            jobs.loc[jobs["run"] == run],
            made.loc[made["run"] == run, "time"].to_numpy(np.float64),
            incidents.loc[incidents["run"] == run],
            entry["num_clients"],
            entry["virtual_s"],
            clients.of_run(seen.study, run),
        )
