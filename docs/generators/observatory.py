"""The page and the figures of the observatory of time, from its tables."""

from pathlib import Path
from typing import Any, cast

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.patches import Patch, Rectangle

from analysis.figures import style
from analysis.figures.files import save_figure
from analysis.markup import literal
from generators.formulas import markdown

NAME = "observatory"
WIDTH = 7.16
KINDS = {"fixed": 0, "universal": 1, "heavy": 2, "queues": 3}
SHORT = {
    "ASGD": "ASGD",
    "Ringmaster": "Ringmaster",
    "m-synchronous, stops": "m of n, stops",
    "Rennala, stops": "Rennala, stops",
    "m-synchronous": "m of n",
    "synchronous": "all of n",
}


def has_results(results: Path) -> bool:
    """Says whether the observatory's tables are there."""
    return (results / NAME / "ratios.csv").exists()


def document(note: str, results: Path) -> str:
    """Returns the page.

    Args:
        note: Note below the title.
        results: Folder of the results of studies.
    """
    tables = {
        name: pd.read_csv(results / NAME / f"{name}.csv", keep_default_na=False)
        for name in ("ratios", "phases", "winners", "mindflayer", "bias")
    }
    ratios = tables["ratios"]
    wrong = int(ratios["violations"].sum())
    broken = ", ".join(
        f"{row.method} ({row.quantity}, {row.worlds}: {row.violations})"
        for row in ratios[ratios["violations"] > 0].itertuples()
    )
    return (
        f"# The observatory of time\n\n{note}\n"
        "`python -m benchmarks.observatory FOLDER` plays it and writes the tables of\n"
        "docs/results/observatory; what is in FOLDER is not played again. The rules\n"
        "of the methods: [methods.md](methods.md).\n\n"
        "## Simulated time over what is proved\n\n"
        f"{ratios['played'].sum():,} checks in random worlds: fixed times; powers\n"
        "that change over time (universal); heavy tails, of which some have no mean;\n"
        "exponential services with queues. Each ratio has an interval in which it is\n"
        "proved to lie. A ratio of means to an expectation (`1 in the mean`) is\n"
        "judged by a two-sided test at 1 % for all worlds of a row together\n"
        "(Bonferroni); with heavy tails, whose means so few rounds do not tell, the\n"
        "law of a round is tested (Kolmogorov and Smirnov).\n"
        f"**Violations: {wrong}**{': ' + broken if wrong else ''}.\n\n"
        "*A job wasted by each*: the least time after which clients have done so many\n"
        "jobs if each has wasted one, that under way at the start; the form of t(R)\n"
        "for powers that change, derived here. *Exact time*: the same without waste.\n"
        "Everyone's delays and those of jobs under way add up to concurrency - 1 for\n"
        "each commit, whatever the laws. A round of Ringleader waits for everyone;\n"
        "where times may have no mean its run ends after so many jobs (*rounds in ...\n"
        "jobs*), and no delay is told of a run without a whole round.\n\n"
        f"{markdown(_words(ratios))}\n\n"
        f"![Ratios of simulated time to bounds](figures/{NAME}-ratios.png)\n\n"
        "## Who wins where\n\n"
        "Seconds to a squared gradient norm of 0.001 of its start on a quadratic\n"
        "(condition 10, alike for all clients), every method at its best step and at\n"
        "its best R, S or m; exponential times, whose means are spread over clients\n"
        "(standard deviation of their logarithm; harmonic mean 1 s). Noise is\n"
        "sigma^2 / epsilon. Geometric means over seeds. In the figure the colour is\n"
        "the fastest method, and the number how many times longer the next one takes:\n"
        "of all methods, and of those that stop no job. Exponential times have no\n"
        "memory, so that a stop costs nothing: methods with stops win everywhere.\n\n"
        f"![Who wins where](figures/{NAME}-winners.png)\n\n"
        f"{markdown(_winning(tables['winners']))}\n\n"
        "## When does asynchrony beat waiting for m of n?\n\n"
        "The same with 16 clients and three tails of the same mean: how many times\n"
        "longer rounds of the best m take than the better of ASGD and Ringmaster.\n"
        "Above 1 asynchrony wins. The white line is the border; between the thin\n"
        "lines the 95 % interval of six pairs of seeds contains 1. Dashed, for rounds\n"
        "with stops: where the theory's times are equal, without their constants,\n"
        "min_m E[round of m] (1 + noise / m) and A_n (1 + noise / n).\n\n"
        f"![Phase diagram](figures/{NAME}-phases.png)\n\n"
        f"{_phase_words(tables['phases'])}\n\n"
        f"{markdown(_phases(tables['phases']))}\n\n"
        "## Plain ASGD ends near its fast clients\n\n"
        "f_i = (x - b_i)^2 / 2 with b = (0, 1, 10), and 1, 2 and 7 s for a gradient.\n"
        f"The optimum is {tables['bias']['mean'][0]:.3f}; the mean weighted by\n"
        f"1 / tau_i is {tables['bias']['weighted'][0]:.3f}.\n\n"
        f"{markdown(tables['bias'][['method', 'ends at']].round(3))}\n\n"
        "## MindFlayer loses to Rennala at ten clients\n\n"
        "Seconds for a gradient at the same mean batch, where one takes 1 s and a\n"
        "Lomax(1.1) time; MindFlayer gives trials up after 1 s and the median of the\n"
        "rest. `ratio` is Rennala's over MindFlayer's with its 95 % interval\n"
        "(10 pairs of seeds): MindFlayer is better above 1.\n\n"
        f"{markdown(tables['mindflayer'].round(3))}\n"
    )


def _words(ratios: pd.DataFrame) -> pd.DataFrame:
    numbers = ["least", "5 %", "median", "95 %", "largest"]
    shown = ratios.copy()
    shown[numbers] = shown[numbers].map(lambda x: f"{float(x):.3f}")
    return shown.map(lambda x: literal(x) if isinstance(x, str) else x)


def _winning(winners: pd.DataFrame) -> pd.DataFrame:
    """Returns the worlds of the least and largest noise and spread."""
    ends = [winners[c].isin([winners[c].min(), winners[c].max()]) for c in AXES]
    shown = winners[(winners["tail"] == "exponential") & ends[0] & ends[1]]
    columns = [*AXES, *SHORT]
    return shown[["clients", *columns]].round(2).rename(columns=SHORT)


AXES = ("spread", "noise")


def _phase_words(phases: pd.DataFrame) -> str:
    parts = []
    for rounds, own in phases.groupby("rounds", sort=False):
        wins = (own["low"] > 1).sum()
        loses = (own["high"] < 1).sum()
        parts.append(
            f"Against rounds with {rounds} asynchrony wins in {wins} of {len(own)}\n"
            f"worlds, loses in {loses}, and {len(own) - wins - loses} are undecided."
        )
    same = np.sign(np.log(phases["ratio"])) == np.sign(np.log(phases["theory"]))
    stops = phases["rounds"] == "stops"
    parts.append(
        f"The theory names the winner in {int(same[stops].sum())} of "
        f"{int(stops.sum())}\nworlds with stops."
    )
    return " ".join(parts)


def _phases(phases: pd.DataFrame) -> pd.DataFrame:
    shown = phases[phases["noise"].isin([phases["noise"].min(), phases["noise"].max()])]
    shown = shown[shown["spread"].isin([0, 1, 2])]
    columns = ["tail", "spread", "noise", "rounds", "ratio", "low", "high", "theory"]
    return shown[[*columns, "asynchronous", "m"]].round(3)


def figures(results: Path, folder: Path) -> None:
    """Draws the figures; nothing where there are no results.

    Args:
        results: Folder of the results of studies.
        folder: Folder of the figures.
    """
    if not has_results(results):
        return
    with style.context():
        ratios = pd.read_csv(results / NAME / "quantiles.csv")
        save_figure(_ratios(ratios), folder / f"{NAME}-ratios")
        winners = pd.read_csv(results / NAME / "winners.csv")
        save_figure(_winners(winners), folder / f"{NAME}-winners")
        phases = pd.read_csv(results / NAME / "phases.csv")
        save_figure(_phase_figure(phases), folder / f"{NAME}-phases")


def _ratios(quantiles: pd.DataFrame) -> Figure:
    """Draws least to largest thin, 5 % to 95 % thick, and the median."""
    varied = quantiles[(quantiles["100"] - quantiles["0"]) > 1e-6]
    varied = varied.sort_values(["method", "quantity", "worlds"], ascending=False)
    figure = Figure((WIDTH, 0.27 * len(varied) + 0.9), layout="constrained")
    axes: Any = figure.subplots()
    colours = style.palette()
    for row, (_, own) in enumerate(varied.iterrows()):
        colour = colours[KINDS[own["worlds"]]]
        axes.plot([own["0"], own["100"]], [row, row], c=colour, lw=1)
        axes.plot(
            [own["6"], own["94"]],
            [row, row],
            c=colour,
            lw=5,
            alpha=0.5,
            solid_capstyle="butt",
        )
        axes.plot(own["50"], row, "o", c=colour, ms=4)
    labels = (varied["method"] + ": " + varied["quantity"]).tolist()
    axes.set_yticks(range(len(varied)), labels, fontsize=6)
    axes.axvline(1, c="k", lw=0.8)
    axes.axvline(0.5, c="k", lw=0.8, ls=":")
    axes.set_xlabel("Measured over bound or closed form")
    axes.legend(
        handles=[Patch(color=colours[at], label=kind) for kind, at in KINDS.items()],
        loc="lower right",
        fontsize=6,
    )
    return figure


def _winners(winners: pd.DataFrame) -> Figure:
    """Draws the fastest method of each world, and how much slower the next one is."""
    shown = winners[winners["tail"] == "exponential"]
    colours = dict(zip(SHORT, style.palette(), strict=False))
    numbers = sorted(shown["clients"].unique())
    figure = Figure((WIDTH, 4.6), layout="constrained")
    grid: Any = figure.subplots(2, len(numbers), sharex=True, sharey=True)
    without = [name for name in SHORT if "stops" not in name]
    for line, (methods, words) in zip(
        grid, ((list(SHORT), ""), (without, ", no stops")), strict=True
    ):
        for axes, number in zip(line, numbers, strict=True):
            own = shown[shown["clients"] == number]
            _map(axes, own.set_index(["noise", "spread"])[methods], colours)
            axes.set_title(f"{number} clients{words}", fontsize=8)
        line[0].set_ylabel("sigma² / epsilon")
    for axes in grid[-1]:
        axes.set_xlabel("Spread of mean times")
    handles = [
        Patch(color=colour, label=SHORT[name], alpha=0.75)
        for name, colour in colours.items()
    ]
    figure.legend(handles=handles, loc="outside lower center", ncols=len(handles))
    return figure


def _map(axes: Any, seconds: pd.DataFrame, colours: dict[str, str]) -> None:
    spreads, noises = (
        sorted(seconds.index.get_level_values(level).unique())
        for level in ("spread", "noise")
    )
    for keys, row in seconds.iterrows():
        noise, spread = cast("tuple[float, float]", keys)
        x, y = spreads.index(spread), noises.index(noise)
        best, second = row.sort_values(kind="stable").iloc[:2]
        colour = colours[str(row.idxmin())]
        axes.add_patch(Rectangle((x, y), 1, 1, color=colour, alpha=0.75, lw=0))
        by = f"{second / best:.2f}"
        axes.text(x + 0.5, y + 0.5, by, ha="center", va="center", size=6)
    axes.set_xticks(np.arange(len(spreads)) + 0.5, [f"{one:g}" for one in spreads])
    axes.set_yticks(np.arange(len(noises)) + 0.5, [f"{one:g}" for one in noises])
    axes.set(xlim=(0, len(spreads)), ylim=(0, len(noises)))
    axes.grid(visible=False)


def _phase_figure(phases: pd.DataFrame) -> Figure:
    """Draws the ratio of times over spread and noise, its border, and the theory's."""
    tails = ["constant", "exponential", "Lomax 1.5"]
    figure = Figure((WIDTH, 4.6), layout="constrained")
    grid: Any = figure.subplots(2, len(tails), sharex=True, sharey=True)
    drawn: Any = None
    for line, rounds in zip(grid, ("stops", "no stops"), strict=True):
        for axes, tail in zip(line, tails, strict=True):
            own = phases[(phases["tail"] == tail) & (phases["rounds"] == rounds)]
            parts: dict[str, Any] = {
                name: np.log2(
                    own.pivot_table(index="noise", columns="spread", values=name)
                )
                for name in ("ratio", "low", "high", "theory")
            }
            x = parts["ratio"].columns.to_numpy()
            y = np.log2(parts["ratio"].index.to_numpy())
            drawn = axes.contourf(
                x, y, parts["ratio"], np.linspace(-4, 4, 17), cmap="RdBu", extend="both"
            )
            _line(axes, x, y, parts["ratio"], colors="white", linewidths=2)
            _line(axes, x, y, parts["low"], colors="white", linewidths=0.7)
            _line(axes, x, y, parts["high"], colors="white", linewidths=0.7)
            if rounds == "stops":
                _line(axes, x, y, parts["theory"], colors="black", linestyles="--")
            axes.set_title(f"{tail}, {rounds}", fontsize=8)
            axes.set_yticks(y, [f"{2**one:g}" for one in y])
            axes.grid(visible=False)
    for axes in grid[-1]:
        axes.set_xlabel("Spread of mean times")
    for axes in grid[:, 0]:
        axes.set_ylabel("sigma² / epsilon")
    bar = figure.colorbar(drawn, ax=grid, shrink=0.8)
    bar.set_ticks([-4, -2, 0, 2, 4], labels=["1/16", "1/4", "1", "4", "16"])
    bar.set_label("Time of rounds / time of asynchrony")
    return figure


def _line(axes: Any, x: Any, y: Any, values: Any, **look: Any) -> None:
    """Draws where values are zero, if they are somewhere above and somewhere below."""
    if values.to_numpy().min() < 0 < values.to_numpy().max():
        axes.contour(x, y, values, [0], **look)
