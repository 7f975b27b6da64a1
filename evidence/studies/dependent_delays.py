"""How much of asynchrony's advantage is an artefact of independent delays? A study.

    python -m evidence.studies.dependent_delays run FOLDER [convex|network]  # 45 min
    python -m evidence.studies.dependent_delays take FOLDER       # to results/
    python -m evidence.studies.dependent_delays marginals FOLDER  # laws of jobs, played
    python -m evidence.studies.dependent_delays recorded FOLDER   # shipped claims again

and `python -m evidence.generate` for the page and its figures
(evidence/pages/dependent-delays.md). Cells that are in FOLDER already are not run
again.

A job takes `own * common` seconds on average 1. `own` is log-normal, its logarithms
follow an autoregression from job to job of a client; `common`, the same for all that
begin within an interval, follows one in time. Of the variance of the logarithm, s^2,
`share` is common. `tau` is the memory of both: e^-1 after tau jobs, or seconds.

**The law of a job's time is the same in every cell.** Of `own` that is so by job. Of
`common` with memory it would not be: in slow times fewer jobs begin, which the law in
time makes up for (`common_scale`: a log-normal that is weighted by its value is one of
the same s). `worlds.csv` has what came out.
"""

import itertools
import json
import math
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import yaml

from stalesim.analysis import timelines
from stalesim.analysis.waste import wasted
from stalesim.simulator import simulate
from stalesim.simulator import world as _world
from stalesim.simulator.scenario.reading import loads_any
from stalesim.simulator.scenario.shipped import file_of
from stalesim.simulator.studies import saved

RESULTS = Path(__file__).resolve().parents[1] / "results/dependent-delays"
REPLICATES = 10
FIRST = {
    "asynchronous": (0.8, 0.4, 0.2),
    "Ringmaster": (0.8, 0.8, 0.4),
    "buffered": (1.6, 1.6, 3.2),
    "t-synchronous": (1.6, 1.6, 3.2),
    "Rennala": (6.4, 6.4, 6.4),
    "m of n": (3.2, 3.2, 6.4),
    "synchronous": (3.2, 6.4, 6.4),
}
"""Step size about which the search begins, of 4, 16 and 64 clients: from the pilot. The
network's is an eighth of it."""
STEPS = tuple(0.0125 * 2**power for power in range(14))
"""0.0125 to 102.4, for every protocol: three about `FIRST`, and on to either side until
the best of neither half of the replicates is at a border."""
CONTRIBUTIONS = {4: 480, 16: 960, 64: 2240}
"""Ends of runs, by clients; the network's are twice as long."""
TARGETS = (0.4, 0.3)
"""Values of the objective, that of the start being 2.3; the last is the main one."""
BELOW = 0.2
"""Value that ends a run."""
WINDOW = 3
"""Evaluations, n contributions apart, whose mean must be below a target."""
EVERY_S = {0: 0.05, 10: 0.5, 100: 1.0}
"""Intervals of the common factor, by memory. Without memory they are shorter than a
job is but with a chance of 0.006."""


class DependentWorld(NamedTuple):
    """A world and a problem."""

    problem: str
    partition: str
    n: int
    s: float
    tau: int
    share: float

    @property
    def file(self) -> str:
        """Name of its file."""
        return "_".join(map(str, self)) + ".csv"


def cells(problem: str) -> list[DependentWorld]:
    """Returns the cells, the main ones first."""
    if problem == "network":
        worlds = [(16, 1.0, tau, share) for tau in (0, 100) for share in (0.0, 0.5)]
        worlds.append((16, 1.0, 0, 1.0))
        return [DependentWorld(problem, "iid", *world) for world in worlds]
    few, memories, shares = (0, 100), (0, 10, 100), (0.0, 0.5)
    main = list(itertools.product((16,), (1.0,), memories, shares))
    main += itertools.product((64, 4), (1.0,), few, shares)
    main += itertools.product((16,), (0.5,), memories, shares)
    main += [(16, 1.0, 0, 1.0), (16, 1.0, 100, 1.0), (64, 1.0, 0, 1.0)]
    main += [(4, 1.0, 0, 1.0)]
    main += itertools.product((64, 4), (0.5,), few, shares)
    unlike = itertools.product((16,), (1.0,), (0, 100), (0.0, 0.5))
    return [DependentWorld(problem, "iid", *world) for world in main] + [
        DependentWorld(problem, "dirichlet", *world) for world in unlike
    ]


def protocols(n: int) -> dict[str, tuple[dict[str, Any], int]]:
    """Returns protocols, and their commits for n contributions: then one evaluates."""
    few, half = max(2, n // 4), n // 2
    some = {"kind": "collect", "count": half, "repeats": False, "late": "stop"}
    return {
        "asynchronous": ({"kind": "asynchronous"}, n),
        "Ringmaster": (
            {"kind": "asynchronous", "staleness_bound": n, "beyond": "stop"},
            n,
        ),
        "buffered": ({"kind": "buffered", "size": few}, n // few),
        "t-synchronous": ({"kind": "t_synchronous", "t": few}, n // few),
        "Rennala": ({"kind": "collect", "count": n, "late": "stop"}, 1),
        "m of n": (some, 2),
        "synchronous": ({"kind": "synchronous"}, 1),
    }


def common_scale(s: float, tau: int) -> float:
    """Returns the median of the common factor in time, of mean 1 by jobs."""
    return math.exp((1 if tau else -1) * s * s / 2)


def clients(cell: DependentWorld) -> dict[str, Any]:
    """Returns the world of a cell."""

    def law(s: float, scale: float, correlation: float) -> dict[str, Any]:
        base = {"law": "lognorm", "s": s, "scale": scale}
        if not correlation:
            return base
        return {"law": "autoregressive", "of": base, "correlation": correlation}

    def memory(step: float) -> float:
        return math.exp(-step / cell.tau) if cell.tau else 0.0

    own, common = (cell.s * math.sqrt(x) for x in (1 - cell.share, cell.share))
    every = EVERY_S[cell.tau]
    compute = law(own, math.exp(-own * own / 2), memory(1)) if own else None
    factor = law(common, common_scale(common, cell.tau), memory(every))
    slowdown = {"kind": "shared", "every": every, "share": 1, "factor": factor}
    return {
        "compute": compute or {"law": "constant", "value": 1},
        "slowdowns": [slowdown] if common else [],
    }


def scenario(cell: DependentWorld, protocol: str, steps: Sequence[float]) -> Any:
    """Returns the study of one protocol in one cell."""
    kind, every = protocols(cell.n)[protocol]
    iid = {"kind": "iid", "clients": cell.n}
    unlike = {"kind": "dirichlet", "clients": cell.n, "alpha": 0.3}
    linear = cell.problem == "convex"
    ends = CONTRIBUTIONS[cell.n] * (1 if linear else 2)
    tree = {
        "name": "dependent-delays",
        "seed": 34,
        "replicates": REPLICATES,
        "problem": {
            "data": {"kind": "digits", "scale": "unit"},
            "partition": iid if cell.partition == "iid" else unlike,
            "model": {"kind": "linear"}
            if linear
            else {"kind": "dense", "hidden": [32]},
        },
        "clients": clients(cell),
        "protocol": kind,
        "algorithm": {"kind": "sgd", "step_size": steps[0], "batch": 8},
        "stop": {
            "contributions": ends,
            "time": 20_000,
            "target": {"objective": BELOW},
        },
        "evaluate": {"every": {"commits": every}, "metrics": ["objective"]},
        "sweep": {"algorithm.step_size": list(steps)},
    }
    return loads_any(json.dumps(tree), cell.file)


def reached(time: np.ndarray, value: np.ndarray, target: float) -> float:
    """Returns when a target is reached, and kept on average over 2n contributions.

    Between two evaluations the objective is taken to fall along a line.

    Args:
        time: Virtual seconds of evaluations.
        value: Values of the objective; the run ended with the last if that is `BELOW`.
        target: Value that is to be reached.
    """
    ended = value[-1] <= BELOW
    for at in np.flatnonzero(value <= target).tolist():
        if at + WINDOW > value.size and not ended:
            break
        if value[at : at + WINDOW].mean() <= target:
            if not at or value[at - 1] <= target:  # it had been there, and was not kept
                return float(time[at])
            part = (value[at - 1] - target) / (value[at - 1] - value[at])
            return float(time[at - 1] + part * (time[at] - time[at - 1]))
    return math.inf


def best(table: pd.DataFrame, half: int) -> float:
    """Returns the step of the least median time, of one half of the replicates."""
    mine = table[table["replicate"] % 2 == half]
    return float(mine.groupby("step")[f"to {TARGETS[-1]}"].median().idxmin())


def measure(cell: DependentWorld, protocol: str) -> pd.DataFrame:
    """Returns a row for each step size and replicate."""
    at = STEPS.index(FIRST[protocol][list(CONTRIBUTIONS).index(cell.n)])
    at -= 3 if cell.problem == "network" else 0
    low, high = at - 1, at + 1
    table = _measure(cell, protocol, STEPS[low : high + 1])
    while True:
        chosen = {best(table, half) for half in (0, 1)}
        if STEPS[low] in chosen and low > 0:
            low -= 1
            more = STEPS[low]
        elif STEPS[high] in chosen and high + 1 < len(STEPS):
            high += 1
            more = STEPS[high]
        else:
            return table
        table = pd.concat([table, _measure(cell, protocol, (more,))])


def _measure(
    cell: DependentWorld, protocol: str, steps: Sequence[float]
) -> pd.DataFrame:
    study = simulate(scenario(cell, protocol, steps))
    whole = study.table("evaluations", ["run", "time", "objective"])
    curves = {run: mine.sort_values("time") for run, mine in whole.groupby("run")}
    found = []
    for run in study.manifest["runs"]:
        time, value = (curves[run["run"]][x].to_numpy() for x in ("time", "objective"))
        found.append(
            {
                "protocol": protocol,
                "step": run["parameters"]["algorithm.step_size"],
                "replicate": run["replicate"],
                "stop": run["stop"],
            }
            | {f"to {x}": reached(time, value, x) for x in TARGETS}
        )
    return pd.DataFrame(found).merge(_of_world(study), how="left")


def _of_world(study: Any) -> pd.DataFrame:
    """Returns what the jobs of each run say."""
    jobs, waste = study.table("jobs"), wasted(study).groupby("run")["share"].sum()
    of = {run["run"]: run for run in study.manifest["runs"]}
    rows = []
    for run, mine in jobs.groupby("run"):
        ended = mine.dropna(subset=["arrived_time"])
        seconds = (ended["arrived_time"] - ended["read_time"]).to_numpy()
        applied = ended[ended["outcome"].astype(str) == "APPLIED"]
        stale = applied["commit"] - 1 - applied["read_version"]
        shares = applied["client"].value_counts(normalize=True)
        end, number = float(ended["arrived_time"].max()), mine["client"].nunique()
        rows.append(
            {
                "step": of[run]["parameters"]["algorithm.step_size"],
                "replicate": of[run]["replicate"],
                "throughput": len(applied) / end / number,
                "job mean": seconds.mean(),
                "log mean": np.log(seconds).mean(),
                "log sd": np.log(seconds).std(),
                "discarded": waste.get(run, 0.0),
                "staleness mean": stale.mean(),
                "staleness 99 %": stale.quantile(0.99),
                "effective clients": 1 / float((shares**2).sum()),
            }
        )
    return pd.DataFrame(rows)


def run(folder: Path, problem: str = "convex") -> None:
    """Runs the cells that are not there yet."""
    folder.mkdir(parents=True, exist_ok=True)
    for cell in cells(problem):
        file = folder / cell.file
        if file.exists():
            continue
        table = pd.concat(measure(cell, name) for name in protocols(cell.n))
        table.to_csv(file.with_suffix(".part"), index=False, float_format="%.5g")
        file.with_suffix(".part").rename(file)
        print(cell.file, flush=True)


def take(folder: Path) -> None:
    """Writes the small tables of the cells that are there.

    `times.csv`: of each replicate, at the step that the other half of the replicates
    has chosen. `steps.csv`: medians of all steps. `worlds.csv`: what the jobs say, at
    the steps of `times.csv`, medians over replicates.
    """
    parts = []
    for problem in ("convex", "network"):
        for cell in cells(problem):
            if (file := folder / cell.file).exists():
                table = pd.read_csv(file)
                for at, (name, value) in enumerate(cell._asdict().items()):
                    table.insert(at, name, value)
                parts.append(table)
    whole, of = pd.concat(parts), [*DependentWorld._fields, "protocol"]
    goals = [f"to {target}" for target in TARGETS]
    whole.groupby([*of, "step"], sort=False)[goals].median().round(
        3
    ).reset_index().to_csv(RESULTS / "steps.csv", index=False)
    judged = []
    for _, mine in whole.groupby(of, sort=False):
        for half in (0, 1):
            step = best(mine, 1 - half)
            same = mine[mine["step"] == step]
            ours = same["replicate"] % 2 == half
            choice = same.loc[~ours, goals[-1]].median()  # seen by those who choose
            judged.append(same[ours].assign(choice=choice))
    times = pd.concat(judged)
    times[[*of, "replicate", "step", "choice", *goals, "throughput"]].round(4).to_csv(
        RESULTS / "times.csv", index=False
    )
    measures = list(times.loc[:, "throughput":"effective clients"])
    times.groupby(of, sort=False)[measures].median().round(4).reset_index().to_csv(
        RESULTS / "worlds.csv", index=False
    )


def marginals(folder: Path) -> None:
    """Plays the worlds of 16 clients for 3,000 s without learning: laws of jobs."""
    rows = []
    worlds = {cell[3:]: cell for cell in cells("convex") if cell.n == 16}
    for world, cell in worlds.items():
        for protocol in ("asynchronous", "synchronous"):
            tree = {
                "name": "marginals",
                "seed": 35,
                "clients": {"number": cell.n, **clients(cell)},
                "protocol": protocols(cell.n)[protocol][0],
                "stop": {"time": 3000},
            }
            with tempfile.TemporaryDirectory(dir=folder) as place:
                scenario = loads_any(json.dumps(tree), cell.file)
                jobs = saved.record(scenario, Path(place) / "timeline").table("jobs")
            jobs = jobs.dropna(subset=["arrived_time"])
            seconds = (jobs["arrived_time"] - jobs["read_time"]).to_numpy()
            logs = np.log(seconds)
            rows.append(
                dict(zip(("s", "tau", "share"), world, strict=True))
                | {
                    "protocol": protocol,
                    "jobs": seconds.size,
                    "mean": seconds.mean(),
                    "log mean": logs.mean(),
                    "log sd": logs.std(),
                }
            )
    pd.DataFrame(rows).round(3).to_csv(RESULTS / "marginals.csv", index=False)


# The shipped claims again, in a recorded world


SHIPPED = {
    "quickstart": ("test_accuracy", 0.9, "FedAvg", ("FedBuff", "FedAsync")),
    "quickstart_vafl": ("test_accuracy", 0.9, "sync", ("async", "t-sync")),
    "studies/straggler": (
        "throughput",
        math.nan,
        "synchronous",
        ("asynchronous", "t-synchronous, t = 8", "buffered, 8"),
    ),
    "studies/throughput_against_heterogeneity": (
        "throughput",
        math.nan,
        "synchronous",
        ("asynchronous", "t-synchronous-4", "buffered-4"),
    ),
}
"""Metric and target, which side waits for everyone, and those that it is compared with:
scenarios whose claim or question is how much faster asynchrony is. (Parkinson's claims
on the training loss are left out: rounds did not get there in its 600 s.)"""
JOB = 4
"""Job of Alibaba PAI whose records replace the scenarios' laws: `pai_job_4`."""


def write_worlds(folder: Path) -> None:
    """Writes records as they are, and each worker's shuffled, for every replicate.

    The mean of all is 1 s. Replicates begin at other places of the record, the same of
    all workers.
    """
    path = Path(_world.__file__).parent / f"recorded/pai/job_{JOB}.csv.gz"
    record = pd.read_csv(path)
    record["time"] /= record["time"].mean()
    for replicate in range(REPLICATES):
        shuffle = np.random.default_rng(replicate).permutation
        worlds: dict[str, list[pd.DataFrame]] = {"recorded": [], "shuffled": []}
        for client, mine in record.groupby("client"):
            time = mine["time"].to_numpy()
            rotated = np.roll(time, -(time.size * replicate // REPLICATES))
            for name, order in (("recorded", rotated), ("shuffled", shuffle(time))):
                worlds[name].append(pd.DataFrame({"client": client, "time": order}))
        for name, clients in worlds.items():
            pd.concat(clients).to_csv(folder / f"{name}-{replicate}.csv", index=False)


def in_record(scenario: str, world: str, replicate: int, folder: Path) -> Any:
    """Returns a shipped scenario whose clients are those of the record."""
    tree = yaml.safe_load(file_of(scenario).read_text(encoding="utf-8"))
    _, _, base, others = SHIPPED[scenario]
    law = {"law": "empirical", "path": str(folder / f"{world}-{replicate}.csv"),
           "column": "time", "client": "client", "order": "replay"}  # fmt: skip
    for key in ("claims", "sweep", "replicates"):
        tree.pop(key, None)
    tree["seed"] = replicate
    tree["variants"] = {name: tree["variants"][name] for name in (base, *others)}
    kept = {
        key: tree["clients"][key] for key in ("slowdowns",) if key in tree["clients"]
    }
    tree["clients"] = {"compute": law, **kept}
    if "problem" not in tree:
        tree["clients"]["number"] = 10
    elif tree["problem"]["partition"]["kind"] != "vertical":
        tree["problem"]["partition"]["clients"] = 10
    return loads_any(json.dumps(tree), scenario)


def of_variants(scenario: Any, target: float, metric: str, folder: Path) -> pd.Series:
    """Returns seconds to the target, or seconds for a contribution, of each variant."""
    if metric == "throughput":
        with tempfile.TemporaryDirectory(dir=folder) as place:
            view = timelines.View(saved.record(scenario, Path(place) / "timeline"))
            return 1 / view.by_run.set_index("group")["contributions_per_s"]
    study = simulate(scenario)
    curves = study.table("evaluations", ["run", "time", metric])
    first = curves[curves[metric] >= target].groupby("run")["time"].min()
    return pd.Series(
        {
            run["variant"]: first.get(run["run"], math.inf)
            for run in study.manifest["runs"]
        }
    )


def recorded(folder: Path) -> None:
    """Judges shipped claims on the record as it is, and shuffled."""
    write_worlds(folder)
    rows = []
    for name, (metric, target, base, others) in SHIPPED.items():
        for world in ("recorded", "shuffled"):
            for replicate in range(REPLICATES):
                tree = in_record(name, world, replicate, folder)
                took = of_variants(tree, target, metric, folder)
                rows += [
                    {"scenario": name, "world": world, "metric": metric,
                     "target": target, "base": base, "other": other,
                     "replicate": replicate, "base s": took[base],
                     "other s": took[other]}
                    for other in others
                ]  # fmt: skip
        print(name, flush=True)
        pd.DataFrame(rows).round(5).to_csv(RESULTS / "recorded.csv", index=False)


if __name__ == "__main__":
    what, place, *more = sys.argv[1:]
    RESULTS.mkdir(exist_ok=True)
    {"run": run, "take": take, "marginals": marginals, "recorded": recorded}[what](
        Path(place).absolute(), *more
    )
