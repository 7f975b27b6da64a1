"""Draws the pictures of the pages that explain: protocols, staleness, delays, shares.

python docs/pictures.py    # writes docs/figures/{protocols,staleness,delays,shares}.png

Backgrounds are transparent and inks mid-grey, for light and dark pages.
"""

import tempfile
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
import pandas as pd
import scipy.stats
import yaml
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from sklearn.datasets import load_digits

from stalesim.analysis.figures import gantt, style
from stalesim.analysis.frames import joined
from stalesim.simulator.scenario.reading import read_any
from stalesim.simulator.studies.saved import record

FIGURES = Path(__file__).parent / "figures"
INK = "#808080"
PLAYED_S, SHOWN_S = 25.0, 12.0
BLUE, ORANGE, GREY = "#4c8fc9", "#e0a13c", "#b5b5b5"
BARS = {"update applied": BLUE, "waiting": ORANGE, "update discarded": GREY}
PROTOCOLS = {
    "synchronous": {},
    "synchronous, deadline: 2": {"deadline": 2},
    "synchronous, wait_for: 4": {"wait_for": 4, "late": "stop"},
    "collect, count: 4": {"kind": "collect", "count": 4},
    "buffered, size: 3": {"kind": "buffered", "size": 3},
    "asynchronous": {"kind": "asynchronous"},
    "asynchronous, staleness_bound: 3": {"kind": "asynchronous", "staleness_bound": 3},
    "gossip": {"kind": "gossip"},
}
SCENARIO: dict[str, Any] = {
    "name": "protocols",
    "seed": 3,
    "clients": {
        "groups": {
            "fast": {"number": 4, "compute": {"law": "lognorm", "s": 0.3, "scale": 1}},
            "slow": {
                "number": 2,
                "compute": {"law": "lognorm", "s": 0.3, "scale": 2.5},
            },
        }
    },
    "protocol": {"kind": "synchronous"},
    "stop": {"time": PLAYED_S},
    "variants": {name: {"protocol": one} for name, one in PROTOCOLS.items()},
}
LAWS = {
    "constant": None,
    "uniform": scipy.stats.uniform(0.5, 1),
    "exponential": scipy.stats.expon(),
    "lognormal, s = 1": scipy.stats.lognorm(1, scale=np.exp(-0.5)),
    "Pareto, b = 1.5": scipy.stats.pareto(1.5, scale=1 / 3),
}
"""Delays with a mean of 1 s."""


def protocols(figure: Figure) -> None:
    """Draws the jobs of six clients under each protocol, with the server's updates."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "protocols.yaml"
        path.write_text(yaml.safe_dump(SCENARIO, sort_keys=False), encoding="utf-8")
        study = record(read_any(path), Path(folder) / "study")
        jobs, incidents, rows = (
            joined(study, table) for table in ("jobs", "incidents", "rows")
        )
        panels: Any = figure.subplots(4, 2, sharex=True, sharey=True)
        for axes, name in zip(panels.flat, PROTOCOLS, strict=True):
            mine = (
                frame.loc[frame["group"] == name] for frame in (jobs, incidents, rows)
            )
            _strip(axes, name, *mine)
    for axes in panels[-1]:
        axes.set_xlabel("Virtual time (s)")
    handles: list[Any] = [Patch(color=c, label=label) for label, c in BARS.items()]
    handles += (
        mpl.lines.Line2D([], [], color=INK, marker="v", ls="", label="new model"),
    )
    figure.legend(handles=handles, loc="outside lower center", ncols=4)


def _strip(axes: Axes, name: str, jobs: Any, incidents: Any, rows: Any) -> None:
    bars = gantt.stages(jobs, incidents)
    stopped = jobs["outcome"] == "STOPPED"
    following = jobs.sort_values("read_time").groupby("client")["read_time"].shift(-1)
    ends = jobs.assign(start=jobs["begun_time"], end=following, stage="computing")
    bars = pd.concat([bars, ends.loc[stopped, bars.columns]])
    bad = jobs.loc[stopped | (jobs["outcome"] == "REJECTED"), ["client", "job"]]
    discarded = {*bad.itertuples(index=False, name=None)}
    for bar in bars.itertuples():
        color = ORANGE if bar.stage == "waiting" else BLUE
        if (bar.client, bar.job) in discarded:
            color = GREY
        width = max(bar.end - bar.start - 0.05, 0)
        axes.barh(bar.client, width, 0.7, bar.start, color=color, align="center")
    commits = rows.loc[rows["kind"] == "COMMIT", "time"].unique()
    axes.plot(commits, np.full(len(commits), 0.2), "v", color=INK, ms=4)
    axes.set(title=name, xlim=(0, SHOWN_S), ylim=(6.6, -0.3), yticks=())
    axes.grid(visible=False)


def staleness(figure: Figure) -> None:
    """Draws one job that reads version 3 and is applied to version 7."""
    axes = figure.subplots()
    axes.set(xlim=(-0.9, 10.2), ylim=(-0.2, 2.75))
    axes.axis("off")
    for name, y in (("server", 2), ("client", 0.6)):
        axes.text(-0.9, y, name, va="center", fontweight="bold")
        axes.plot([0.1, 10], [y, y], color=INK, lw=1, zorder=0)
    for version, x in zip(range(3, 9), (0.5, 2.3, 3.6, 5.2, 6.4, 8), strict=True):
        mine = version == 8
        axes.plot(x, 2, "o", color=ORANGE if mine else BLUE, ms=17)
        axes.text(x, 2, f"{version}", color="white", ha="center", va="center")
    axes.text(0.5, 2.38, "version", ha="center", fontsize=8)
    axes.barh(0.6, 6.1, 0.36, 1.2, color=ORANGE)
    axes.text(4.25, 0.6, "computes on version 3", ha="center", va="center", color="w")
    arrow = {"arrowstyle": "-|>", "color": ORANGE, "lw": 1.5}
    axes.annotate("", (1.2, 0.75), (0.5, 1.78), arrowprops=arrow)
    axes.annotate("", (8, 1.78), (7.3, 0.75), arrowprops=arrow)
    axes.text(0.72, 1.2, "reads", ha="right")
    axes.text(8.05, 1.05, "applied to version 7,\nmakes version 8")
    brace = {"arrowstyle": "<->", "color": INK}
    axes.annotate("", (6.62, 2.5), (0.75, 2.5), arrowprops=brace)
    axes.text(3.7, 2.6, "staleness 4: four updates between read and use", ha="center")
    axes.annotate("", (8, 0.15), (0.5, 0.15), arrowprops=brace)
    axes.text(4.25, -0.12, "age: the same interval in seconds", ha="center")


def delays(figure: Figure) -> None:
    """Draws the densities and tails of delay laws with the same mean."""
    left, right = figure.subplots(1, 2)
    x = np.linspace(0.001, 4, 800)
    far = np.geomspace(0.1, 100, 800)
    colors = style.palette()
    for color, (name, law) in zip(colors, LAWS.items(), strict=False):
        if law is None:
            left.axvline(1, color=color, lw=1.5, label=name)
            right.plot([0.1, 1, 1], [1, 1, 1e-6], color=color, lw=1.5)
        else:
            left.plot(x, law.pdf(x), color=color, label=name)
            right.plot(far, law.sf(far), color=color)
    left.set(ylim=(0, 2), xlim=(0, 4), xlabel="Delay (s)", title="Density; mean 1 s")
    right.set(xscale="log", yscale="log", xlim=(0.1, 100), ylim=(1e-5, 1.3))
    right.set(xlabel="Delay (s)", title="Fraction of longer delays")
    left.legend()


def shares(figure: Figure) -> None:
    """Draws how many images of each digit ten clients have, by Dirichlet's alpha."""
    counts = np.bincount(load_digits().target)
    panels = figure.subplots(1, 3, sharey=True)
    colors = mpl.colormaps["tab10"].colors
    for axes, alpha in zip(panels, (100.0, 1.0, 0.1), strict=True):
        drawn = np.random.default_rng(1).dirichlet(np.full(10, alpha), 10).T
        mine = drawn * counts
        left = np.zeros(10)
        for digit in range(10):
            axes.barh(np.arange(1, 11), mine[:, digit], 0.8, left, color=colors[digit])
            left += mine[:, digit]
        axes.set(title=f"alpha = {alpha:g}", xlabel="Images", yticks=range(1, 11))
        axes.grid(visible=False)
    panels[0].set(ylabel="Client", ylim=(10.6, 0.4))


SIZES = {protocols: (9.6, 7.2), staleness: (8, 2.6), delays: (8, 3), shares: (8, 3)}

if __name__ == "__main__":
    inks = ("text.color", "axes.labelcolor", "xtick.color", "ytick.color")
    for draw, size in SIZES.items():
        with style.context(), mpl.rc_context(dict.fromkeys(inks, INK)):
            picture = Figure(size, layout="constrained")
            draw(picture)
            for each in picture.axes:
                each.patch.set_alpha(0)
                each.grid(alpha=0.25, color=INK) if draw is delays else None
            picture.savefig(FIGURES / f"{draw.__name__}.png", dpi=144, transparent=True)
