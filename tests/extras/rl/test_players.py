"""Worlds of samples: exact orders, the slow twin, and what is conserved."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from stalesim.simulator.config.errors import ScenarioError
from stalesim.simulator.extras.rl.world import RolloutDraws, play
from stalesim.simulator.extras.rl.world.events import RolloutEvents
from stalesim.simulator.extras.rl.world.measures import ages, measured
from stalesim.simulator.extras.rl.world.record import Rollouts, SampleOutcome
from tests.extras.rl.random_rollouts import (
    assert_as_twin,
    assert_conserves,
    assert_same,
    made,
    random_world,
)

pytestmark = pytest.mark.costly

ONE: dict[str, Any] = {"law": "constant", "value": 1}


class Given(RolloutDraws):
    """Draws with given lengths; of samples that are begun again they are 1."""

    def __init__(self, world: Any, lengths: Sequence[float]) -> None:
        super().__init__(world, 0)
        self.given = lengths

    def length(self, prompt: int, member: int, attempt: int) -> float:
        place = prompt * self._group + member
        return self.given[place] if not attempt and place < len(self.given) else 1.0


def by_hand(lengths: Sequence[float], **changes: Any) -> Rollouts:
    """Plays two slots, batches of two and steps of 1 s, with given lengths."""
    tree: dict[str, Any] = {
        "generation": {"slots": 2, "tokens": ONE, "seconds_per_token": 1},
        "trainer": {"samples": 2, "step": ONE},
        "stop": {"steps": 2},
    }
    for key, entries in changes.items():
        tree[key] = {**tree.get(key, {}), **entries}
    world = made(**tree)
    return RolloutEvents(world, Given(world, lengths)).play()


def column(found: Rollouts, name: str, size: int) -> list[Any]:
    return found.samples[name][:size].tolist()


def test_samples_queue_and_train_in_this_order() -> None:
    # Samples 0 and 1 fill the first batch at 3 s. At 4 s its step ends, before sample 3
    # does; 4 begins with version 1. At 6 s sample 2 ends before 4, which began later.
    found = by_hand([2, 3, 4, 1, 2])
    assert column(found, "start_time", 6) == [0, 0, 2, 3, 4, 6]
    assert column(found, "finish_time", 5) == [2, 3, 6, 4, 6]
    assert column(found, "start_version", 6) == [0, 0, 0, 0, 1, 1]
    assert column(found, "ready_version", 5) == [0, 0, 1, 1, 1]
    assert column(found, "step", 5) == [1, 1, 2, 2, 3 if found.end_time > 7 else 0]
    assert found.steps["start_time"].tolist() == [3, 6]
    assert found.steps["end_time"].tolist() == [4, 7]
    assert (found.end_time, found.stop) == (7, "steps")


def test_an_update_that_aborts_begins_samples_again_as_long_as_they_were() -> None:
    found = by_hand([2, 3, 4, 9], weights={"mode": "abort"})
    # At 4 s samples 2 (2 of 4 tokens) and 3 (1 of 9) are stopped, and begun again.
    assert (
        column(found, "outcome", 4)
        == [SampleOutcome.TRAINED] * 2 + [SampleOutcome.ABORTED] * 2
    )
    assert column(found, "tokens", 4) == [2, 3, 2, 1]
    assert found.samples["attempt"][4:6].tolist() == [1, 1]
    assert found.samples["start_version"][4:6].tolist() == [1, 1]
    assert found.samples["start_time"][4:6].tolist() == [4, 4]
    # Sample 2 is ready at 8 s, and the next one, of 1 token, at 9 s.
    assert found.steps["start_time"].tolist() == [3, 9]
    redrawn = by_hand(
        [2, 3, 4, 9], weights={"mode": "abort"}, generation={"retry_length": "redrawn"}
    )
    assert redrawn.steps["start_time"].tolist() == [3, 5]


@pytest.mark.parametrize("why", ["abort", "failures", "again"])
def test_samples_that_are_made_again_keep_their_lengths(why: str) -> None:
    tree: dict[str, Any] = {
        "generation": {
            "slots": 12,
            "tokens": {"law": "lognorm", "s": 0.8, "scale": 100},
            "seconds_per_token": 0.01,
        },
        "trainer": {"samples": 8, "step": ONE},
        "stop": {"steps": 200},
    }
    if why == "abort":
        tree["weights"] = {"mode": "abort"}
    elif why == "failures":
        up, down = {"law": "expon", "scale": 2}, {"law": "expon", "scale": 1}
        tree["generation"] |= {"failures": {"after": up, "down": down}}
    else:
        tree["queue"] = {"max_age": 1, "dropped": "again"}
    bias = {}
    for how in ("kept", "redrawn"):
        tree["generation"]["retry_length"] = how
        world = made(**tree)
        draws, found = RolloutDraws(world, 2), play(world, 2)
        samples = found.samples
        trained = samples["outcome"] == SampleOutcome.TRAINED
        assert (samples["attempt"][trained] > 0).any()
        keys = zip(samples["prompt"], samples["member"], strict=True)
        drawn = np.array([draws.length(int(p), int(m), 0) for p, m in keys])
        same = samples["tokens"][trained] == drawn[trained]
        assert same.all() == (how == "kept")
        told = measured(world, 2, found)
        bias[how] = told["tokens_trained"] / told["tokens_drawn"] - 1
    assert bias["redrawn"] < bias["kept"] <= 0.02


def test_an_update_that_waits_lets_samples_end_first() -> None:
    found = by_hand(
        [2, 3, 4, 1, 9],
        weights={"mode": "wait", "seconds": ONE},
        stop={"steps": 3},
    )
    # From 4 s on nothing begins; sample 2 ends at 6 s, and loading takes until 7 s. The
    # second step has just ended then: its weights are loaded before anything begins.
    assert column(found, "start_time", 5) == [0, 0, 2, 3, 8]
    assert found.loads["time"].tolist()[:3] == [0, 7, 8]
    assert found.samples["start_version"][4] == 2
    assert found.slot_seconds["paused"] == 0


def test_an_update_that_retracts_computes_again_what_samples_have() -> None:
    found = by_hand(
        [2, 3, 4, 9], weights={"mode": "retract", "seconds": ONE, "recompute": 0.5}
    )
    # Sample 2 has 2 of 4 tokens at 4 s; loading takes 1 s, computing them again 1 s.
    # Sample 3 has 1 token. The first ends at 4 + 1 + 1 + 2 = 8 s.
    assert found.samples["finish_time"][2] == 8
    pieces = {
        (int(sample), int(version)): tokens
        for sample, version, tokens in zip(*found.pieces.values(), strict=True)
    }
    assert pieces[2, 0] == 2
    assert pieces[2, 1] == 2
    assert found.slot_seconds["paused"] == 2


def test_an_update_in_place_pauses_samples_and_divides_their_tokens() -> None:
    found = by_hand(
        [2, 3, 4, 1, 1], weights={"seconds": {"law": "constant", "value": 2}}
    )
    # From 4 to 6 s nothing is made, and sample 3 ends at 6 s: it was due at 4 s.
    assert found.samples["finish_time"][3:5].tolist() == [6, 7]
    assert found.samples["tokens"][2] == 4
    of_ages = ages(found)
    # The first step trains 5 tokens of its own version; the second one trains sample 3
    # (1 token of version 0) and 4 (1 token of version 1).
    assert measured_tokens(of_ages) == {0: 5 + 1, 1: 1}


def measured_tokens(of_ages: dict[str, np.ndarray]) -> dict[int, float]:
    pairs = zip(of_ages["staleness"].tolist(), of_ages["tokens"].tolist(), strict=True)
    return {age: tokens for age, tokens in pairs if tokens}


def test_groups_enter_when_their_last_sample_is_finished() -> None:
    found = by_hand([1, 4, 1, 1, 1], generation={"group": 2})
    assert column(found, "ready_time", 4) == [4, 4, 3, 3]
    assert column(found, "step", 4) == [2, 2, 1, 1]
    partial = by_hand([1, 4, 1, 1, 1], generation={"group": 2, "complete": False})
    assert column(partial, "ready_time", 4) == [1, 4, 2, 3]
    assert column(partial, "step", 4) == [1, 2, 1, 2]


def test_the_freshest_are_of_the_newest_version() -> None:
    # Steps of 10 s on one sample each, from 1 s on: at 21 s there are samples that
    # began with version 1 after 11 s, and many older ones.
    trainer = {"samples": 1, "step": {"law": "constant", "value": 10}}
    stop = {"steps": 3}
    ready, fresh = (
        by_hand([1.0] * 50, queue={"order": order}, trainer=trainer, stop=stop)
        for order in ("ready_first", "freshest")
    )
    for found, rows, version in ((ready, [0, 1, 2], 0), (fresh, [0, 1, 22], 1)):
        assert [
            int(np.flatnonzero(found.samples["step"] == n)[0]) for n in (1, 2, 3)
        ] == rows
        assert found.samples["start_version"][rows[-1]] == version


def test_weight_fifo_waits_for_the_oldest_version() -> None:
    # Samples 1 to 4 end while 0 is under way: the batch of version 0 is 1 and 2, but
    # those of version 1 wait for 0, which ends at 20 s, and for its batch.
    lengths = [20.0] + [1.0] * 40
    stop = {"steps": 4}
    found = by_hand(lengths, queue={"order": "weight_fifo"}, stop=stop)
    versions = found.samples["start_version"][found.samples["step"] > 0]
    begun = found.steps["start_time"]
    assert begun[0] == 2
    by_step = [
        found.samples["start_version"][found.samples["step"] == number].tolist()
        for number in range(1, 5)
    ]
    assert by_step[0] == [0, 0]
    assert max(by_step[1]) == 0 or begun[1] >= 20
    assert versions.size == 8


def test_in_order_waits_for_the_slow_sample_and_ready_first_does_not() -> None:
    lengths = [8, 1, 1, 1, 1, 1, 1, 1, 1]
    ready, ordered = (
        by_hand(lengths, queue={"order": order})
        for order in ("ready_first", "in_order")
    )
    assert ready.steps["start_time"][0] == 2
    assert ordered.steps["start_time"][0] == 8
    assert column(ordered, "step", 4) == [1, 1, 2, 2]


def test_pacing_lets_starts_lead_by_so_many_batches() -> None:
    found = by_hand([1, 1, 1, 1, 1, 1], generation={"max_async_level": 0})
    # Synchronous: the next two begin when the step of 1 s has ended.
    assert column(found, "start_time", 4) == [0, 0, 2, 2]
    assert found.steps["start_time"].tolist() == [1, 3]
    ahead = by_hand([1, 1, 1, 1, 1, 1], generation={"max_async_level": 1})
    assert column(ahead, "start_time", 6) == [0, 0, 1, 1, 2, 2]


def test_a_full_queue_drops_the_oldest_or_holds_the_slot() -> None:
    slow = {"step": {"law": "constant", "value": 10}}
    lengths = [1.0] * 40
    dropped = by_hand(lengths, queue={"capacity": 1}, trainer=slow)
    fates = dropped.samples["outcome"]
    # The first batch is taken at 1 s; when it is trained at 11 s two are there.
    assert np.flatnonzero(dropped.samples["step"] == 2).tolist() == [18, 19]
    assert (fates[2:18] == SampleOutcome.DROPPED).all()
    held = by_hand(lengths, queue={"capacity": 1, "full": "wait"}, trainer=slow)
    assert held.samples["group"].size == 8  # two in training, queue, slots, and begun
    assert not (held.samples["outcome"] == SampleOutcome.DROPPED).any()
    assert held.slot_seconds["blocked"] == pytest.approx(2 * 8 + 2 * 9)


def test_too_old_samples_are_dropped_and_perhaps_made_again() -> None:
    lengths = [20, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1]
    stop = {"steps": 12}
    lost = by_hand(lengths, queue={"max_age": 3}, stop=stop)
    assert lost.samples["outcome"][0] == SampleOutcome.DROPPED
    again = by_hand(lengths, queue={"max_age": 3, "dropped": "again"}, stop=stop)
    (row,) = np.flatnonzero(again.samples["attempt"] == 1)
    assert again.samples["prompt"][row] == 0
    assert again.samples["start_time"][row] == 20


def test_busy_slots_set_the_speed_of_all() -> None:
    # Alone a token takes 1 s, for two 2 s: 1 ends at 2 s, and 0 has 3 tokens left.
    found = by_hand(
        [4, 1],
        generation={"seconds_per_token": "m", "max_async_level": 0},
        stop={"steps": 1},
    )
    assert column(found, "finish_time", 2) == [5, 2]
    table = by_hand(
        [4, 1],
        generation={"seconds_per_token": {1: 1.0, 2: 2.0}, "max_async_level": 0},
        stop={"steps": 1},
    )
    assert_same(found, table)


def test_lengths_are_cut_off_and_share_a_difficulty() -> None:
    world = made(
        generation={
            "slots": 4,
            "group": 4,
            "tokens": {"law": "expon", "scale": 100},
            "difficulty": {"law": "lognorm", "s": 1.0},
            "most_tokens": 250,
        },
        trainer={"samples": 4},
        stop={"steps": 1},
    )
    lengths = RolloutDraws(world, 1).lengths(40_000).reshape(-1, 4)
    assert lengths.max() == 250
    one, other = np.log(lengths[:, 0]), np.log(lengths[:, 1])
    # Logarithms of exponentials have variance pi^2/6, those of the factor 1: without
    # the cut they correlate by 1 / (1 + pi^2 / 6) = 0.378, and with it by less.
    assert 0.2 < np.corrcoef(one, other)[0, 1] < 0.378
    draws = RolloutDraws(world, 1)
    assert [draws.length(0, member, 0) for member in range(4)] == lengths[0].tolist()
    assert draws.length(0, 0, 1) != draws.length(0, 0, 0)


@pytest.mark.parametrize("block", range(6))
def test_events_are_those_of_the_slow_twin(block: int) -> None:
    for seed in range(20 * block, 20 * block + 20):
        world = random_world(seed)
        assert_conserves(world, assert_as_twin(world, seed))


@pytest.mark.parametrize("block", range(3))
def test_three_hundred_worlds_go_on_and_conserve_samples(block: int) -> None:
    for seed in range(1000 + 100 * block, 1100 + 100 * block):
        world = random_world(seed)
        assert_conserves(world, play(world, seed))


@pytest.mark.parametrize("step", [0, 0.5, 1, 3])
@pytest.mark.parametrize("group", [1, 2])
@pytest.mark.parametrize(
    "order", ["ready_first", "freshest", "in_order", "weight_fifo"]
)
def test_events_are_those_of_the_twin_where_all_coincides(
    step: float, group: int, order: str
) -> None:
    world = made(
        generation={
            "slots": 4,
            "group": group,
            "tokens": {"law": "randint", "low": 1, "high": 3},
            "seconds_per_token": 0.5,
        },
        queue={"order": order},
        trainer={"samples": 2, "step": {"law": "constant", "value": step}},
        stop={"time": 30},
    )
    assert_as_twin(world, 3)


def test_a_world_that_stands_still_is_told() -> None:
    world = made(
        generation={"slots": 2, "tokens": ONE, "max_async_level": 0},
        trainer={"samples": 2},
        stop={"steps": 3},
    )
    events = RolloutEvents(world, RolloutDraws(world, 0))
    events._admitted = 10**9  # a fault that no options have
    with pytest.raises(ScenarioError, match="stands still at 0 virtual s"):
        events.play()


def test_a_world_whose_samples_never_end_between_failures_is_told() -> None:
    down = {"law": "constant", "value": 0.5}
    failures = {"after": {"law": "constant", "value": 5}, "down": down}
    says = r"2,001 failures of them since step 0; .* retry_length: redrawn"
    with pytest.raises(ScenarioError, match=says):
        by_hand([2, 6, 7, 6], generation={"failures": failures})


def test_measures_of_a_world_by_hand() -> None:
    found = by_hand([2, 3, 4, 1, 2], stop={"steps": 2})
    world = made(
        generation={"slots": 2, "tokens": ONE, "seconds_per_token": 1},
        trainer={"samples": 2, "step": ONE, "optimizer_steps": 2},
        stop={"steps": 2},
    )
    told = measured(world, 0, found)
    # Samples 0 and 1 are fresh; 3 and 2 began with version 0 and are trained on 1, and
    # were ready after the first step.
    assert told["staleness_mean"] == 0.5
    assert (told["in_generation"], told["in_queue"]) == (0.5, 0.0)
    assert told["optimizer_steps_mean"] == 0.5 * 2 + 0.5
    # Of the second step's 5 tokens, sample 2 made 2 with each version and 3 one with 0.
    assert told["token_staleness_mean"] == pytest.approx(3 / 10)
    assert told["trainer_idle"] == pytest.approx(5 / 7)
    assert told["slots_idle"] == pytest.approx(0)
    assert told["tokens_trained"] == 10 / 4
    assert math.isnan(told["seconds_per_step"]) or told["seconds_per_step"] == 3


def test_staleness_leaves_the_start_out_and_shares_do_not() -> None:
    """As docs/extras/rl.md and a report say, by the record alone."""
    world = made(
        generation={"slots": 16, "group": 4, "tokens": {"law": "lognorm", "s": 1}},
        queue={"max_age": 2, "dropped": "again"},
        trainer={"samples": 16, "step": {"law": "constant", "value": 2}},
        stop={"steps": 50},
    )
    found = play(world, 3)
    told, samples = measured(world, 3, found), found.samples
    trained = samples["outcome"] == SampleOutcome.TRAINED
    late = trained & (samples["step"] > 10)
    assert late.sum() < trained.sum()
    age = samples["step"] - 1 - samples["start_version"]
    assert told["staleness_mean"] == pytest.approx(age[late].mean())
    assert told["tokens_trained"] == pytest.approx(samples["tokens"][trained].mean())
    assert told["samples_trained"] == trained.sum()
    ends = found.steps["end_time"]
    assert told["seconds_per_step"] == pytest.approx((ends[-1] - ends[10]) / 39)
    busy = (np.fmin(ends, found.end_time) - found.steps["start_time"]).sum()
    assert told["trainer_idle"] == pytest.approx(1 - busy / found.end_time)
