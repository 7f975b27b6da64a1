"""Worlds of samples against closed forms, and in limits that other protocols know."""

import random
from typing import Any

import numpy as np
import pytest

from stalesim.simulator.engine.of_run import timeline
from stalesim.simulator.extras.rl.theory import rollout_staleness
from stalesim.simulator.extras.rl.world import RolloutDraws, SampleOutcome, play
from stalesim.simulator.extras.rl.world.events import RolloutEvents
from stalesim.simulator.extras.rl.world.measures import measured, workload
from stalesim.simulator.scenario.reading import loads, read_any
from stalesim.simulator.scenario.study import expand
from tests.extras.rl.random_rollouts import made

pytestmark = pytest.mark.costly

LAWS: list[dict[str, Any]] = [
    {"law": "expon", "scale": 1000},
    {"law": "gamma", "a": 4, "scale": 250},
    {"law": "lognorm", "s": 0.8, "scale": 800},
    {"law": "uniform", "loc": 200, "scale": 1600},
]


def fluid_in_queue(capacity: float, rho: float) -> float:
    """Returns the versions in the queue if groups come and go as a steady flow.

    A batch that is taken from a full queue came between q and q - 1 batches before, and
    every step that ended since counts as a whole; the published form takes half a
    version for that rounding. They agree where that is right on average, as for q = 2
    and rho = 1.5, and differ by up to a half: for q = 1 all of a batch came during one
    step, so that it waits exactly one version, whatever `rho` > 1 is.

    Args:
        capacity: q, batches that the queue holds, >= 1.
        rho: > 0.
    """
    if rho < 1:
        return rho
    low, high = (capacity - 1) / rho, capacity / rho
    return 1 + (_floors(high) - _floors(low)) / (high - low)


def _floors(end: float) -> float:
    """Returns the integral of the integer part from 0."""
    whole = np.floor(end)
    return float(whole * (whole - 1) / 2 + whole * (end - whole))


def random_setting(seed: int) -> Any:
    """Returns a world in which the trainer is faster than generation."""
    r = random.Random(seed)
    group = r.choice([1, 1, 2, 4, 8])
    batch = group * r.choice([4, 8, 16, 32])
    slots = r.choice([8, 16, 64, 128])
    law = r.choice(LAWS)
    mean = {"expon": 1000, "gamma": 1000, "uniform": 1000}.get(
        law["law"], 800 * np.exp(0.32)
    )
    rho = r.uniform(0.1, 0.6)
    step = rho * batch * mean * 0.01 / slots
    return made(
        generation={"slots": slots, "group": group, "tokens": law},
        trainer={"samples": batch, "step": {"law": "constant", "value": step}},
        stop={"steps": max(60, 3000 // batch)},
    )


@pytest.mark.long
@pytest.mark.parametrize("block", range(4))
def test_two_hundred_settings_stay_within_the_bounds_of_the_closed_forms(
    block: int,
) -> None:
    """Where the trainer is faster, staleness is CM/B + rho up to what is derived here.

    Every update of the weights makes each sample under way one version older, from
    its start until its group is ready. So the staleness in generation, summed over
    samples, is the sum over updates of N, the samples under way then, but for those
    under way at the ends of what is measured: at most CM at either end, each with the
    versions of one generation on average, as laws here vary by no more than their mean.
    N is at least C, and is C for groups of one. The samples of a group start within
    S - 1 starts, which take (S - 1) / B of a version, and a ready group changes N by
    S - 1. `tail` is of 20,000 groups: 2 % are four of its standard errors or more.

    In the queue G = B / S groups of a batch come one after the other: rho, the share of
    the time that a step takes, is rounded to one of them, and their number during a
    step fluctuates by the root of rho G, independently from step to step.
    """
    for seed in range(50 * block, 50 * block + 50):
        world = random_setting(seed)
        found, known = play(world, seed), workload(world, seed)
        told = measured(world, seed, found)
        generating, queueing = rollout_staleness(
            known["slots"], known["batch"], 1, known["rho"], known["tail"]
        )
        group, batch = known["group"], known["batch"]
        steps, trained = told["steps"], told["samples_trained"] * 0.8
        ends = 2 * known["slots"] * known["tail"] / trained + 0.02
        bound = 2 * (group - 1) / batch + ends * generating
        assert abs(told["in_generation"] - generating) <= bound, seed
        noise = 4 * np.sqrt(known["rho"] * group / batch / (0.8 * steps))
        assert abs(told["in_queue"] - queueing) <= group / batch + noise, seed
        took = found.steps["end_time"][0] - found.steps["start_time"][0]
        period = took / min(1.0, known["rho"])
        # The mean of as many lengths as were trained, of standard deviation <= mean,
        # and the slots' samples at both ends.
        error = 4 / np.sqrt(trained) + ends + group / batch / (0.8 * steps)
        assert told["seconds_per_step"] == pytest.approx(period, rel=error), seed


def _under_way(found: Any) -> np.ndarray:
    """Returns the samples between start and readiness at each update."""
    samples, updates = found.samples, found.steps["end_time"]
    updates = updates[np.isfinite(updates)]
    ready = np.where(np.isnan(samples["ready_time"]), np.inf, samples["ready_time"])
    begun = np.searchsorted(np.sort(samples["start_time"]), updates)
    done = np.searchsorted(np.sort(ready), updates)
    return begun - done


def test_versions_in_generation_are_the_samples_under_way_at_updates() -> None:
    """The identity behind the closed form, to the last sample."""
    world = random_setting(3)
    found = play(world, 3)
    samples = found.samples
    updates = found.steps["end_time"][np.isfinite(found.steps["end_time"])]
    ready = np.isfinite(samples["ready_time"])
    passed = samples["ready_version"] - samples["start_version"]
    open_ones = np.searchsorted(updates, samples["start_time"][~ready])
    whole = passed[ready].sum() + (updates.size - open_ones).sum()
    assert whole == _under_way(found).sum()


def test_groups_of_one_have_exactly_the_slots_under_way() -> None:
    world = made(
        generation={"slots": 32, "tokens": LAWS[0]},
        trainer={"samples": 8, "step": {"law": "expon", "scale": 1.0}},
        stop={"steps": 500},
    )
    assert {*_under_way(play(world, 1)).tolist()} == {32}


def test_a_queue_of_one_batch_holds_samples_for_one_version_or_none() -> None:
    """One, unless the trainer waits; published 1/(2 rho) + 1/2 halves a whole step."""
    for scale in (10.5, 15, 30, 60):
        world = made(
            generation={"slots": 64, "tokens": LAWS[1]},
            queue={"capacity": 1},
            trainer={"samples": 64, "step": {"law": "constant", "value": scale}},
            stop={"steps": 200},
        )
        found, rho = play(world, 2), workload(world, 2)["rho"]
        told = measured(world, 2, found)
        assert fluid_in_queue(1, rho) == 1
        step = found.samples["step"]
        counted = step > found.steps["end_time"].size // 5
        before = found.steps["end_time"][step[counted] - 2]
        waited = found.samples["ready_time"][counted] <= before
        assert told["in_queue"] == pytest.approx(waited.mean(), abs=1e-12)
        assert (told["in_queue"] == 1) == (rho > 1.4)
        assert (rollout_staleness(64, 64, 1, rho, 1)[1] < 0.86) == (rho > 1.4)


@pytest.mark.parametrize(("capacity", "rho"), [(2, 1.5), (2, 2.5), (3, 1.7), (4, 3.0)])
def test_a_steady_flow_waits_as_long_as_a_fluid(capacity: int, rho: float) -> None:
    """Constant lengths, staggered: a flow but for one sample in B."""
    slots = batch = 200
    world = made(
        generation={
            "slots": slots,
            "tokens": {"law": "gamma", "a": 400, "scale": 2.5},
            "seconds_per_token": 0.01,
        },
        queue={"capacity": capacity},
        trainer={"samples": batch, "step": {"law": "constant", "value": 10 * rho}},
        stop={"steps": 100},
    )
    told = measured(world, 4, play(world, 4))
    # Ends of slots fluctuate: the flow of B samples by sqrt(B)/20 of them with lengths
    # that vary by 5 %, a few in a hundred of a version where an edge is crossed.
    assert told["in_queue"] == pytest.approx(fluid_in_queue(capacity, rho), abs=0.06)


def test_one_slot_and_batches_of_one_are_serial() -> None:
    world = made(
        generation={"slots": 1, "tokens": LAWS[0], "max_async_level": 0},
        trainer={"samples": 1, "step": {"law": "expon", "scale": 5}},
        stop={"steps": 300},
    )
    found = play(world, 5)
    samples, steps = found.samples, found.steps
    assert (samples["step"] - 1 == samples["start_version"]).all()
    assert (samples["start_time"][1:] == steps["end_time"][:-1]).all()
    assert (steps["start_time"] == samples["finish_time"]).all()


def test_an_infinite_trainer_never_lets_groups_wait() -> None:
    world = made(
        generation={"slots": 16, "group": 4, "tokens": LAWS[2]},
        trainer={"samples": 4},
        stop={"steps": 500},
    )
    found = play(world, 6)
    trained = found.samples["outcome"] == SampleOutcome.TRAINED
    assert (found.samples["step"] - 1 == found.samples["ready_version"])[trained].all()
    assert measured(world, 6, found)["in_queue"] == 0


BUFFERED = """\
name: limit
clients: {number: 6, compute: {law: gamma, a: 2}}
protocol: {kind: buffered, size: 3}
stop: {commits: 150}
"""


def test_groups_of_one_and_an_instant_trainer_are_buffered_asynchrony(
    tmp_path: Any,
) -> None:
    """Clients are slots, jobs are samples: each has the same staleness."""
    file = tmp_path / "limit.yaml"
    file.write_text(BUFFERED, encoding="utf-8")
    (run,) = expand(read_any(file))
    chunks = list(timeline(run).chunks(10_000))
    jobs = {
        name: np.concatenate([getattr(chunk.jobs, name) for chunk in chunks])
        for name in ("client", "read_time", "arrived_time", "commit", "read_version")
    }
    order = np.lexsort((jobs["client"], jobs["read_time"]))
    jobs = {name: values[order] for name, values in jobs.items()}
    took = np.nan_to_num(jobs["arrived_time"] - jobs["read_time"], nan=1e6)
    world = made(
        generation={"slots": 6, "tokens": LAWS[0], "seconds_per_token": 1},
        queue={"capacity": 1},
        trainer={"samples": 3},
        stop={"steps": 150},
    )

    class OfClients(RolloutDraws):
        def length(self, prompt: int, member: int, attempt: int) -> float:
            del member, attempt
            return float(took[prompt]) if prompt < took.size else 1e6

    found = RolloutEvents(world, OfClients(world, 0)).play().samples
    size = min(took.size, found["group"].size)
    applied = (
        jobs["arrived_time"][:size] <= jobs["arrived_time"][jobs["commit"] == 150].max()
    )
    theirs = (jobs["commit"] - 1 - jobs["read_version"])[:size][applied]
    mine = (found["step"] - 1 - found["start_version"])[:size][applied]
    assert applied.sum() > 400
    np.testing.assert_array_equal(mine, theirs)


def test_scenarios_of_samples_are_no_studies() -> None:
    from stalesim.simulator.parts.errors import ScenarioError

    with pytest.raises(ScenarioError, match="stalesim timeline"):
        loads("name: a\ngeneration: {slots: 1}\n", "a.yaml")
