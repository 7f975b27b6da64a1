"""What three jobs would take without stragglers, and what their authors say.

    python -m evidence.studies.stragglers [FOLDER] > stragglers.csv  # results/testbed

FOLDER/bytedance_stragglers has ByteDance's traces of three trainings of language
models, with the authors' own results: the folder `data` of
https://github.com/ByteDance-Seed/StragglerAnalysis (Apache-2.0). By default FOLDER is
$STALESIM_DATA/traces. A step is a pipeline: micro-batches are computed forward and
backward on the stages of each replica, with messages between stages, and exchanges
between replicas.

**Replay.** An operation begins when those have ended that had ended at its worker when
it began, in the first step of the first replica: each worker keeps its order. Messages
and exchanges end some time after the last of their members has started: their transfer.
Gaps that this does not explain are left out (the authors' `nodelay`). The authors state
what waits for what operation by operation; here the trace says it.

**Without stragglers** a computation takes the mean of its kind over all workers and
steps, a transfer the median, as the authors have it. Slowdown is the mean time of a
replayed step, divided by that without stragglers (their equation 1); that of some
operations has these alone as they were (equation 2). M_S and M_W are the shares of the
slowdown that go with the last stage, and with 3 % of the workers (equation 5).

**Rounds.** The worlds `bytedance_ar`, `bytedance_se` and `bytedance_st` know one number
a worker and step, the sum of its computations, and steps wait for the slowest. Slowdown
is the mean of that maximum, divided by the mean over all workers and steps.

Source: Lin et al., Understanding Stragglers in Large Model Training Using What-if
Analysis (2025), and its artifact at commit 8efcd7f.
"""

import json
import os
import sys
from collections.abc import Callable, Iterator
from functools import reduce
from graphlib import TopologicalSorter
from math import ceil
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

JOBS = ("AR", "SE", "ST")
NEAR_S = 1e-4
"""Seconds by which clocks and roundings may disagree on what had ended."""
COMPUTING = ("forward-compute", "backward-compute")
LOCAL = (*COMPUTING, "gc", "optimizer")
"""Operations that wait for no other worker, and take their mean without stragglers."""
OF_REPLICAS = ("params-all-gather", "grads-reduce-scatter", "optimizer-clip-main-grad")
PEERS = {
    "forward-send": ("forward-recv", 1),
    "backward-send": ("backward-recv", -1),
}

Key = tuple[str, int, int]
"""Kind, number and stage of an operation, which all steps and replicas have."""
Chosen = Callable[..., np.ndarray]
"""Says of an operation and numbers of replicas which are chosen."""


class Trace(NamedTuple):
    """Operations of a job; arrays have a row per step and a column per replica.

    Attributes:
        took: Seconds of each operation: of what waits for others, of its transfer.
        before: Operations that each waits for at its own worker.
        groups: Operations that end together, by each of them.
        steps: Recorded seconds of each step.
        computed: Seconds that each worker computed in each step.
    """

    took: dict[Key, np.ndarray]
    before: dict[Key, list[Key]]
    groups: dict[Key, tuple[Key, ...]]
    steps: np.ndarray
    computed: np.ndarray


def read(path: Path) -> Trace:
    table = pd.read_parquet(path).astype({"start_ts": float, "duration": float})
    table["end"] = table["start_ts"] + table["duration"]
    start, end = {}, {}
    every: Any = table.groupby(["optype", "seq_id", "stage"], observed=True)
    for (kind, number, stage), mine in every:
        name = str(kind), int(number), int(stage)
        for column, of in (("start_ts", start), ("end", end)):
            of[name] = mine.pivot_table(column, "step", "dp_rank").to_numpy()
    groups = {name: group for group in _groups(start) for name in group}
    took = {
        name: np.maximum(end[name] - _together(start, groups[name]), 0)
        for name in start
    }
    by = table.groupby("step")
    computing = table[table["optype"].isin(COMPUTING)]
    computed = computing.pivot_table("duration", "step", "rank", "sum").to_numpy()
    return Trace(
        took,
        _order(start, end),
        groups,
        (by["end"].max() - by["start_ts"].min()).to_numpy(),
        computed,
    )


def _groups(names: dict[Key, np.ndarray]) -> Iterator[tuple[Key, ...]]:
    last = max(stage for _, _, stage in names)
    for kind, number, stage in names:
        if kind in PEERS:
            peer, way = PEERS[kind]
            yield (kind, number, stage), (peer, number, stage + way)
        elif kind.endswith("-recv"):
            continue
        elif kind == "embedding-grads-all-reduce":
            yield (kind, number, 0), (kind, number, last)
        elif kind == "optimizer-clip-main-grad":
            yield tuple((kind, number, each) for each in range(last + 1))
        else:
            yield ((kind, number, stage),)


def _order(
    start: dict[Key, np.ndarray], end: dict[Key, np.ndarray]
) -> dict[Key, list[Key]]:
    """Returns what had ended at a worker when an operation began."""
    found = {}
    for name in start:
        began = start[name][0, 0]
        found[name] = [
            one
            for one in start
            if one[2] == name[2]
            and start[one][0, 0] < began
            and end[one][0, 0] <= began + NEAR_S
        ]
    return found


def _together(start: dict[Key, np.ndarray], group: tuple[Key, ...]) -> np.ndarray:
    """Returns when the last member of a group began."""
    latest = reduce(np.maximum, (start[name] for name in group))
    if group[0][0] in OF_REPLICAS:
        latest = np.broadcast_to(latest.max(axis=1, keepdims=True), latest.shape)
    return latest


def replayed(trace: Trace, took: dict[Key, np.ndarray]) -> np.ndarray:
    """Returns the seconds of each step, if operations take what is given."""
    waits = {
        group: {trace.groups[one] for name in group for one in trace.before[name]}
        for group in trace.groups.values()
    }
    begin = np.zeros_like(next(iter(took.values())))
    start, end = {}, {}
    for group in TopologicalSorter(waits).static_order():
        for name in group:
            before = (end[one] for one in trace.before[name])
            start[name] = reduce(np.maximum, before, begin)
        latest = _together(start, group)
        for name in group:
            end[name] = latest + took[name]
    return reduce(np.maximum, end.values()).max(axis=1)


def without_stragglers(trace: Trace) -> dict[Key, np.ndarray]:
    usual = {}
    for kind in {name[0] for name in trace.took}:
        every = np.stack([took for name, took in trace.took.items() if name[0] == kind])
        usual[kind] = every.mean() if kind in LOCAL else np.median(every)
    return {name: np.full_like(one, usual[name[0]]) for name, one in trace.took.items()}


class WhatIf:
    """Answers to what-if questions about one job.

    Args:
        trace: Its operations.
    """

    def __init__(self, trace: Trace) -> None:
        self.trace, self.ideal = trace, without_stragglers(trace)
        self.actual_s = replayed(trace, trace.took)
        self.ideal_s = float(replayed(trace, self.ideal).mean())

    def mean_s(self, kept: Chosen, *, by: bool = True) -> float:
        """Returns the seconds of a step if what is chosen alone has its own time.

        Args:
            kept: Chooses by operation and replica.
            by: Whether the chosen ones have their own time, or all others do.
        """
        own = self.trace.took
        replicas = np.arange(next(iter(own.values())).shape[1])
        mixed = {
            name: np.where(kept(name, replicas) == by, own[name], self.ideal[name])
            for name in own
        }
        return float(replayed(self.trace, mixed).mean())

    def slowdown(self, kept: Chosen) -> float:
        """Returns the slowdown by what is chosen (equation 2)."""
        return self.mean_s(kept) / self.ideal_s

    def share(self, removed: Chosen) -> float:
        """Returns the share of the slowdown that goes with it (equation 5)."""
        actual = float(self.actual_s.mean())
        return (actual - self.mean_s(removed, by=False)) / (actual - self.ideal_s)

    def worst_workers(self) -> set[tuple[int, int]]:
        """Returns 3 % of the workers, those with the largest slowdown (equation 4)."""
        replicas = next(iter(self.ideal.values())).shape[1]
        of_replica = [self.slowdown(lambda n, r, i=i: r == i) for i in range(replicas)]
        of_stage = [
            self.slowdown(lambda n, r, i=i: (r >= 0) & (n[2] == i))
            for i in range(_last(self.ideal) + 1)
        ]
        scores = {
            (replica, stage): min(one, other)
            for replica, one in enumerate(of_replica)
            for stage, other in enumerate(of_stage)
        }
        return set(
            sorted(scores, key=lambda who: -scores[who])[: ceil(len(scores) * 0.03)]
        )


def _last(names: dict[Key, np.ndarray]) -> int:
    return max(stage for _, _, stage in names)


def measured(folder: Path, job: str) -> list[dict[str, object]]:
    """Returns what the authors and we say of a job, a row per measure."""

    def told(what: str) -> Any:
        return json.loads((folder / f"{what}-{job}.json").read_text())

    theirs = told("result")
    base, nodelay, noblk = (
        np.array(list(theirs[f"step_t_{name}"].values()))
        for name in ("base", "nodelay", "noblk")
    )
    trace = read(folder / f"trace-{job}.parquet")
    ours, last = WhatIf(trace), _last(trace.took)
    worst = ours.worst_workers()

    def of_last(name: Key, replica: np.ndarray) -> np.ndarray:
        return (replica >= 0) & (name[2] == last)

    def of_worst(name: Key, replica: np.ndarray) -> np.ndarray:
        return np.isin(replica, [r for r, stage in worst if stage == name[2]])

    rows = [
        ("step, recorded (s)", base.mean(), trace.steps.mean()),
        ("step, replayed (s)", nodelay.mean(), ours.actual_s.mean()),
        ("error of a replayed step", *(
            np.abs(one / other - 1).mean()
            for one, other in ((nodelay, base), (ours.actual_s, trace.steps)))),
        ("step without stragglers (s)", noblk.mean(), ours.ideal_s),
        ("slowdown", theirs["blocking_slowdown"], ours.actual_s.mean() / ours.ideal_s),
        *((f"slowdown by {kind} alone", theirs["blocking_decompose_by_optype"][kind],
           ours.slowdown(lambda n, r, kind=kind: (r >= 0) & (n[0] == kind)))
          for kind in COMPUTING),
        ("share of the last stage, M_S", told("ms")["Ms"], ours.share(of_last)),
        ("share of the worst workers, M_W", told("mw")["Mw"], ours.share(of_worst)),
        ("slowdown of rounds", np.nan,
         trace.computed.max(axis=1).mean() / trace.computed.mean()),
    ]  # fmt: skip
    return [{"job": job, "measure": m, "authors": t, "ours": o} for m, t, o in rows]


if __name__ == "__main__":
    given = sys.argv[1:] or [
        f"{os.environ['STALESIM_DATA']}/traces/bytedance_stragglers"
    ]
    found = [row for job in JOBS for row in measured(Path(given[0]), job)]
    pd.DataFrame(found).to_csv(sys.stdout, index=False, float_format="%.5g")
