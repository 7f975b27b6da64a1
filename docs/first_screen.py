"""The first figure of README.md: who works when, how stale that is, its worth.

python docs/first_screen.py FOLDER    # of a finished study of `quickstart`
"""

import sys
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from stalesim.analysis.curves import mean_curves
from stalesim.analysis.figures import layout, style
from stalesim.analysis.figures.files import save_figure
from stalesim.analysis.figures.tails import tail
from stalesim.analysis.frames import Study, groups, joined
from stalesim.analysis.staleness import histogram, stale_groups
from stalesim.analysis.targets import default_target, time_to_target
from stalesim.simulator.files.study import load

NAME = "first-screen"
SIZE = (9.6, 4.8)
SHOWN_S = 24.0
"""Virtual seconds of who works when."""
LEARNT_S = 100.0
"""Virtual seconds of the curves: all of a run."""


def draw(study: Study, folder: Path) -> None:
    """Draws the figure of a study of protocols.

    Args:
        study: Finished study with a group per method.
        folder: Folder of the figure.
    """
    known = groups(study)
    looks = style.looks(known)
    with style.context():
        figure = Figure(SIZE, layout="constrained")
        halves: Any = figure.subfigures(1, 2, width_ratios=(1, 1.25), wspace=0.04)
        left, right = halves
        strips: Any = left.subplots(len(known), 1, sharex=True)
        for axes, group in zip(strips, known, strict=True):
            _draw_work(axes, study, group, looks[group].color)
        strips[0].set_title("Who computes when: 15 fast clients, 5 slow ones")
        strips[-1].set_xlabel("Virtual time (s)")
        below: Any = right.subplots(2, 1, height_ratios=(1.7, 1))
        _draw_curves(below[0], study, looks)
        _draw_staleness(below[1], study, looks)
        save_figure(figure, folder / NAME)


def _draw_work(axes: Axes, study: Study, group: str, color: str) -> None:
    """Draws the computations of a group's first run, and the waiting between them."""
    jobs = joined(study, "jobs")
    jobs = jobs.loc[(jobs["group"] == group) & (jobs["replicate"] == 0)]
    jobs = jobs.loc[(jobs["kind"] == "work") & (jobs["begun_time"] < SHOWN_S)]
    number = int(jobs["client"].max())
    for client, mine in jobs.groupby("client"):
        begin = mine["begun_time"].to_numpy(np.float64)
        end = mine["computed_time"].fillna(SHOWN_S).to_numpy(np.float64)
        bars = np.column_stack([begin, np.minimum(end, SHOWN_S) - begin])
        row: Any = client
        axes.broken_barh(
            bars.tolist(), (row - 0.38, 0.76), color=color, ec="white", lw=0.5
        )
    axes.set(xlim=(0, SHOWN_S), ylim=(number + 0.7, 0.3), yticks=())
    axes.grid(visible=False)
    axes.spines["left"].set_visible(False)
    axes.set_ylabel(group, color=color, fontweight="bold")


def _draw_curves(axes: Axes, study: Study, looks: dict[str, style.Look]) -> None:
    target = default_target(study)
    metric = target.metric
    curves = mean_curves(study, list(looks), metric, points=2_000)
    times: Any = time_to_target(study, metric, target.value).set_index("group")
    for group, look in looks.items():
        curve = curves[group].query("x <= @LEARNT_S")
        cut = layout.Cut(study, metric)
        low, high = cut.within(curve["low"].to_numpy(), curve["high"].to_numpy())
        x, color = curve["x"].to_numpy(), look.color
        axes.fill_between(x, low, high, step="post", color=color, alpha=0.18, lw=0)
        median = float(times.loc[group, "median"])
        label = f"{group}: {target.value:g} after {median:.0f} s"
        axes.plot(x, curve["mean"], color=color, drawstyle="steps-post", label=label)
        axes.plot([median], [target.value], "o", color=color, mec="white", zorder=5)
    axes.axhline(target.value, color="#808080", lw=0.8, ls=":", zorder=0)
    number = int(times["replicates"].max())
    axes.set_title(f"What it learns: mean of {number} replicates, 95 % intervals")
    axes.set(xlim=(0, LEARNT_S), ylim=(0, 1), ylabel=style.metric_label(metric))
    axes.set_xlabel("Virtual time (s)")
    axes.legend(loc="lower right")


def _draw_staleness(axes: Axes, study: Study, looks: dict[str, style.Look]) -> None:
    stale = stale_groups(study)
    for group, look in looks.items():
        if group in stale:
            frame = histogram(study, group)
            axes.plot(*tail(frame), color=look.color, drawstyle="steps-pre")
    fresh = [group for group in looks if group not in stale]
    axes.set_yscale("log")
    axes.set_xlim(left=0)
    never = f" ({', '.join(fresh)}: always fresh)" if fresh else ""
    axes.set_title(f"Staleness of the updates{never}")
    axes.set(xlabel="Staleness (commits)", ylabel="Share at least\nthis stale")


if __name__ == "__main__":
    draw(load(sys.argv[1]), Path(__file__).parent / "figures")
