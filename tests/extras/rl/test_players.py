"""Worlds of samples: exact orders, the slow twin, and what is conserved."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from stalesim.simulator.extras.rl.world import RolloutDraws, play
from stalesim.simulator.extras.rl.world.events import RolloutEvents
from stalesim.simulator.extras.rl.world.measures import measured
from stalesim.simulator.extras.rl.world.record import Rollouts, SampleOutcome
from stalesim.simulator.parts.errors import ScenarioError
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


@pytest.mark.parametrize("why", ["abort", "again"])
def test_samples_that_are_made_again_keep_their_lengths(why: str) -> None:
    tree: dict[str, Any] = {
        "generation": {
            "slots": 12,
            "tokens": {"law": "lognorm", "s": 0.8, "scale": 100},
            "seconds_per_token": 0.01,
        },
        "trainer": {"samples": 8, "step": ONE},
        "stop": {"steps": 100},
    }
    if why == "abort":
        tree["weights"] = {"mode": "abort"}
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


@pytest.mark.parametrize(
    ("dropped", "outcomes", "steps", "sizes", "end"),
    [
        ("lost", "TTDDTT", [1, 1, 0, 0, 2, 2], [2, 2, 2], 6),
        ("masked", "TTMTTT", [1, 1, 3, 3, 2, 2], [2, 2, 2], 5),
        ("withheld", "TTMTTT", [1, 1, 3, 3, 2, 2], [2, 2, 3], 6),
    ],
)
def test_what_is_too_old_is_dropped_masked_or_withheld(
    dropped: str, outcomes: str, steps: list[int], sizes: list[int], end: float
) -> None:
    """Pairs on two slots, and steps that take no time.

    Of the second pair sample 2 begins at 1 s with version 0, and 3 at 2 s with version
    1. It is ready at 5 s, after the third pair has made version 2: 2 is too old by one
    version. Masked it makes a batch with 3 at once. Withheld it does not: 3 waits for
    the fourth pair, of 6 s, in a batch of three.
    """
    found = by_hand(
        [1, 2, 4, 1, 1, 0.5, 1, 1],
        generation={"group": 2},
        trainer={"step": {"law": "constant", "value": 0}},
        queue={"max_age": 1, "dropped": dropped},
        stop={"steps": 3},
    )
    fates = [SampleOutcome(fate).name[0] for fate in column(found, "outcome", 6)]
    assert "".join(fates) == outcomes
    assert column(found, "step", 6) == steps
    assert found.steps["samples"].tolist() == sizes
    assert found.end_time == end


@pytest.mark.parametrize(
    ("queue", "message"),
    [
        ({"dropped": "masked"}, "queue.max_age must be set with dropped: masked"),
        (
            {"dropped": "withheld", "max_age": 1, "capacity": 1, "full": "wait"},
            "queue.full must be drop_oldest with dropped: withheld",
        ),
    ],
)
def test_groups_are_kept_only_where_that_can_be(
    queue: dict[str, Any], message: str
) -> None:
    with pytest.raises(ScenarioError, match=message):
        by_hand([1], queue=queue)


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
