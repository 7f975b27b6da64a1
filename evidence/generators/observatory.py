"""The page and the figures of the observatory of time, from its tables."""

from pathlib import Path
from typing import Any

import pandas as pd
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from stalesim.analysis.figures import style
from stalesim.analysis.figures.files import save_figure
from stalesim.analysis.markup import literal

from .formulas import markdown

NAME = "observatory"
WIDTH = 7.16
KINDS = {"fixed": 0, "universal": 1, "heavy": 2, "queues": 3}
HEAD = """\
`python -m evidence.studies.observatory FOLDER` runs it and writes the tables of
evidence/results/observatory; worlds that are already in FOLDER are not run again.
The rules of the methods: [methods.md](../../docs/methods.md).

## Simulated time over what is proved

"""
WORTH = """Where
the expectation is known (`mean 1`) each world has a two-sided test, at 1 % for
all worlds of a row together (Bonferroni), so that small errors pass. Program and
checks have the same authors.

**One test was changed after its result.** The mean of 200 rounds of m-synchronous
SGD used to be judged by a t-test in heavy tails as well, and one world failed
(log-normal, number 826). 200,000 independent draws of that round agree with the
closed form (1.1944, standard error 0.0032, against 1.1916), and the skewness of the
law, 11.9 by its integral, is too much for a t-test of 200. Heavy-tailed rounds are
now judged by their law (Kolmogorov and Smirnov), which all 952 worlds pass.

*A job wasted by each*: the least time in which clients do the required jobs when
each wastes one, the job under way at the start; the form of t(R) for powers that
change, derived here. *Exact time*: the same without waste. The delays of all commits
and of the jobs under way add up to concurrency - 1 for each commit, whatever the
laws. A round of Ringleader waits for every client; where times may have no mean, its
run ends after a fixed number of jobs (*rounds in ... jobs*), and a run without a
whole round has no delays.

"""
RETRACTED = """\
## Retracted: which wins, asynchrony or rounds

This page and the README had a phase diagram of asynchrony against rounds of m clients,
in which rounds with stops won most worlds, and a table of winners. Both are withdrawn:

- **Unequal rights.** Rounds could stop late jobs and asynchrony could not:
  Ringmaster's Algorithm 5 (`beyond: stop`) was left out.
- **Unequal grids.** Rounds were tuned over 120 step sizes of at most 1.8, asynchrony
  over 12 of at most 1. 7 of the 12 losses and all 20 undecided worlds without stops
  come from that, some with intervals of no width.
- **Rounds of one client are asynchrony.** The best m was 1 in 56 of the 61 losses, and
  m = 1 with stops is Algorithm 5 with R = 1, commit for commit.

A reviewer repeated 18 cells with stops on both sides and one grid of 44 steps
(exponential and Lomax(1.5) times, three spreads, three noises, three seeds). Time of
rounds over time of asynchrony: 0.99 to 1.03, where 0.19 to 0.81 had been published
(the reviewer's programs and tables are not part of this repository).
What wins is the stop, and not the round: in these worlds it costs nothing, and the
next job has a new draw of its time.
"""


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
        for name in ("ratios", "mindflayer", "bias")
    }
    ratios = tables["ratios"]
    wrong = int(ratios["violations"].sum())
    same = ratios["largest"] - ratios["least"] < 1e-6
    broken = ", ".join(
        f"{row.method} ({row.quantity}, {row.worlds}: {row.violations})"
        for row in ratios[ratios["violations"] > 0].itertuples()
    )
    return (
        f"# The observatory of time\n\n{note}\n"
        f"{HEAD}{ratios['played'].sum():,} checks in random worlds: fixed times;\n"
        "powers that change over time (universal); heavy tails, some without a mean;\n"
        "exponential services with queues. Each ratio has an interval in which it is\n"
        f"proved to lie. **Violations: {wrong}**{': ' + broken if wrong else ''}.\n\n"
        f"What that is worth: {same.sum()} of the {len(same)} rows have one ratio in\n"
        f"all worlds ({ratios['played'][same].sum():,} checks): identities and\n"
        f"attained bounds, which test the program more than the theory. {WORTH}"
        f"{markdown(_words(ratios))}\n\n"
        f"![Ratios of simulated time to bounds](figures/{NAME}-ratios.png)\n\n"
        "## Plain ASGD ends near its fast clients\n\n"
        "f_i = (x - b_i)^2 / 2 with b = (0, 1, 10), and 1, 2 and 7 s for a gradient.\n"
        f"The optimum is {tables['bias']['mean'][0]:.3f}; the mean weighted by\n"
        f"1 / tau_i is {tables['bias']['weighted'][0]:.3f}.\n\n"
        f"{markdown(tables['bias'][['method', 'ends at']].round(3))}\n\n"
        "## MindFlayer against Rennala, by clients and batch\n\n"
        "Seconds for a gradient at the same mean batch, where one takes 1 s and a\n"
        "Lomax(1.1) time; MindFlayer gives trials up after 1 s and the median of the\n"
        "rest, Rennala stops late jobs. Both draw a new time for the next\n"
        "job. `ratio` is Rennala's over MindFlayer's with its 95 % interval\n"
        "(10 pairs of seeds): MindFlayer is better above 1. The batch decides:\n"
        "ten clients lose up to a batch of 40 and win from 80 on. One law and one\n"
        "rule for giving up: no statement about others.\n\n"
        f"{markdown(tables['mindflayer'].round(3))}\n\n{RETRACTED}"
    )


def _words(ratios: pd.DataFrame) -> pd.DataFrame:
    numbers = ["least", "5 %", "median", "95 %", "largest"]
    shown = ratios.copy()
    shown[numbers] = shown[numbers].map(lambda x: f"{float(x):.3f}")
    return shown.map(lambda x: literal(x) if isinstance(x, str) else x)


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
