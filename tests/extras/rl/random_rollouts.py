"""Random worlds of samples, and what the slow twin and the players make of them.

    python -m tests.extras.rl.random_rollouts 0 3000

compares the events with the twin on 3,000 of them.
"""

import random
import sys
from typing import Any

import numpy as np
import pytest

from stalesim.simulator.extras.rl.world import (
    RolloutDraws,
    RolloutOptions,
    Rollouts,
    play,
)
from stalesim.simulator.extras.rl.world.measures import measured, pieces_of
from stalesim.simulator.extras.rl.world.options import check_rollouts
from stalesim.simulator.extras.rl.world.record import SampleOutcome
from tests.extras.rl.rollouts_twin import twin

LENGTHS: list[dict[str, Any]] = [
    {"law": "expon", "scale": 100},
    {"law": "lognorm", "s": 1.5, "scale": 50},
    {"law": "gamma", "a": 3, "scale": 30},
    {"law": "uniform", "loc": 20, "scale": 100},
    {"law": "pareto", "b": 2.5, "scale": 50},
]
TIMES: dict[str, Any] = {"rtol": 1e-9, "atol": 1e-7}
"""Roundings of sums: the twin adds up what is passed, the events take differences."""


def made(**tree: Any) -> RolloutOptions:
    """Returns a world, checked."""
    found = RolloutOptions.model_validate(tree)
    check_rollouts(found)
    return found


def random_world(seed: int) -> RolloutOptions:
    """Returns a random world of few steps."""
    r = random.Random(seed)
    slots, machines = r.choice([1, 2, 3, 8, 20]), r.choice([1, 1, 2])
    group = r.choice([1, 1, 2, 4])
    batch = group * r.choice([1, 2, 5])
    order = r.choice(["ready_first", "ready_first", "freshest", "weight_fifo"])
    order = r.choice([order, "in_order"])
    mean = 100 * 0.1 / (slots * machines) * batch
    generation: dict[str, Any] = {
        "slots": slots,
        "machines": machines,
        "group": group,
        "complete": r.random() < 0.7,
        "tokens": r.choice(LENGTHS),
        "seconds_per_token": r.choice([0.1, "0.05*(1+m/M)", {1: 0.05, 8: 0.2}]),
    }
    if r.random() < 0.3:
        generation["difficulty"] = {"law": "gamma", "a": 4, "scale": 0.25}
    step = r.choice(
        [
            {"law": "constant", "value": 0},
            {"law": "constant", "value": mean * r.choice([0.3, 1.1, 3])},
            {"law": "expon", "scale": mean * r.choice([0.3, 1.1, 3])},
        ]
    )
    trainer: dict[str, Any] = {"samples": batch, "step": step}
    of_tokens = r.random() < 0.2
    if of_tokens:
        trainer = {"tokens": 100.0 * batch, "step": step}
    if r.random() < 0.2:
        trainer["seconds_per_token"] = 0.01 / slots
    queue: dict[str, Any] = {"order": order}
    if order in ("ready_first", "freshest") and r.random() < 0.6:
        queue["capacity"] = r.choice([1, 1.5, 2, 3])
        queue["full"] = r.choice(["drop_oldest", "wait"])
    every = r.choice([1, 1, 1, 2])
    if r.random() < 0.4:
        queue["max_age"] = r.choice([1, 2, 4])
        queue["dropped"] = r.choice(["lost", "again"])
    mode = r.choice(["in_place", "retract", "abort", "wait"])
    own = random.Random(f"kept {seed}")  # others stay as they were
    if "max_age" in queue and own.random() < 0.5:
        waits = queue.get("full") == "wait"
        queue["dropped"] = own.choice(["masked", "masked" if waits else "withheld"])
    weights: dict[str, Any] = {"every": every, "mode": mode}
    if r.random() < 0.5:
        weights["seconds"] = {"law": "expon", "scale": mean * 0.3}
    if mode == "retract":
        weights["recompute"] = r.choice([0.0, 0.1, 0.5])
    if not of_tokens and r.random() < 0.4:
        generation["max_async_level"] = r.choice([0, 1, 3])
    if r.random() < 0.5:
        generation["retry_length"] = "redrawn"
    if r.random() < 0.25:
        generation["most_tokens"] = 500
    able = generation["complete"] and mode != "abort" and slots * machines >= group
    if able and random.Random(-seed).random() < 0.3:  # others stay as they were
        generation["admit"] = "group"
    stop: dict[str, Any] = r.choice(
        [{"steps": 12}, {"samples": 10 * batch}, {"time": 12 * mean}]
    )
    return made(
        generation=generation, queue=queue, trainer=trainer, weights=weights, stop=stop
    )


def twin_options(world: RolloutOptions) -> dict[str, Any]:
    """Returns the options as the twin has them."""
    g, q, t, w = world.generation, world.queue, world.trainer, world.weights
    return {
        "slots": g.slots * g.machines,
        "machines": g.machines,
        "speeds": g.speeds(),
        "group": g.group,
        "complete": g.complete,
        "by_group": g.admit == "group",
        "level": g.max_async_level,
        "retry_length": g.retry_length,
        "order": q.order,
        "capacity": q.capacity,
        "full": q.full,
        "max_age": q.max_age,
        "dropped": q.dropped,
        "batch": t.batch,
        "batch_of_tokens": t.samples is None,
        "mode": w.mode,
        "every": w.every,
        "recompute": w.recompute,
        "stop_steps": world.stop.steps,
        "stop_samples": world.stop.samples,
        "stop_time": world.stop.time,
    }


def assert_as_twin(world: RolloutOptions, seed: int) -> Rollouts:
    """Compares the events with the twin: samples, steps, tokens of versions, slots."""
    found = play(world, seed)
    other = twin(twin_options(world), RolloutDraws(world, seed))
    mine = found.samples
    assert found.stop == other.stop
    np.testing.assert_allclose(found.end_time, other.now, **TIMES)
    exact = ("group", "prompt", "member", "attempt", "slot", "start_version", "step")
    assert len(mine["group"]) == len(other.log)
    for name in (*exact, "ready_version"):
        assert mine[name].tolist() == [getattr(s, name) for s in other.log], name
    fates = [SampleOutcome(code).name for code in mine["outcome"].tolist()]
    assert fates == [s.outcome for s in other.log]
    for name in ("start_time", "finish_time", "ready_time"):
        theirs = [getattr(s, name) for s in other.log]
        theirs = [np.nan if time is None else time for time in theirs]
        np.testing.assert_allclose(mine[name], theirs, **TIMES)
    np.testing.assert_allclose(
        mine["tokens"], [s.made for s in other.log], rtol=1e-7, atol=1e-5
    )
    begun = [step.begun for step in other.steps]
    np.testing.assert_allclose(found.steps["start_time"], begun, **TIMES)
    assert found.steps["left"].tolist() == [step.left for step in other.steps]
    assert found.steps["samples"].tolist() == [step.sent for step in other.steps]
    assert found.slot_seconds == pytest.approx(other.seconds, rel=1e-7, abs=1e-5)
    row, age, tokens = pieces_of(found, np.arange(len(other.log)))
    pieces = np.zeros((len(other.log), other.version + 1))
    theirs = pieces.copy()
    np.add.at(pieces, (row, mine["step"][row] - 1 - age), tokens)
    for sample in other.log:
        for version, made in sample.by_version.items():
            theirs[sample.row, version] = made
    np.testing.assert_allclose(pieces, theirs, rtol=1e-7, atol=1e-5)
    return found


def assert_same(one: Rollouts, two: Rollouts) -> None:
    """Compares two records bit for bit."""
    assert (one.stop, one.end_time) == (two.stop, two.end_time)
    for part in ("samples", "steps", "loads"):
        mine, theirs = getattr(one, part), getattr(two, part)
        assert mine.keys() == theirs.keys()
        for name in mine:
            np.testing.assert_array_equal(mine[name], theirs[name], f"{part}.{name}")


def assert_conserves(world: RolloutOptions, found: Rollouts) -> None:
    """Checks that every sample has one end, and that nothing is trained twice."""
    samples, batch = found.samples, world.trainer.samples
    outcome, step = samples["outcome"], samples["step"]
    trained = outcome == SampleOutcome.TRAINED
    masked, dropped = outcome == SampleOutcome.MASKED, world.queue.dropped
    withheld = dropped == "withheld"
    done = np.isfinite(found.steps["end_time"])
    in_batch = trained if withheld else trained | masked
    assert in_batch.sum() == found.steps["samples"][done].sum()
    assert masked.any() <= (dropped in ("masked", "withheld"))
    known = trained | masked | ((outcome == SampleOutcome.UNDER_WAY) & (step > 0))
    assert ((step > 0) == known).all()
    told = measured(world, 0, found)
    if ended := (outcome != SampleOutcome.UNDER_WAY).sum():
        parts = [told[f"samples_{fate}"] for fate in ("dropped", "aborted", "masked")]
        assert trained.sum() / ended + sum(parts) == pytest.approx(1)
        tokens = samples["tokens"]
        whole = tokens[outcome != SampleOutcome.UNDER_WAY].sum()
        lost = told["tokens_wasted"] + told["tokens_masked"]
        assert tokens[trained].sum() / whole + lost == pytest.approx(1)
    if batch is not None:
        most = batch + (world.generation.group if withheld else 1)
        sizes = found.steps["samples"]
        assert ((sizes >= batch) & (sizes < most)).all()
    key = np.stack([samples[name] for name in ("prompt", "member", "attempt")])
    assert np.unique(key, axis=1).shape[1] == key.shape[1]
    some = step > 0
    at_training = found.steps["start_time"][step[some] - 1]
    assert (samples["ready_time"][some] <= at_training).all()
    age = step - 1 - samples["start_version"]
    assert (age[some] >= 0).all()
    if world.queue.max_age is not None:
        assert (age[trained] <= world.queue.max_age).all()
        assert (age[masked] > world.queue.max_age).all()
    finished = np.isfinite(samples["finish_time"])
    assert (samples["finish_time"] >= samples["start_time"])[finished].all()
    # No slot makes two samples at once.
    order = np.lexsort((samples["start_time"], samples["slot"]))
    slot = samples["slot"][order]
    ends = np.where(finished, samples["finish_time"], found.end_time)[order]
    same = slot[1:] == slot[:-1]
    assert (samples["start_time"][order][1:] >= ends[:-1] - 1e-9)[same].all()


def main() -> None:
    first, last = map(int, sys.argv[1:])
    for seed in range(first, last):
        try:
            world = random_world(seed)
            assert_conserves(world, assert_as_twin(world, seed))
        except BaseException:
            print(f"seed {seed}")  # noqa: T201
            raise


if __name__ == "__main__":
    main()
