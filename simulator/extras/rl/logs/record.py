"""The record of a log of samples, in the form of a simulated world's."""

from heapq import heappop, heappush

import numpy as np
from jaxtyping import Float, Int

from ..world.measures import RolloutLoad, pieces_of
from ..world.record import Rollouts, SampleOutcome, columns
from .reading import SampleLog

WHY = "the numbers are a log's"
"""Why there are no closed forms next to a log."""


def ends(log: SampleLog) -> Float[np.ndarray, " n"]:
    """Returns the ends of samples; of unfinished ones, the end of the log."""
    return np.where(np.isnan(log.finish), log.end, log.finish)


def slots(log: SampleLog) -> tuple[int, int]:
    """Returns the machines, and the most samples that one of them generated at once."""
    until, machines = ends(log), int(log.machine.max()) + 1
    most = 1
    for number in range(machines):
        mine = log.machine == number
        _, busy = levels(log.start[mine], until[mine])
        most = max(most, int(busy.max(initial=1)))
    return machines, most


def levels(
    start: Float[np.ndarray, " n"], end: Float[np.ndarray, " n"]
) -> tuple[Float[np.ndarray, " e"], Int[np.ndarray, " e"]]:
    """Returns the times at which samples start or end, and how many are then busy.

    At one instant ends come first; samples without duration do not count.
    """
    some = end > start
    start, end = start[some], end[some]
    time = np.r_[end, start]
    change = np.r_[-np.ones(end.size, np.int64), np.ones(start.size, np.int64)]
    order = np.argsort(time, kind="stable")
    return time[order], np.cumsum(change[order])


def group_sizes(log: SampleLog) -> tuple[int, bool]:
    """Returns the samples of most groups, and whether groups were trained as a whole.

    Aborted samples were made again, and do not count.
    """
    kept = log.outcome != SampleOutcome.ABORTED
    sizes = np.bincount(log.group[kept])
    sizes = sizes[sizes > 0]
    usual = int(np.bincount(sizes).argmax())
    trained = log.outcome == SampleOutcome.TRAINED
    low = np.full(log.group.max() + 1, np.iinfo(np.int64).max)
    high = np.zeros(log.group.max() + 1, np.int64)
    np.minimum.at(low, log.group[trained], log.step[trained])
    np.maximum.at(high, log.group[trained], log.step[trained])
    some = high > 0
    return usual, usual == 1 or bool((low[some] == high[some]).all())


def loads(log: SampleLog) -> tuple[Float[np.ndarray, " v"], Int[np.ndarray, " v"]]:
    """Returns when versions of the weights were loaded, and which.

    A version is there when its step has ended; if a sample began with an older one
    after that, when the first one began with it, or with a newer one.
    """
    order = np.lexsort((log.start_version, log.start))
    start, newest = log.start[order], log.start_version[order]
    newest = np.maximum.accumulate(newest)
    found = np.unique(newest)
    first = start[np.searchsorted(newest, found)]
    ended = np.full(found.size, -np.inf)
    made = (found >= 1) & (found <= log.step_end.size)
    ended[made] = log.step_end[found[made] - 1]
    at = np.searchsorted(newest, found) - 1
    older = np.where(at >= 0, start[np.maximum(at, 0)], -np.inf)
    time = np.where(older >= ended, first, ended)
    time[0] = min(time[0], 0.0)
    return time, found


def record(log: SampleLog) -> Rollouts:
    """Returns the record of a log.

    A sample's tokens are taken to be generated at one rate between its start and its
    end, each with the weights that were loaded then.
    """
    _, complete = group_sizes(log)
    ready = log.finish.copy()
    ended = (log.outcome == SampleOutcome.TRAINED) | (
        log.outcome == SampleOutcome.DROPPED
    )
    ready[~ended] = np.nan
    if complete:
        last = np.full(log.group.max() + 1, -np.inf)
        np.maximum.at(last, log.group[ended], log.finish[ended])
        ready[ended] = last[log.group[ended]]
    until = ends(log)
    order = np.argsort(log.group, kind="stable")
    ordered = log.group[order]
    member = np.empty(order.size, np.int64)
    member[order] = np.arange(order.size) - np.searchsorted(ordered, ordered)
    version = np.searchsorted(log.step_end, np.nan_to_num(ready), "right")
    # What was ready at the very end of a step that took it belongs before that end.
    taken = log.step > 0
    version[taken] = np.minimum(version[taken], log.step[taken] - 1)
    samples = {
        "group": log.group,
        "prompt": log.group,
        "member": member,
        "attempt": np.zeros(log.start.size),
        "slot": _slots(log, until),
        "tokens": np.nan_to_num(log.tokens),
        "start_time": log.start,
        "finish_time": log.finish,
        "ready_time": ready,
        "outcome": log.outcome,
        "start_version": log.start_version,
        "ready_version": np.where(np.isnan(ready), 0, version),
        "step": log.step,
        "start_work": log.start,
        "finish_work": until,
    }
    time, versions = loads(log)
    found = Rollouts(
        columns(samples),
        columns(_steps(log)),
        columns({"time": time, "work": time, "version": versions}),
        columns({"sample": [], "version": [], "tokens": []}),
        {"busy": float((until - log.start).sum())},
        log.end,
        "log",
        "log",
    )
    return found._replace(pieces=columns(_pieces(found)))


def load_of(log: SampleLog, found: Rollouts) -> RolloutLoad:
    """Returns the closed forms' inputs for a log's world."""
    machines, each = slots(log)
    size, complete = group_sizes(log)
    ended = np.isfinite(log.finish) & (log.outcome != SampleOutcome.ABORTED)
    tokens = log.tokens[ended]
    steps = found.steps
    seconds = float((steps["end_time"] - steps["start_time"]).mean())
    batch = float(np.median(steps["samples"]))
    rate = machines * each / float((log.finish - log.start)[ended].mean())
    group = log.group[ended]
    longest = np.zeros(group.max() + 1)
    np.maximum.at(longest, group, tokens)
    tail = float(longest[longest > 0].mean() / tokens.mean())
    return RolloutLoad(
        slots=machines * each,
        batch=batch,
        rho=rate * seconds / batch,
        tail=tail if complete else 1.0,
        group=size if complete else 1,
        exempt=WHY,
    )


def _slots(log: SampleLog, until: np.ndarray) -> list[int]:
    machines, each = slots(log)
    free = [list(range(n * each, (n + 1) * each)) for n in range(machines)]
    busy: list[tuple[float, int, int]] = []
    found = []
    for start, end, machine in zip(
        log.start.tolist(), until.tolist(), log.machine.tolist(), strict=True
    ):
        while busy and busy[0][0] <= start:
            _, where, slot = heappop(busy)
            heappush(free[where], slot)
        if start == end:
            found.append(machine * each)
            continue
        slot = heappop(free[machine])
        found.append(slot)
        heappush(busy, (end, machine, slot))
    return found


def _steps(log: SampleLog) -> dict[str, np.ndarray]:
    number, size = log.step, log.step_end.size
    some = number > 0
    tokens = np.where(some, np.nan_to_num(log.tokens), 0)
    ready = np.isfinite(log.finish) & (log.outcome != SampleOutcome.ABORTED)
    gone = np.where(some, log.step_start[number - 1], log.finish)
    gone[~some & (log.outcome == SampleOutcome.UNDER_WAY)] = np.inf
    came, went = np.sort(log.finish[ready]), np.sort(gone[ready])
    left = np.searchsorted(came, log.step_start, "right") - np.searchsorted(
        went, log.step_start, "right"
    )
    return {
        "start_time": log.step_start,
        "end_time": log.step_end,
        "samples": np.bincount(number, minlength=size + 1)[1:],
        "tokens": np.bincount(number, tokens, minlength=size + 1)[1:],
        "left": left,
    }


def _pieces(found: Rollouts) -> dict[str, np.ndarray]:
    samples = found.samples
    row, age, seconds = pieces_of(found, np.arange(samples["step"].size))
    whole = samples["finish_work"] - samples["start_work"]
    rate = np.divide(
        samples["tokens"], whole, out=np.zeros(whole.size), where=whole > 0
    )
    version = samples["step"][row] - 1 - age
    kept = seconds > 0
    return {
        "sample": row[kept],
        "version": version[kept],
        "tokens": (seconds * rate[row])[kept],
    }
