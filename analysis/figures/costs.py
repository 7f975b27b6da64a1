"""Bars of virtual time, divided into computation and communication."""

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from ..frames import Study, described, evaluations, groups, metric_of, runs
from ..phases import PHASES, with_phases
from ..statistics import first_reached, t_interval
from ..targets import resolution
from . import layout, style
from .layout import Size

NAMES = ("computation", "communication and idling")
HATCHES = ("", "////")


def costs(
    study: Study, metric: str = "test_accuracy", target: float | None = None
) -> pd.DataFrame:
    """Returns the seconds of computation and communication of every run.

    Args:
        study: Study, finished or not.
        metric: Column of the table `evaluations`.
        target: Value of the metric; whole runs are counted without one.

    Returns:
        Columns group, replicate, computation_s, communication_s (until the target, or
        the last evaluation if it was not reached), reached, and the times between which
        it was: low (of the evaluation before), high.

    Raises:
        StudyError: The metric was not evaluated.
    """
    table = with_phases(study)
    values = metric_of(table, metric).to_numpy(np.float64)
    higher = described(study, metric).higher_is_better
    ends = runs(study)[["run", "group", "replicate"]]
    rows = []
    for run, mine in table.assign(value=values).groupby("run"):
        last, reached = len(mine) - 1, True
        before = last
        if target is not None:
            numbers = np.arange(len(mine), dtype=np.float64)
            curve = mine["value"].to_numpy(np.float64)
            seen = first_reached(numbers, curve, target, higher=higher)
            reached = bool(np.isfinite(seen[1]))
            before, last = map(int, seen) if reached else (last, last)
        times = mine["time"].iloc[[before, last]]
        rows.append((run, *mine[[*PHASES]].iloc[last], reached, *times))
    columns = pd.Index(["run", *PHASES, "reached", "low", "high"])
    found = pd.DataFrame(rows, columns=columns)
    return ends.merge(found, on="run").drop(columns="run")


def cost_bars(
    study: Study,
    metric: str = "test_accuracy",
    target: float | None = None,
    size: Size | None = None,
) -> Figure:
    """Draws each group's computation and communication, one bar on the other.

    Means over replicates, the sum with its 95 % t-interval: from that of the
    evaluations before to that of those which saw the target reached, and within the
    study. Where a replicate did not reach the target, what it took until its end
    counts, and the bar is a lower bound without an interval: pale, with how many
    replicates reached it.

    Args:
        study: Study, finished or not.
        metric: Column of the table `evaluations`.
        target: Value of the metric; whole runs are counted without one.
        size: Width and height in inches, such as `style.size("one")`; by default as the
            bars need.

    Raises:
        StudyError: The metric was not evaluated.
    """
    table = costs(study, metric, target)
    known = [group for group in groups(study) if group in set(table["group"])]
    longest = float(evaluations(study)["time"].max())
    with style.context():
        colors = style.palette()
        figure, axes = layout.rows(study, known, size)
        for row, group in enumerate(known):
            mine = table.loc[table["group"] == group]
            done, left = int(mine["reached"].sum()), 0.0
            for phase, color, hatch in zip(PHASES, colors, HATCHES, strict=False):
                mean = float(mine[phase].mean())
                axes.barh(
                    row, mean, left=left, height=0.6, color=color, hatch=hatch,
                    edgecolor="white", lw=0.5, alpha=1 if done == len(mine) else 0.4,
                )  # fmt: skip
                left += mean
            tip = left
            if done == len(mine):
                low, tip = _interval(mine, longest)
                ends = np.nan_to_num([[left - low], [tip - left]])
                ink = {"color": style.ink(), "lw": 1.2, "capsize": 3}
                axes.errorbar(left, row, xerr=ends, **ink)
            text = f"{left:.4g} s"
            if done < len(mine):  # what the others took counts until their end
                text = f"≥ {text} ({done} of {len(mine)})"
            where = {"xytext": (8, 0), "textcoords": "offset points", "va": "center"}
            here = np.nan_to_num(tip, nan=left), row
            axes.annotate(text, here, fontsize=layout.small(), **where)
        axes.set_xlim(left=0)
        axes.margins(x=0.25)
        axes.set_xlabel(f"Virtual time {_until(study, metric, target)} (s)")
        handles = [
            Patch(facecolor=color, hatch=hatch, edgecolor="white", label=name)
            for name, color, hatch in zip(NAMES, colors, HATCHES, strict=False)
        ]
        figure.legend(handles=handles, loc="outside lower center", ncols=2)
        counts = table.groupby("group").size()
        pale = "pale: not all reached the target; until their end" if target else ""
        pale = "" if table["reached"].all() else pale
        words = f"Bars: means over {layout.replicates(counts)}"
        line = "lines: 95 % t-intervals of the sum" if counts.max() > 1 else ""
        known_to = resolution(table) if target is not None else ""
        layout.add_note(figure, (words, line, pale, known_to), legend_below=True)
    return figure


def _interval(mine: pd.DataFrame, longest: float) -> tuple[float, float]:
    """Returns an interval of the mean of times between evaluations, within a study.

    NaN where there is none.
    """
    low, high = (t_interval(mine[end].to_numpy(np.float64)) for end in ("low", "high"))
    if np.isnan(low.low):
        return float("nan"), float("nan")
    return max(0.0, low.low), max(high.mean, min(longest, high.high))


def _until(study: Study, metric: str, target: float | None) -> str:
    if target is None:
        return "of whole runs"
    return f"to {layout.goal(study, metric, target)}"
