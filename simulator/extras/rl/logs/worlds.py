"""A scenario of a log: its fitted world, and the replay of its own times."""

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
from jaxtyping import Int

from ..world.record import Rollouts, SampleOutcome
from .fitting import Entry, Fitted, fit_lengths, fit_pace, fit_steps
from .reading import SampleLog
from .record import ends, group_sizes, loads, slots

IDLE = 0.02
"""Idle share of the slots' time from which it is reported."""


LogWorld = tuple[Entry, list[Fitted], list[str], dict[str, dict[str, np.ndarray]]]
"""The world made from a log: a scenario with the variants `fitted` and `replay`; its
parts that come from the log; its differences, in lines; and columns of its files."""


def world_of(
    log: SampleLog, found: Rollouts, name: str, folder: Path, given: Sequence[str] = ()
) -> LogWorld:
    """Makes a scenario of a log."""
    remarks: list[str] = []
    machines, each = slots(log)
    size, complete = group_sizes(log)
    order, whole, odd = _by_group(log, size)
    if odd:
        remarks.append(
            f"{odd} groups have not {size} samples; in the scenario all have"
        )
    seconds = (ends(log) - log.start)[order]
    tokens = np.where(np.isfinite(log.tokens), log.tokens, 0.0)[order]
    own = {"law": "empirical", "path": str(folder / "samples_replayed.parquet")}
    own_step = {"law": "empirical", "path": str(folder / "steps_replayed.parquet")}
    resampled = {**own, "column": "tokens", "order": "resample"}
    alone = {**own_step, "column": "alone", "order": "resample"}
    fits, forgotten = fit_lengths(log, tokens.reshape(-1, size), whole, resampled)
    pace, remark = fit_pace(log)
    batches = found.steps["tokens"]
    fits += [pace, *(steps := fit_steps(log, batches, alone))]
    remarks += [line for line in (forgotten, remark) if line]
    # The only number: laws of steps are mappings.
    per_token = sum(fit.value for fit in steps if isinstance(fit.value, float))
    step = log.step_end - log.step_start
    own_step |= {"column": "seconds", "order": "replay"}
    if not (step > 0).any():
        own_step = alone = {"law": "constant", "value": 0}
    batch = _batch(found.steps["samples"], size if complete else 1, remarks)
    tree: Entry = {
        "name": re.sub(r"[^A-Za-z0-9._-]", "-", name).lstrip("._-") or "log",
        "source": f"imported from {name}",
        "question": "How stale are samples in the world of a log?",
        "generation": {"slots": each, "machines": machines, "group": size,
                       "complete": complete},
        "queue": {"order": _order(log, found, remarks)},
        "trainer": {"samples": batch, "optimizer_steps": log.optimizer_steps},
        "weights": {"every": _every(log)},
        "stop": {"steps": log.step_end.size},
    }  # fmt: skip
    drifts = {
        fit.key.split(".")[0]
        for fit in fits
        if fit.value is None
        and (fit.key == "generation.difficulty" or "drift" in fit.why)
    }
    instead = {"generation.tokens": resampled, "trainer.step": alone}
    for fit in fits:
        section, key = fit.key.split(".")
        value = fit.value
        if value is None and (value := instead.get(fit.key)) and section in drifts:
            value = value | {"order": "replay"}
        if value is not None:
            tree[section][key] = value
    # A sample's own time holds what it took besides tokens: its length is in seconds.
    replay: dict[str, dict[str, object]] = {
        "generation": {
            "tokens": {**own, "column": "seconds", "order": "replay"},
            "seconds_per_token": 1,
        },
        "trainer": {"step": own_step, "seconds_per_token": 0},
    }
    for key in ("most_tokens", "difficulty"):
        if key in tree["generation"]:
            replay["generation"][key] = None
    tree["variants"] = {"fitted": {}, "replay": replay}
    remarks += [
        remark
        for keys, remark in _rest(log, found, machines * each)
        if not any(override.startswith(keys) for override in given)
    ]
    tables = {
        "samples_replayed": {"tokens": tokens, "seconds": seconds},
        "steps_replayed": {
            "seconds": step,
            "alone": np.maximum(step - per_token * batches, 0),
        },
    }
    return tree, fits, remarks, tables


def _by_group(
    log: SampleLog, size: int
) -> tuple[Int[np.ndarray, " m"], Int[np.ndarray, " w"], int]:
    """Returns samples by groups of one size, in the order in which they are started.

    Where samples of a group are missing, its own are taken again.

    Returns:
        Numbers of samples, `size` for each group; the groups that are whole, and could
        have been for any length; and how many have another size.
    """
    kept = np.flatnonzero(log.outcome != SampleOutcome.ABORTED)
    kept = kept[np.argsort(log.group[kept], kind="stable")]
    _, first, count = np.unique(log.group[kept], return_index=True, return_counts=True)
    place = np.arange(size)[None] % count[:, None] + first[:, None]
    order = kept[place]
    finished = np.isfinite(log.finish[order]).all(axis=1)
    started = log.start[order].min(axis=1)
    until = ends(log)[order].max(axis=1)
    # Late groups are whole only if they are short.
    early = started <= log.end - (until - started).max()
    fair = (
        finished & (count == size) & (early if early.sum() * 2 > early.size else True)
    )
    late = started.max() if log.is_grouped else 0
    odd = int(((count != size) & (until < min(log.end, late))).sum())
    return order.ravel(), np.flatnonzero(fair), odd


def _batch(sizes: Int[np.ndarray, " steps"], whole: int, remarks: list[str]) -> int:
    usual = int(np.bincount(sizes).argmax())
    found = max(1, round(usual / whole)) * whole
    other = int((sizes != found).sum())
    if other:
        remarks.append(
            f"{other} of {sizes.size} steps trained between {sizes.min()} and "
            f"{sizes.max()} samples; in the scenario all train {found}"
        )
    return found


def _every(log: SampleLog) -> int:
    _, versions = loads(log)
    made = versions[versions >= 0]
    return int(np.gcd.reduce(made)) or 1 if made.size > 1 else 1


def _order(log: SampleLog, found: Rollouts, remarks: list[str]) -> str:
    """Returns the first order of the queue that all steps have taken."""
    trained = log.step > 0
    number, step = log.group[trained], log.step[trained]
    oldest = np.full(log.group.max() + 1, np.iinfo(np.int64).max)
    np.minimum.at(oldest, log.group, log.start_version)
    keys = {
        "ready_first": found.samples["ready_time"][trained],
        "in_order": number,
        "weight_fifo": oldest[number],
    }
    for name, key in keys.items():
        if (np.diff(step[np.lexsort((step, key))]) >= 0).all():
            return name
    remarks.append(
        "steps took samples neither as they were ready, nor in order, nor by version; "
        "say how by --set queue.order=..."
    )
    return "ready_first"


def _rest(
    log: SampleLog, found: Rollouts, num_slots: int
) -> Iterator[tuple[tuple[str, ...], str]]:
    """Yields what the log does not tell, after the keys that would tell it."""
    counts = np.bincount(log.outcome, minlength=len(SampleOutcome))
    if counts[SampleOutcome.DROPPED]:
        remark = f"{counts[SampleOutcome.DROPPED]} samples were dropped; say how: "
        yield ("queue",), f"{remark}--set queue.max_age=... or queue.capacity=..."
    if counts[SampleOutcome.ABORTED]:
        remark = f"{counts[SampleOutcome.ABORTED]} samples were aborted; say so by "
        yield ("weights",), f"{remark}--set weights.mode=abort"
    idle = 1 - found.slot_seconds["busy"] / (num_slots * log.end)
    if idle > IDLE:
        remark = f"slots were idle for {idle:.1%} of the time; in the scenario never, "
        remark += "unless starts are paced: --set generation.max_async_level=..."
        yield ("generation.max_async_level", "queue", "weights"), remark
    time, versions = loads(log)
    made = (versions >= 1) & (versions <= log.step_end.size)
    late = time[made] - log.step_end[versions[made] - 1]
    if late.size and late.max() > 0:
        remark = f"weights were there {late.mean():.4g} s after their step, on "
        remark += "average; in the scenario at once, unless loads stop generation: "
        yield ("weights",), remark + "--set weights.seconds=..."
    if not log.step_starts_known:
        remark = "the log has no step_start_time: steps are taken to begin when the "
        yield (), remark + "step before had ended and their last sample was finished"
