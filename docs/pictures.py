"""Draws the pictures of the pages into `docs/figures`: python docs/pictures.py.

Those that explain are transparent, with mid-grey inks, for light and dark pages.
"""

import re
import subprocess
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
from PIL import Image
from sklearn.datasets import load_digits

from stalesim import simulate
from stalesim.analysis.curves import mean_curves
from stalesim.analysis.figures import gantt, layout, style
from stalesim.analysis.figures.tails import tail
from stalesim.analysis.frames import Study, groups, joined
from stalesim.analysis.staleness import histogram, stale_groups
from stalesim.analysis.targets import default_target, time_to_target
from stalesim.simulator.scenario.reading import read_any
from stalesim.simulator.studies.saved import record

FIGURES = Path(__file__).parent / "figures"
INK = "#808080"
PLAYED_S, SHOWN_S, FIRST_S, LEARNT_S = 25.0, 12.0, 24.0, 100.0
BLUE, ORANGE, GREY = "#4c8fc9", "#e0a13c", "#b5b5b5"
BARS = {"update applied": BLUE, "waiting": ORANGE, "update discarded": GREY}
PROTOCOLS = {
    "synchronous": {},
    "synchronous, deadline: 2": {"deadline": 2},
    "synchronous, wait_for: 4": {"wait_for": 4, "late": "cancel"},
    "collect, count: 4": {"kind": "collect", "count": 4},
    "buffered, buffer_size: 3": {"kind": "buffered", "buffer_size": 3},
    "asynchronous": {"kind": "asynchronous"},
    "asynchronous, max_staleness: 3": {"kind": "asynchronous", "max_staleness": 3},
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


def first_screen(figure: Figure) -> None:
    """Draws the quickstart: who works when, how stale that is, and its worth."""
    with tempfile.TemporaryDirectory() as folder:
        study = simulate("quickstart", Path(folder) / "study")
        known = groups(study)
        looks = style.looks(known)
        halves: Any = figure.subfigures(1, 2, width_ratios=(1, 1.25), wspace=0.04)
        strips: Any = halves[0].subplots(len(known), 1, sharex=True)
        for axes, group in zip(strips, known, strict=True):
            _draw_work(axes, study, group, looks[group].color)
        strips[0].set_title("Who computes when: 15 fast clients, 5 slow ones")
        strips[-1].set_xlabel("Virtual time (s)")
        below: Any = halves[1].subplots(2, 1, height_ratios=(1.7, 1))
        _draw_curves(below[0], study, looks)
        _draw_staleness(below[1], study, looks)


def _draw_work(axes: Axes, study: Study, group: str, color: str) -> None:
    """Draws the computations of a group's first run, and the waiting between them."""
    jobs = joined(study, "jobs")
    jobs = jobs.loc[(jobs["group"] == group) & (jobs["replicate"] == 0)]
    jobs = jobs.loc[(jobs["kind"] == "work") & (jobs["begun_time"] < FIRST_S)]
    number = int(jobs["client"].max())
    for client, mine in jobs.groupby("client"):
        begin = mine["begun_time"].to_numpy(np.float64)
        end = mine["computed_time"].fillna(FIRST_S).to_numpy(np.float64)
        bars = np.column_stack([begin, np.minimum(end, FIRST_S) - begin])
        row: Any = client
        axes.broken_barh(
            bars.tolist(), (row - 0.38, 0.76), color=color, ec="white", lw=0.5
        )
    axes.set(xlim=(0, FIRST_S), ylim=(number + 0.7, 0.3), yticks=())
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
    axes.set(xlabel="Staleness (server updates)", ylabel="Share at least\nthis stale")


def gallery() -> None:
    """Executes the commands of the gallery, and keeps the figures that it shows."""
    page = (FIGURES.parent / "gallery.md").read_text(encoding="utf-8")
    with tempfile.TemporaryDirectory() as folder:
        for block in re.findall(r"^```sh\n(.*?)^```$", page, re.MULTILINE | re.DOTALL):
            subprocess.run(block, shell=True, cwd=folder, check=True)
        for name in re.findall(r"figures/gallery/(.*?)\)", page):
            study, _, file = name.partition("/")
            with Image.open(Path(folder) / study / "figures" / file) as image:
                size = 760, round(760 * image.height / image.width)
                small = image.convert("RGB").resize(size).quantize(64)
            target = FIGURES / "gallery" / name
            target.parent.mkdir(parents=True, exist_ok=True)
            small.save(target, optimize=True)


SIZES = {protocols: (9.6, 7.2), staleness: (8, 2.6), delays: (8, 3), shares: (8, 3)}
SIZES |= {first_screen: (9.6, 4.8)}


if __name__ == "__main__":
    inks = ("text.color", "axes.labelcolor", "xtick.color", "ytick.color", "grid.color")
    colors = dict.fromkeys(inks, INK) | {"grid.alpha": 0.25}
    for draw, size in SIZES.items():
        with style.context(), mpl.rc_context(colors):
            picture = Figure(size, layout="constrained")
            draw(picture)
            for each in picture.axes:
                each.patch.set_alpha(0)
            name = draw.__name__.replace("_", "-")
            picture.savefig(FIGURES / f"{name}.png", dpi=144, transparent=True)
    gallery()
