"""The page and the figure of the study of stopped jobs, from its table.

Both sides have chosen their method and step by other seeds than those shown here. A
ratio is of medians' pairs: the synchronous side's seconds over the asynchronous one's
by seed, its median and the interval of order statistics.
"""

import math
from pathlib import Path

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from stalesim.analysis.figures import style
from stalesim.analysis.figures.files import save_figure

from ..studies import stops as program
from .cancel import interval
from .formulas import markdown

NAME = "stops"
TABLE = "stops/worlds.csv"
WORLD = ["law", "clients", "noise", "condition"]
WIDTH = 7.16
SHOWN = "exponential"
"""Law of the figure."""
HEAD = """\
**Noise decides which side is faster, and between its ends what happens to a stopped
job, and at what cost.** With much noise the best asynchronous method is 1.3 to 1.4
times as fast if the next job takes as long as the stopped one (`kept`: the same batch
on the same busy machine). It is as fast as the best synchronous one if a stop is free
and the next job continues where the stopped one was (`resumed`). With little noise the
best synchronous method is as fast or faster, whatever happens. A new draw of the time
(`redrawn`) is between. Where a stop is free and the time is not kept, the best
synchronous method stops jobs in every cell, at a cost of one mean job in a quarter.

**Premise: a run is over when it stays at the target**, for at least as many commits
again as the fastest step has needed. A first version took the first touch, which
favours stale methods: their iterates dip below the target and come back. It had
asynchrony ahead in 35 of 42 cells of `kept`, 1.55 where 1.15 stands below (exponential,
noise 4, condition number 10; `git show 58c62c64:evidence/results/stops/worlds.csv`). A
referee with an event loop, moments and 1,000 seeds of its own found that (not a kept
result): 1.65 for `kept`, 0.93 for `redrawn` and 1.34 at a cost of 0.3 with the first
touch, and 1.22, 0.83 and 1.01 where runs must stay for 50 commits.

The seconds of the best synchronous method over those of the best asynchronous one, by
the cost of a stop in mean jobs: the range over laws and condition numbers. In brackets
are the cells, of {each}, in which asynchrony is decided to be faster and slower (95 %
intervals, each by itself).

{cells}

So far {played} of {planned} worlds are played, those of {clients} clients. The others
are listed below.

Here *synchronous* is R = 1: all contributions are fresh. *Asynchronous* is everything
else in [the family of cancel](cancel.md): a commit is the mean of m contributions, none
of which is R commits stale or more; late jobs end or are stopped; clients may wait.
Both sides tune step, R and m on ten seeds and are judged by {seeds} others. The target
is an expected squared gradient norm of a quadratic that is a thousandth of the start's,
by exact moments. Clients' mean times have a spread of 1. Noise is sigma^2 / epsilon.

    python -m evidence.studies.stops run --processes 2
    python -m evidence.studies.stops take

In a scenario the three fates are `clients.stopped`, the cost is `clients.restart`.

![ratios against the cost of a stop](figures/stops.png)

The same ratios with {shown} times and condition number 10: above 1 asynchrony is
faster. Lines are medians of seeds, bands 95 % of order statistics.
"""


def has_results(results: Path) -> bool:
    """Says whether any world of the study is there."""
    return (results / TABLE).exists()


def ratios(results: Path) -> pd.DataFrame:
    """Returns a row for each world, case, fate and cost.

    Returns:
        Columns of `WORLD`, fate, cost; `ratio`, `low`, `high`; `of_async`, `of_sync`:
        the chosen methods.
    """
    frame = pd.read_csv(results / TABLE)
    seeds = frame.filter(regex=r"^s\d+$").columns
    rows = []
    for cell, own in frame.groupby([*WORLD, "fate", "cost"], sort=False):
        fast, slow = (own[own["side"] == side] for side in program.SIDES)
        [slower], [faster] = (side[seeds].to_numpy(float) for side in (slow, fast))
        never = np.isinf(slower) & np.isinf(faster)  # neither has arrived: no winner
        with np.errstate(divide="ignore", invalid="ignore"):
            logs = np.where(never, 0.0, np.log(slower) - np.log(faster))
        found = [math.exp(each) for each in interval(logs)]
        rows.append((*cell, *found, _method(fast), _method(slow)))
    names = [*WORLD, "fate", "cost", "ratio", "low", "high", "of_async", "of_sync"]
    return pd.DataFrame(rows, columns=pd.Index(names))


def _method(of_side: pd.DataFrame) -> str:
    [row] = of_side[["bound", "batch", "cancels", "waits"]].to_dict("records")
    bound = "none" if math.isnan(row["bound"]) else f"{row['bound']:g}"
    stops = ", stops" if row["cancels"] else ""
    return f"R {bound}, m {row['batch']}{stops}{', waits' if row['waits'] else ''}"


def crossings(found: pd.DataFrame) -> pd.DataFrame:
    """Returns from which cost on asynchrony is faster, by world, case and fate."""
    rows = []
    for cell, own in found.groupby([*WORLD, "fate"], sort=False):
        own = own.sort_values("cost")
        ahead = own["low"].to_numpy() > 1
        behind = own["high"].to_numpy() < 1
        costs = own["cost"].tolist()
        first = next((c for c, a in zip(costs, ahead, strict=True) if a), None)
        last = next(
            (c for c, b in zip(reversed(costs), behind[::-1], strict=True) if b), None
        )
        shown = {f"{c:g}": f"{r:.2f}" for c, r in zip(costs, own["ratio"], strict=True)}
        rows.append(
            dict(zip([*WORLD, "fate"], cell, strict=True))
            | shown
            | {"behind up to": "never" if last is None else f"{last:g}"}
            | {"ahead from": "never" if first is None else f"{first:g}"}
        )
    return pd.DataFrame(rows)


def cells(found: pd.DataFrame) -> pd.DataFrame:
    """Returns ranges of ratios and decided cells, by noise, fate and cost."""
    rows = []
    for (noise, fate), own in found.groupby(["noise", "fate"]):
        row = {"noise": f"{noise:g}", "next job": fate}
        for cost, mine in own.groupby("cost"):
            ahead, behind = (mine["low"] > 1).sum(), (mine["high"] < 1).sum()
            least, most = mine["ratio"].min(), mine["ratio"].max()
            row[f"cost {cost:g}"] = f"{least:.2f} to {most:.2f} ({ahead}, {behind})"
        rows.append(row)
    return pd.DataFrame(rows)


def document(note: str, results: Path) -> str:
    """Returns the page."""
    found = ratios(results)
    there = set(zip(found["clients"], found["law"], strict=True))
    left = [each.name for each in program.worlds() if tuple(each) not in there]
    head = HEAD.format(
        played=len(there),
        planned=len(program.worlds()),
        seeds=len(program.JUDGE),
        shown=SHOWN,
        cells=markdown(cells(found)),
        each=len(there) * found["condition"].nunique(),
        clients=", ".join(map(str, sorted({clients for clients, _ in there}))),
    )
    parts = [f"# What happens to a stopped job?\n\n{note}\n{head}"]
    parts.append(
        "## All worlds\n\nRatios by the cost of a stop, in mean jobs; the largest cost "
        "at which asynchrony is decided to\nbe slower, and the least at which it is "
        "decided to be faster.\n"
    )
    for law, own in crossings(found).groupby("law", sort=False):
        table = markdown(own.drop(columns="law"))
        parts.append(f"### {str(law).capitalize()}\n\n{table}\n")
    if left:
        parts.append(f"## Not played\n\n{', '.join(left)}.\n")
    return "\n".join(parts)


def draw(results: Path, folder: Path) -> None:
    """Draws the ratio against the cost of a stop, a panel for each size and noise."""
    if not has_results(results):
        return
    found = ratios(results).query("law == @SHOWN and condition == 10")
    sizes, noises = sorted(found["clients"].unique()), sorted(found["noise"].unique())
    with style.context():
        figure = Figure(figsize=(WIDTH, 1.0 + 1.6 * len(sizes)), layout="constrained")
        axes = figure.subplots(
            len(sizes), len(noises), sharex=True, sharey=True, squeeze=False
        )
        for (clients, noise), own in found.groupby(["clients", "noise"]):
            axis = axes[sizes.index(clients)][noises.index(noise)]
            axis.set_title(f"{clients} clients, noise {noise:g}")
            axis.axhline(1, color="0.6", linewidth=0.8)
            for fate, color in zip(program.FATES, style.OKABE_ITO, strict=False):
                mine = own[own["fate"] == fate].sort_values("cost")
                place = range(len(mine))
                axis.plot(place, mine["ratio"], marker="o", color=color, label=fate)
                axis.fill_between(
                    place, mine["low"], mine["high"], color=color, alpha=0.2, lw=0
                )
            costs = [f"{cost:g}" for cost in sorted(own["cost"].unique())]
            axis.set_xticks(range(len(costs)), costs)
            axis.set_yscale("log")
            axis.set_yticks(
                [0.6, 0.8, 1, 1.25, 1.6], ["0.6", "0.8", "1", "1.25", "1.6"]
            )
            axis.minorticks_off()
        for axis in axes[-1]:
            axis.set_xlabel("Cost of a stop (mean jobs)")
        for row in axes:
            row[0].set_ylabel("Sync. / async. time")
        handles, labels = axes[0][0].get_legend_handles_labels()
        title = "Time of the job after a stopped one"
        figure.legend(handles, labels, loc="outside upper center", ncols=3, title=title)
        save_figure(figure, folder / NAME)
