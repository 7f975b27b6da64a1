"""The page and the figures of the study of dependent delays, from its tables.

Steps and protocols are chosen on one half of the replicates and judged on the other,
both ways, so that every replicate is judged by what others have chosen. A ratio is the
geometric mean over pairs of replicates, with its 95 % t-interval on logarithms.
"""

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import scipy.stats
from matplotlib.figure import Figure

from stalesim.analysis.figures import style
from stalesim.analysis.figures.files import save_figure
from stalesim.analysis.figures.winner_maps import (
    draw_borders,
    draw_ratios,
    label_ratios,
)
from stalesim.analysis.theory.rounds import expected_maximum

from .formulas import markdown

NAME = "dependent-delays"
MARK = "<!-- dependent delays: generated -->\n"
TARGET = "to 0.3"
WORLD = ["problem", "partition", "n", "s", "tau", "share"]
FREE = ("asynchronous", "Ringmaster", "buffered", "t-synchronous")
ROUNDS = ("Rennala", "m of n", "synchronous")
ALL = ("synchronous",)
AGAINST = {
    "waiting for all": (FREE, ALL),
    "the best rounds": (FREE, ROUNDS),
}
"""Maps: protocols without rounds, and those that they are compared with."""
ASKED = {"quickstart": 2.0, "quickstart_vafl": 1.0}
"""How many times faster the scenarios' claims say that it is, at least."""
WIDTH = 7.16
MOST_FASTER = 16.0
"""Ratio at the end of the colours of the map."""
PICTURES = """
![Advantages, by clients, memory and share](figures/dependent-delays-map.png)

How many times faster the best protocol without rounds is, over waiting for all and
over the best rounds; hatched: the interval has 1 in it. Blank: not run.

![Foretold and measured factors](figures/dependent-delays-rule.png)

The factor by which dependence changes the advantage of plain asynchrony over waiting
for all. Hollow: half of the variance is common. Left: bars are the rule's two ends.

![Times of protocols, dependent over independent](figures/dependent-delays-memory.png)

16 clients, s = 1. A common factor with memory stretches the time of all protocols
alike; compare within a panel.
"""


class TimesFaster(NamedTuple):
    """How many times faster one side is; bounds of a 95 % interval."""

    times: float
    low: float
    high: float

    @property
    def decided(self) -> bool:
        """Whether its interval leaves out 1."""
        return self.low > 1 or self.high < 1

    @property
    def words(self) -> str:
        """The number and its interval."""
        if math.isnan(self.times):
            return "not always reached"
        return f"{self.times:.2f} [{self.low:.2f}, {self.high:.2f}]"


def ratio(slower: np.ndarray, faster: np.ndarray) -> TimesFaster:
    """Returns how many times faster one side is, over pairs of replicates."""
    logs = np.log(slower) - np.log(faster)
    if not np.isfinite(logs).all():
        return TimesFaster(math.nan, 0.0, math.inf)
    half = scipy.stats.t.ppf(0.975, logs.size - 1) * logs.std(ddof=1) / logs.size**0.5
    return TimesFaster(*np.exp([logs.mean(), logs.mean() - half, logs.mean() + half]))


def best_of(times: pd.DataFrame, side: Sequence[str]) -> pd.DataFrame:
    """Returns each world's times of a side, by the protocol that others have chosen."""
    mine = times[times["protocol"].isin(side)].reset_index(drop=True)
    chosen = mine.groupby([*WORLD, "replicate"], sort=False)["choice"].idxmin()
    return mine.loc[chosen].set_index([*WORLD, "replicate"]).sort_index()


def advantages(times: pd.DataFrame, free: Sequence[str], others: Sequence[str]) -> Any:
    """Returns the ratio of each world."""
    a, b = best_of(times, free)[TARGET], best_of(times, others)[TARGET]
    joined = pd.DataFrame({"free": a, "others": b})
    return {
        world: ratio(mine["others"].to_numpy(), mine["free"].to_numpy())
        for world, mine in joined.groupby(level=list(range(len(WORLD))), sort=False)
    }


def foretold(n: int, s: float, tau: int, share: float) -> tuple[float, float]:
    """Returns bounds of what the rule says dependence does to the advantage: a factor.

    Rounds of all take the mean of the longest of n own times, whose logarithms have the
    variance `(1 - share) s^2`, instead of `s^2`. Without rounds a client whose speed
    lasts does as many jobs as the mean of 1 / own, at most: as memory is longer than
    training.
    """
    own = (1 - share) * s * s
    laws = [
        scipy.stats.lognorm(math.sqrt(max(x, 1e-12)), scale=math.exp(-x / 2))
        for x in (own, s * s)
    ]
    shorter = expected_maximum([laws[0]], [n]) / expected_maximum([laws[1]], [n])
    most = math.exp(own) if tau else 1.0
    return shorter, shorter * most


def independent(world: Any) -> Any:
    """Returns the world of the same law and clients whose delays are independent."""
    return (*world[:4], 0, 0.0)


def changes(times: pd.DataFrame) -> pd.DataFrame:
    """Returns how dependence changes the advantage of plain asynchrony over rounds.

    Returns:
        A row for each world that is not independent: `measured`, a `TimesFaster`;
        `low`, `high`, as `foretold`; `played`, the same of throughputs.
    """
    by = times.set_index([*WORLD, "replicate"]).sort_index()
    plain, rounds = (
        by.loc[by["protocol"] == name, [TARGET, "throughput"]]
        for name in ("asynchronous", *ALL)
    )
    advantage = rounds[TARGET] / plain[TARGET]
    speed = plain["throughput"] / rounds["throughput"]
    known: list[Any] = list(dict.fromkeys(row[:-1] for row in plain.index.tolist()))
    rows = []
    for world in known:
        base = independent(world)
        if world == base or base not in known:
            continue
        low, high = foretold(*world[2:])
        measured, played = (
            ratio(each.loc[world].to_numpy(), each.loc[base].to_numpy())
            for each in (advantage, speed)
        )
        rows.append(
            dict(zip(WORLD, world, strict=True))
            | {"measured": measured, "low": low, "high": high, "played": played.times}
        )
    return pd.DataFrame(rows)


def changes_of_bests(times: pd.DataFrame, others: Sequence[str]) -> dict[Any, Any]:
    """Returns how dependence changes the ratio of the two sides' bests.

    Each side's protocol is chosen in each world by itself, as in `best_of`.

    Args:
        times: Table of times.
        others: Protocols that the best without rounds is compared with.

    Returns:
        A `TimesFaster` of each world that is not independent.
    """
    slow, fast = (best_of(times, side)[TARGET] for side in (others, FREE))
    over = slow / fast
    known: list[Any] = list(dict.fromkeys(row[:-1] for row in over.index.tolist()))
    return {
        world: ratio(over.loc[world].to_numpy(), over.loc[base].to_numpy())
        for world in known
        if (base := independent(world)) != world and base in known
    }


def document(root: Path) -> str:
    """Returns the page; what stands above its mark is typed by hand.

    Args:
        root: Folder of the repository.
    """
    folder = root / "evidence/results" / NAME
    page = (root / "evidence/pages/dependent-delays.md").read_text(encoding="utf-8")
    times = pd.read_csv(folder / "times.csv")
    worlds = pd.read_csv(folder / "worlds.csv")
    parts = [
        page.partition(MARK)[0] + MARK,
        "## What came of it\n",
        _findings(times, worlds),
        PICTURES,
        "### Advantages\n",
        markdown(_advantages(times)),
        "\n### What each protocol needs, 16 clients, s = 1\n",
        markdown(_protocols(times)),
        "\n### What the jobs say, 16 clients, s = 1\n",
        markdown(_worlds(worlds)),
        "\n### The law of a job, as played\n",
        markdown(pd.read_csv(folder / "marginals.csv")),
        "\n### Shipped claims in a recorded world\n",
        markdown(_recorded(pd.read_csv(folder / "recorded.csv"))),
    ]
    return "\n".join(parts) + "\n"


def _findings(times: pd.DataFrame, worlds: pd.DataFrame) -> str:
    """Returns what came of it, in sentences with numbers of the tables."""
    plain = advantages(times, ("asynchronous",), ALL)
    bests = advantages(times, *AGAINST["the best rounds"])
    stops = advantages(times, ("Ringmaster",), ("asynchronous",))
    changed = changes(times).set_index(WORLD)
    fair = changes_of_bests(times, ROUNDS)

    def main(tau: int, share: float) -> Any:
        return ("convex", "iid", 16, 1.0, tau, share)

    def listed(tau: int, share: float) -> str:
        mine = changed[
            (changed.index.get_level_values("tau") == tau)
            & (changed.index.get_level_values("share") == share)
        ]
        each = mine["measured"].items()
        return "; ".join(f"{one.words} ({_brief(world)})" for world, one in each)

    def fairly(tau: int, share: float) -> str:
        mine = {world: one for world, one in fair.items() if world[4:] == (tau, share)}
        said = "; ".join(f"{one.words} ({_brief(w)})" for w, one in mine.items())
        above = sum(one.low > 1 for one in mine.values())
        below = sum(one.high < 1 for one in mine.values())
        return f"{said}; decided above 1 in {above} of {len(mine)}, below in {below}"

    def of(found: Any) -> str:
        return ", ".join(
            f"{found[main(*one)].words} ({_dependence(*one)})" for one in some
        )

    some = ((0, 0.0), (0, 0.5), (100, 0.0), (100, 0.5))
    decided = sum(stops[main(*one)].decided for one in some)
    off: dict[bool, list[float]] = {False: [], True: []}
    missed = []
    for row in changed.reset_index().to_dict("records"):
        one = row["measured"]
        if math.isfinite(one.times):
            off[bool(row["tau"])].append(one.times / row["played"])
            if one.low > row["high"] or one.high < row["low"]:
                world = [row[key] for key in WORLD]
                missed.append(f"{_brief(world)}, {_dependence(*world[4:])}")
    number = len(off[False]) + len(off[True])
    plainly = times[times["protocol"] == "asynchronous"]
    many = (plainly["n"] == 64) & (plainly["s"] == 1) & (plainly["share"] == 0)
    plainly = plainly[many].assign(all=plainly[TARGET] * plainly["throughput"] * 64)
    needed = plainly.groupby("tau")["all"].median()
    of_worlds = worlds.set_index([*WORLD, "protocol"])["effective clients"]
    count = of_worlds[("convex", "iid", 64, 1.0, 100, 0.0, "asynchronous")]
    return f"""\
- **Independent delays**, 16 clients, s = 1: plain asynchrony is
  {plain[main(0, 0.0)].words} times as fast as waiting for all.
- **Half of the variance common, no memory**, multiplies that by {listed(0, 0.5)}.
  What is missing from 1 was an artefact of independence, in the comparison with
  waiting for all.
- **All common, no memory**, 16 clients: {plain[main(0, 1.0)].words}, and
  {bests[main(0, 1.0)].words} for the best against the best rounds: all are in step, and
  asynchrony only adds staleness.
- **Memory of 100 jobs, nothing common**, multiplies it by {listed(100, 0.0)}. Where
  that is above 1 independence hides an advantage: clients stay fast or slow while
  training lasts, and asynchrony takes more from the fast ones. At 64 clients it needs
  {needed[100]:.0f} contributions instead of {needed[0]:.0f} (medians), which eats that
  up: clients have 22 rows, and effectively {count:.0f} of them count. That this is the
  reason was not tested.
- **Both**: {listed(100, 0.5)}.
- **Best protocol against best rounds**, which may stop late jobs: {of(bests)}.
  Steps are tuned; R, m, t, batches and buffers are fixed. A stopped job restarts
  with a new draw of its time, at no cost. Half of the variance common, no memory,
  multiplies this ratio by
  {fairly(0, 0.5)}.
  That is of free new draws alone: see the premise above. All
  common, no memory: {fair[main(0, 1.0)].words}. Memory of 100 jobs, nothing common:
  {fairly(100, 0.0)}.
  Both: {fairly(100, 0.5)}.
- **Stopping stale jobs**, with new draws at no cost, Ringmaster over plain asynchrony:
  {of(stops)}; decided in {decided} of these 4.
- **The rule**: its range and the interval have numbers in common in
  {number - len(missed)} of {number} dependent worlds; not in:
  {"; ".join(missed) or "none"}. Most intervals are as wide as a factor of two, and some
  ranges as 2.7, so that this is a weak test.
- **Throughputs**: the change over that of throughputs is {_span(off[False])} without
  memory, {_span(off[True])} with it.
"""


def _span(values: list[float]) -> str:
    return f"{min(values):.2f} to {max(values):.2f} ({len(values)} worlds)"


def _dependence(tau: int, share: float) -> str:
    if not tau and not share:
        return "independent"
    said = [f"tau {tau}"] * bool(tau) + [f"share {share:g}"] * bool(share)
    return ", ".join(said)


def _brief(world: Any) -> str:
    problem, partition, n, s, _, _ = world
    said = ["network"] * (problem == "network") + [f"n = {n}, s = {s:g}"]
    return ", ".join(said + ["unlike data"] * (partition != "iid"))


def _said(world: Any) -> dict[str, Any]:
    said = dict(zip(WORLD, world, strict=True))
    said["data"] = "alike" if said.pop("partition") == "iid" else "unlike"
    return {name: said[name] for name in ("problem", "data", "n", "s", "tau", "share")}


def _advantages(times: pd.DataFrame) -> pd.DataFrame:
    found = {name: advantages(times, *sides) for name, sides in AGAINST.items()}
    plain = advantages(times, ("asynchronous",), ALL)
    changed = changes(times).set_index(WORLD)
    fair = changes_of_bests(times, ROUNDS)
    rows = []
    for world, over in found["waiting for all"].items():
        row = _said(world) | {
            "plain asynchrony over waiting for all": plain[world].words
        }
        row |= dict.fromkeys(("changed by", "closed form", "throughputs"), "")
        if world in changed.index:
            one = changed.loc[world]
            row["changed by"] = one["measured"].words
            row["closed form"] = _between(one["low"], one["high"])
            row["throughputs"] = f"{one['played']:.2f}"
        rows.append(
            row
            | {
                "best over waiting for all": over.words,
                "best over the best rounds": found["the best rounds"][world].words,
                "that changed by": fair[world].words if world in fair else "",
            }
        )
    return pd.DataFrame(rows)


def _between(low: float, high: float) -> str:
    same = math.isclose(low, high)
    return f"{low:.2f}" if same else f"{low:.2f} to {high:.2f}"


def _main(frame: pd.DataFrame) -> pd.DataFrame:
    return frame[
        (frame["problem"] == "convex")
        & (frame["partition"] == "iid")
        & (frame["n"] == 16)
        & (frame["s"] == 1)
    ]


def _protocols(times: pd.DataFrame) -> pd.DataFrame:
    mine = _main(times)
    table = mine.pivot_table(
        index="protocol", columns=["tau", "share"], values=TARGET, aggfunc="median"
    )
    table = table.loc[[*FREE, *ROUNDS]].map(lambda x: f"{x:.1f}")
    table.columns = [f"tau {tau}, share {share:g}" for tau, share in table.columns]
    return table.reset_index()


def _worlds(worlds: pd.DataFrame) -> pd.DataFrame:
    mine = _main(worlds)
    names = {
        "throughput": "applied per client and s",
        "job mean": "mean of jobs that ended, s",
        "log sd": "sd of their logarithm",
        "discarded": "share of time discarded",
        "staleness 99 %": "99 % of staleness",
        "effective clients": "effective clients",
    }
    table = mine[["tau", "share", "protocol", *names]].rename(columns=names)
    return table.round(3)


def _recorded(table: pd.DataFrame) -> pd.DataFrame:
    rows = []
    of = ["scenario", "metric", "base", "other"]
    for (name, metric, base, other), mine in table.groupby(of, sort=False):
        row = {"scenario": name, "compared": f"{other} with {base}, {metric}"}
        asked = ASKED.get(str(name))
        row["asked"] = "" if asked is None else f"{asked:g}"
        over = {}
        for world in ("shuffled", "recorded"):
            those = mine[mine["world"] == world].sort_values("replicate")
            slow, fast = (those[f"{side} s"].to_numpy() for side in ("base", "other"))
            one, over[world] = ratio(slow, fast), slow / fast
            row[world] = f"{one.words}{_verdict(one, asked)}"
        change = ratio(over["recorded"], over["shuffled"])
        rows.append(row | {"recorded over shuffled": change.words})
    return pd.DataFrame(rows)


def _verdict(one: TimesFaster, asked: float | None) -> str:
    if asked is None or math.isnan(one.times):
        return ""
    if one.low > asked:
        return ", holds"
    return ", does not hold" if one.high < asked else ", undecided"


def draw(results: Path, folder: Path) -> None:
    """Draws the figures.

    Args:
        results: Folder of the results of studies.
        folder: Folder of the figures.
    """
    times = pd.read_csv(results / NAME / "times.csv")
    with style.context():
        save_figure(_map(times), folder / f"{NAME}-map")
        save_figure(_rule(times), folder / f"{NAME}-rule")
        save_figure(_memory(times), folder / f"{NAME}-memory")


def _map(times: pd.DataFrame) -> Figure:
    """Draws the advantages of each comparison and spread: clients over worlds."""
    alike = times[(times["problem"] == "convex") & (times["partition"] == "iid")]
    spreads = sorted(set(alike["s"]), reverse=True)
    sizes = sorted(set(alike["n"]))
    pairs = set(zip(alike["share"], alike["tau"], strict=True))
    columns = sorted((float(share), int(tau)) for share, tau in pairs)
    figure = Figure((WIDTH, 4.6), layout="constrained")
    panels = figure.subplots(
        len(AGAINST), len(spreads), sharex=True, sharey=True, squeeze=False
    )
    shade: Any = None
    for row, (name, sides) in zip(panels, AGAINST.items(), strict=True):
        found = advantages(alike, *sides)
        for axes, s in zip(row, spreads, strict=True):
            shape = len(sizes), len(columns)
            shown, words = np.full(shape, np.nan), np.full(shape, "", object)
            decided = np.zeros(shape, bool)
            for world, one in found.items():
                n, of, tau, share = world[2:]
                if of != s:
                    continue
                at = sizes.index(n), columns.index((share, tau))
                shown[at], decided[at] = one.times, one.decided
                words[at] = f"{one.times:.2g}"
            axes.set_facecolor(style.BLANK)
            shade = draw_ratios(axes, shown, decided, words, most=MOST_FASTER)
            draw_borders(axes, np.where(np.isnan(shown), -1, shown > 1))
            axes.set_title(f"Over {name}, s = {s:g}")
        row[0].set_ylabel("Clients")
    ticks = [f"{tau}\n{share:g}" for share, tau in columns]
    for axes in panels[-1]:
        axes.set_xticks(range(len(columns)), ticks)
        axes.set_xlabel("Memory, and share below")
    panels[0, 0].set_yticks(range(len(sizes)), [str(n) for n in sizes])
    bar = figure.colorbar(shade, ax=panels)
    label_ratios(bar, shade)
    bar.set_label("Times faster without rounds")
    return figure


def _rule(times: pd.DataFrame) -> Figure:
    """Draws by what dependence changes advantages against what is foretold."""
    figure = Figure((WIDTH, 3.5), layout="constrained")
    panels = figure.subplots(1, 2, sharey=True)
    found = changes(times)
    for axes, title in zip(
        panels, ("By the closed form", "By throughputs"), strict=True
    ):
        seen = set()
        for _, row in found.iterrows():
            one = row["measured"]
            if math.isnan(one.times):
                continue
            alike = row["partition"] == "iid"
            kind = row["problem"] if alike else "unlike data"
            label = f"{kind}, tau {row['tau']}"
            colour = style.palette()[(0, 10, 100).index(row["tau"])]
            if title == "By throughputs":
                x, to = row["played"], 0.0
            else:
                x, to = math.sqrt(row["low"] * row["high"]), 1.0
            axes.errorbar(
                x,
                one.times,
                yerr=[[one.times - one.low], [one.high - one.times]],
                xerr=[[to * (x - row["low"])], [to * (row["high"] - x)]],
                fmt={"convex": "o", "network": "s"}.get(kind, "^"),
                ms=4.5,
                lw=0.8,
                c=colour,
                mfc=colour if row["share"] == 0 else "white",
                label=None if label in seen else label,
            )
            seen.add(label)
        ends = [0.1, 4]
        axes.plot(ends, ends, c=style.INK, lw=0.8)
        axes.set(xscale="log", yscale="log", title=title)
        axes.set_xlabel("Foretold factor")
        ticks = {0.125: "1/8", 0.25: "1/4", 0.5: "1/2", 1: "1", 2: "2", 4: "4"}
        axes.set_xticks(list(ticks), list(ticks.values()))
        axes.set_yticks(list(ticks), list(ticks.values()))
        axes.minorticks_off()
    panels[0].set_ylabel(
        "Measured factor, of asynchrony's\nadvantage over waiting for all"
    )
    panels[1].legend(loc="upper left", fontsize=7)
    return figure


def _memory(times: pd.DataFrame) -> Figure:
    """Draws times to the target over those in the independent world, by protocol."""
    mine = _main(times)
    figure = Figure((WIDTH, 3.0), layout="constrained")
    panels = figure.subplots(1, 2, sharey=True)
    base = mine[(mine["tau"] == 0) & (mine["share"] == 0)]
    base = base.set_index(["protocol", "replicate"])[TARGET]
    names = [*FREE, *ROUNDS]
    for axes, share in zip(panels, (0.0, 0.5), strict=True):
        for number, tau in enumerate((0, 10, 100)):
            those = mine[(mine["tau"] == tau) & (mine["share"] == share)]
            those = those.set_index(["protocol", "replicate"])[TARGET]
            for at, name in enumerate(names):
                one = ratio(those[name].to_numpy(), base[name].to_numpy())
                axes.errorbar(
                    at + 0.2 * (number - 1),
                    one.times,
                    yerr=[[one.times - one.low], [one.high - one.times]],
                    fmt="o",
                    ms=4,
                    lw=1,
                    c=style.palette()[number],
                    label=f"tau {tau}" if at == 0 else None,
                )
        axes.axhline(1, c=style.INK, lw=0.8)
        axes.set(title=f"Share that is common: {share:g}", yscale="log")
        axes.set_xticks(range(len(names)), names, rotation=35, ha="right")
        axes.set_yticks([0.25, 0.5, 1, 2], ["1/4", "1/2", "1", "2"])
        axes.minorticks_off()
    panels[0].set_ylabel("Time to the target over that\nin the independent world")
    panels[0].legend(loc="lower right", fontsize=7)
    return figure
