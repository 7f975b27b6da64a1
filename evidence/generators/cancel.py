"""The page and the figure of the study of cancelling, from its tables.

R and m of the best method are chosen by the seeds that have tuned, like every step;
what is shown is of the other ten: medians, since a run may diverge. Of constant times
there is one run, without chance. With networks a study of the simulator is read, in
which all methods have one R and one m.
"""

import itertools
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import scipy.stats
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from stalesim.analysis.claims.measured import read_csv
from stalesim.analysis.figures import style
from stalesim.analysis.figures.files import save_figure

from ..studies import cancel as program
from .formulas import markdown

NAME = "cancel"
TABLE = "cancel/worlds.parquet"
NETWORKS = "cancel-networks"
WORLD = ["clients", "tail", "spread", "noise", "unlike"]
UNBOUNDED = math.inf
WIDTH = 7.16
NAMED: dict[str, str] = {
    "ASGD": "~cancels & ~waits & bound == inf & batch == 1",
    "Ringmaster, Algorithm 4": "~cancels & ~waits & batch == 1",
    "Ringmaster, Algorithm 5": "cancels & ~waits & batch == 1",
    "buffered": "~cancels & ~waits & bound == inf",
    "Rennala": "~cancels & ~waits & bound == 1",
    "Rennala, cancels": "cancels & ~waits & bound == 1",
    "m-synchronous": "~cancels & bound == 1 & (waits | batch == 1)",
    "m-synchronous, cancels": "cancels & bound == 1 & (waits | batch == 1)",
    "any of these, and all between": "cancels | ~cancels",
}
"""Methods of the literature; each has the R and m that suit it best."""
HEAD = """\
**Every result here rests on one premise: a cancelled job restarts with a new draw of
its time**, and at no cost where none is named. With exponential or heavier times a
new draw is a gain by itself. Where the restarted job is as long as the cancelled one,
cancelling gains nothing or loses. **A run is over when it touches the target**, which
favours stale methods: where it must stay there, they lose ([stopped jobs](stops.md)).

Two checks of 27 November 2026 kept the time of a cancelled job (16 clients, spread 1,
no cost; not kept results). This program, changed to use a cancelled job's number
again, had gains of 0.86 [0.57, 1.48], 0.96 [0.75, 0.99] and 1.00 at noise 0.25, 4 and
64 with exponential times (2.48, 1.84 and 1.14 below), and 1.11 [0.82, 1.54], 0.89
[0.70, 1.00] and 1.00 with Lomax 1.5 (3.51, 2.82 and 2.42). An event loop of its own,
with 20 seeds, had 0.91 [range 0.52, 1.00] and 0.74 at noise 4.

m-synchronous SGD may cancel late jobs, asynchronous SGD as a rule may not; the one
averages, the other tolerates staleness. Which of these rights makes the difference?
One family has all of them: a commit is the mean of **m** contributions; none that is
**R** commits stale or more is used; and a job that will be is **discarded** when it
arrives, or **cancelled** at once, after which its client pauses for a *cost*, in mean
jobs of its own. It contains ASGD (m = 1, no bound), Ringmaster's Algorithm 4 (m = 1)
and 5 (m = 1, cancels), Rennala (R = 1) and m-synchronous SGD (R = 1, clients wait).

**With exponential or Lomax times, new draws and no cost, one method is within 4 % of
the best of the family in all 36 worlds: cancel every other job at each arrival (R = m
= 1).** In most of these worlds a restart of 0.03 to 0.3 mean jobs ends what
cancelling gains, and times with memory take most of it away.

A time is virtual seconds until the expected squared gradient norm of a quadratic
(condition 10, data alike) is a thousandth of what it was, by exact moments. Noise is
sigma^2 / epsilon; its covariance is proportional to the curvature. Spread is the
standard deviation of the logarithm of the clients' mean times. All methods have one
grid of steps (`STEPS`); steps, R and m are chosen by ten seeds (least mean of log
time), and ten others judge (medians). Constant times have one run, so that their
intervals have no width.

    python -m evidence.studies.cancel run --processes 2
    python -m evidence.studies.cancel take

plays the worlds, and takes them in. One of them is [a
scenario](../../scenarios/studies/cancel_discard_aggregate.yaml) as well.

"""
DEPENDENT = """\
## Job times that depend on each other

Of the same laws as above, spread 1. *Memory*: normal scores of a client's successive
jobs are correlated by {memory:g}. *Common*: half of the variance of the logarithm is a
factor that all clients have in common, a new one each second, correlated by {memory:g}
with the last. Memory is counted in jobs, and a cancelled job counts as one, so that
each cancellation carries its client on in its own memory. Methods as above, at no cost,
and the gain of cancelling by its cost.

"""
UNLIKE = """\
## Data that differ

Optima of clients differ, at random in every coordinate; *unlike* is the mean squared
distance of the clients' gradients from their mean, over epsilon. Fast clients
contribute more, and pull the model to their optima; no method here corrects for that.

"""
OF_NETWORKS = """\
## Networks

[A scenario](../../scenarios/studies/cancel_networks.yaml): R = m = n / 4, which was not
tuned, a new draw of its time for every restarted job, one
grid of learning rates for all, tuned by other seeds than those shown. Medians of
virtual seconds until the target, by the evaluation that finds it (*not by half*: half
of the runs, or more, did not reach it); *at* a number: the cost of a cancelled job, in
mean jobs.

"""
MISSING = """\
## Not run

What this page is to show and evidence/results does not have: {names}.
"""


def worlds() -> dict[str, str]:
    """Returns the kind of every world of the study, by its name."""
    of = program.worlds()
    return {world.name: kind for kind, found in of.items() for world in found}


def has_results(results: Path) -> bool:
    """Says whether any world of the study is there."""
    return (results / TABLE).exists()


def read(results: Path) -> pd.DataFrame:
    """Returns a row for each method, world and noise.

    Args:
        results: Folder of the results of studies.

    Returns:
        `log`: median logarithm of the seconds of the seeds that judge; `kind` of its
        world.
    """
    frame = pd.read_parquet(results / TABLE)
    frame["kind"] = frame["world"].map(worlds())
    frame["unlike"] = frame["unlike"].fillna(0.0)
    frame["bound"] = frame["bound"].fillna(UNBOUNDED)
    frame["log"] = logs(frame).median(axis=1)
    return frame


def logs(frame: pd.DataFrame) -> pd.DataFrame:
    """Returns the logarithm of the seconds of every seed that judges."""
    return frame.filter(regex=r"^s\d+$").apply(np.log)


def at_cost(frame: pd.DataFrame, cost: float) -> pd.DataFrame:
    """Returns the methods that cancel at a cost, and all that do not cancel."""
    return frame[~frame["cancels"] | (frame["cost"] == cost)]


def best(frame: pd.DataFrame) -> pd.DataFrame:
    """Returns the method of each world and noise that the seeds of tuning choose."""
    return frame.loc[frame.groupby(WORLD)["tuned"].idxmin()].set_index(WORLD)


def steps_to_the_best(frame: pd.DataFrame) -> pd.DataFrame:
    """Returns by what factor each right in turn shortens the time of ASGD, at no cost.

    Returns:
        Geometric means over spreads; `all` is the product of the three factors.
    """
    free = at_cost(frame, 0.0)
    names = "ASGD", "Ringmaster, Algorithm 4", "Ringmaster, Algorithm 5"
    logs = [best(free.query(NAMED[name]))["log"] for name in names]
    logs.append(best(free)["log"])
    turns = {
        "all": logs[0] - logs[3],
        "a bound that discards": logs[0] - logs[1],
        "cancelling as well": logs[1] - logs[2],
        "averaging as well": logs[2] - logs[3],
    }
    found = pd.DataFrame(turns).groupby(["tail", "clients", "noise"]).mean()
    return found.map(math.exp).round(2).reset_index().rename(columns={"tail": "times"})


def gain_of_cancelling(frame: pd.DataFrame) -> pd.DataFrame:
    """Returns what the right to cancel is worth, by world, noise and cost.

    Returns:
        Columns of `WORLD`, cost; `gain`, the time of the best method that discards over
        that of the best that cancels (without a bound it may be either), and the ends
        `low` and `high` of its interval, of pairs of seeds.
    """
    discards = logs(best(frame[~frame["cancels"]]))
    free, parts = frame[frame["bound"] == UNBOUNDED], []
    for cost, cancels in frame[frame["cancels"]].groupby("cost"):
        apart = discards - logs(best(pd.concat([cancels, free], ignore_index=True)))
        found = pd.DataFrame(
            [interval(own.dropna().to_numpy()) for _, own in apart.iterrows()],
            index=apart.index,
            columns=pd.Index(["gain", "low", "high"]),
        )
        parts.append(found.apply(np.exp).assign(cost=cost).reset_index())
    return pd.concat(parts, ignore_index=True)


def interval(values: np.ndarray) -> tuple[float, float, float]:
    """Returns the median, and the ends of its interval of at least 95 %.

    The ends are order statistics, whatever the law; the least and the largest where
    there are too few for 95 %.
    """
    if not values.size:
        return math.nan, math.nan, math.nan
    place = max(int(scipy.stats.binom.ppf(0.025, values.size, 0.5)), 1)
    ranked = np.sort(values)
    return float(np.median(values)), float(ranked[place - 1]), float(ranked[-place])


def stops_paying(gain: pd.DataFrame) -> pd.DataFrame:
    """Returns between which costs of those played cancelling stops paying.

    It pays where the interval of its gain is above 1.
    """
    rows = []
    for world, own in gain.groupby(WORLD, sort=False):
        own = own.sort_values("cost")
        costs, pays = own["cost"].tolist(), (own["low"] > 1).tolist()
        last = pays.index(False) if False in pays else len(costs)
        text = f"> {costs[-1]:g}" if last == len(costs) else f"{costs[last]:g}"
        text = text if last else "never"
        if 0 < last < len(costs):
            text = f"{costs[last - 1]:g} to {text}"
        shown = {f"{c:g}": f"{g:.2f}" for c, g in zip(costs, own["gain"], strict=True)}
        rows.append(dict(zip(WORLD, world, strict=True)) | shown | {"until": text})
    return pd.DataFrame(rows)


def named(frame: pd.DataFrame, by: str = "tail") -> pd.DataFrame:
    """Returns the time of methods over that of the best of all, at no cost.

    Args:
        frame: Worlds, over which geometric means are taken.
        by: Column whose values have means of their own.
    """
    free = at_cost(frame, 0.0)
    top = best(free)["log"]
    rows = []
    for name, rule in NAMED.items():
        apart = (best(free.query(rule))["log"] - top).groupby(by).mean().map(math.exp)
        rows.append({"method": name} | apart.round(2).to_dict())
    return pd.DataFrame(rows)


def with_twins(frame: pd.DataFrame) -> pd.DataFrame:
    """Returns the dependent worlds, and the independent ones that they differ from."""
    frame = frame[frame["kind"] != "unlike"].reset_index(drop=True)
    mine = frame[frame["kind"] == "dependent"]
    laws = mine["tail"].str.rsplit(n=1).str[0]
    at = set(zip(laws, mine["spread"], mine["clients"], strict=True))
    of = zip(frame["tail"], frame["spread"], frame["clients"], strict=True)
    return frame[(frame["kind"] == "dependent") | pd.Series([x in at for x in of])]


def networks(results: Path) -> dict[str, dict[str, np.ndarray]]:
    """Returns seconds to the target in the study with networks, of its replicates.

    Returns:
        By cell, such as `MLP Muon, Lomax 1.5`, and method; infinite where the target
        was not reached. Nothing where the study has no results.
    """
    file, found = results / NETWORKS / "values.csv", {}
    if not file.exists():
        return found
    measured = read_csv(file)
    (quantity,) = (str(x) for x in measured.low if str(x).startswith("time to"))
    for group in measured.rows:
        cell, _, method = group.rpartition(", ")
        high = measured.of(quantity, group).high
        found.setdefault(cell, {})[method] = np.where(np.isnan(high), np.inf, high)
    return found


def gains_of_networks(found: dict[str, dict[str, np.ndarray]]) -> pd.DataFrame:
    """Returns what cancelling and averaging gain, by cell and cost."""
    rows = []
    for cell, own in found.items():
        for name in own:
            what, _, cost = name.partition(" at ")
            if what != "cancels":
                continue
            both = f"averages and cancels at {cost}"
            pairs = ("discards", name), ("averages", both), ("ASGD", both)
            row = {"cell": cell, "cost": cost}
            for slow, fast in pairs:
                both_late = np.isinf(own[slow]) & np.isinf(own[fast])
                apart = np.log(own[slow]) - np.log(
                    np.where(both_late, np.nan, own[fast])
                )
                title = f"{slow} over {fast.partition(' at ')[0]}"
                row[title] = ratio(*np.exp(interval(apart[~np.isnan(apart)])))
            rows.append(row)
    return pd.DataFrame(rows)


def ratio(middle: float, low: float, high: float) -> str:
    """Returns a ratio of times and its interval; 0 and infinity are no bounds."""
    if math.isinf(low) or high == 0:
        return "the first never" if high else "the second never"
    between = f"at least {low:.2f}" if math.isinf(high) else f"{low:.2f}, {high:.2f}"
    if low == 0:
        between = "no bound" if math.isinf(high) else f"at most {high:.2f}"
    known = f"{middle:.2f} " if 0 < middle < math.inf else ""
    return f"{known}[{between}]"


def document(note: str, results: Path) -> str:
    """Returns the page.

    Args:
        note: Note below the title.
        results: Folder of the results of studies.
    """
    frame, missing = read(results), worlds()
    parts = [f"# Cancel, discard or aggregate?\n\n{note}\n{HEAD}"]
    for kind, section in SECTIONS.items():
        mine = frame[frame["kind"] == kind]
        if not mine.empty:
            parts.append(section(with_twins(frame) if kind == "dependent" else mine))
    played = {*frame["world"]}
    names = [name for name in missing if name not in played]
    if found := networks(results):
        parts.append(_networks(found))
    else:
        names.append(f"the study `{NETWORKS}`")
    return "".join(parts) + (MISSING.format(names=", ".join(names)) if names else "")


def _independent(frame: pd.DataFrame) -> str:
    return (
        "## Methods, where cancelling costs nothing\n\n"
        "Time over that of the best method of the family, geometric means over\n"
        "spreads, noises and numbers of clients; R and m are each method's best.\n"
        "A mean over three noises hides what noise does: the next table does not.\n"
        "Below 1 where what ten seeds chose is not the best of the ten that judge.\n\n"
        f"{markdown(named(frame))}\n\n"
        "## What each right adds, by clients and noise\n\n"
        "By what factor the best of the family is sooner than ASGD (`all`), and what\n"
        "each right adds in turn, so that the factors multiply to `all`: a bound\n"
        "that discards (Algorithm 4), cancelling as well (Algorithm 5), averaging as\n"
        "well (the whole family). Geometric means over spreads, no cost, new draws.\n\n"
        f"{markdown(steps_to_the_best(frame))}\n\n"
        "## When cancelling stops paying\n\n"
        "Time of the best method that discards over that of the best that cancels, by\n"
        "the cost of a cancelled job, whose successor has a time of its own, medians\n"
        "of pairs of seeds. *Until*: costs\n"
        "between which it stops paying: the interval of this factor (at least 95 %,\n"
        "by order statistics) comes to have 1 in it.\n\n"
        f"![Gain of cancelling by its cost](figures/{NAME}.png)\n\n"
        f"{_paying(frame, 'unlike')}"
    )


def _dependent(frame: pd.DataFrame) -> str:
    found = [
        f"{clients} clients:\n\n{markdown(named(mine))}\n\n"
        for clients, mine in frame.groupby("clients")
    ]
    head = DEPENDENT.format(memory=program.MEMORY)
    return f"{head}{''.join(found)}{_paying(frame, 'unlike')}"


def _unlike(frame: pd.DataFrame) -> str:
    shown = named(frame, "unlike").set_index("method")
    shown = shown.rename(columns="{:g}".format).reset_index()
    return f"{UNLIKE}{markdown(shown)}\n\n{_paying(frame, 'noise')}"


def _paying(frame: pd.DataFrame, constant: str) -> str:
    found = stops_paying(gain_of_cancelling(frame))
    return f"{markdown(found.drop(columns=constant))}\n\n"


def _networks(found: dict[str, dict[str, np.ndarray]]) -> str:
    seconds = [
        {"cell": cell} | {name: _middle(each) for name, each in own.items()}
        for cell, own in found.items()
    ]
    return (
        f"{OF_NETWORKS}{markdown(pd.DataFrame(seconds))}\n\n"
        "Times over times, medians of pairs of replicates with intervals of at least\n"
        "95 %, without pairs that never reached it, either of them:\n\n"
        f"{markdown(gains_of_networks(found))}\n\n"
    )


def _middle(seconds: np.ndarray) -> str:
    """Returns the median, as tables of studies have it: the lower of the middle two."""
    middle = np.sort(seconds)[(seconds.size - 1) // 2]
    return "not by half" if math.isinf(middle) else f"{middle:.3g}"


SECTIONS: dict[str, Callable[[pd.DataFrame], str]] = {
    "independent": _independent,
    "dependent": _dependent,
    "unlike": _unlike,
}


def draw(results: Path, folder: Path) -> None:
    """Draws the figure; nothing where there are no results.

    Args:
        results: Folder of the results of studies.
        folder: Folder of the figures.
    """
    if not has_results(results):
        return
    frame = read(results)
    if (alone := frame[frame["kind"] == "independent"]).empty:
        return
    with style.context():
        save_figure(_gain(gain_of_cancelling(alone)), folder / NAME)


def _gain(gain: pd.DataFrame) -> Figure:
    numbers, noises = sorted(gain["clients"].unique()), sorted(gain["noise"].unique())
    tails, spreads = gain["tail"].unique(), sorted(gain["spread"].unique())
    figure = Figure((WIDTH, 2.1 * len(numbers) + 0.6), layout="constrained")
    axes: Any = figure.subplots(
        len(numbers), len(noises), sharex=True, sharey=True, squeeze=False
    )
    colours = dict(zip(tails, style.palette(), strict=False))
    lines = dict(zip(spreads, ("-", "--", ":"), strict=False))
    costs = sorted(gain["cost"].unique())
    for (row, n), (column, noise) in itertools.product(
        enumerate(numbers), enumerate(noises)
    ):
        panel = axes[row, column]
        mine = gain[(gain["clients"] == n) & (gain["noise"] == noise)]
        for (tail, spread), own in mine.groupby(["tail", "spread"]):
            own = own.sort_values("cost")
            at = [costs.index(cost) for cost in own["cost"]]
            panel.plot(at, own["gain"], c=colours[tail], ls=lines[spread], lw=1)
            panel.fill_between(
                at, own["low"], own["high"], color=colours[tail], alpha=0.2, lw=0
            )
        panel.axhline(1, c="k", lw=0.6)
        panel.set_yscale("log")
        panel.yaxis.set_major_formatter("{x:g}")
        panel.yaxis.set_minor_formatter("")
        panel.set_yticks((0.5, 1, 2, 4, 8))
        panel.set_title(f"{n} clients, noise {noise:g}", fontsize=7)
    for panel in axes[-1]:
        panel.set_xticks(range(len(costs)), [f"{cost:g}" for cost in costs])
        panel.set_xlabel("Cost, mean jobs")
    for panel in axes[:, 0]:
        panel.set_ylabel("Gain of cancelling")
    handles = [Line2D([], [], c=colours[t], label=t) for t in tails]
    handles += [
        Line2D([], [], c="k", ls=lines[s], label=f"spread {s:g}") for s in spreads
    ]
    figure.legend(handles=handles, loc="outside lower center", ncols=7, fontsize=6)
    return figure
