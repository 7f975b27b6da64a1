"""FADAS, THROTTLE, ATA, Picky SGD and others against their blind twins."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import jax
import numpy as np
import pytest

from stalesim.simulator.scenario.study import merge
from stalesim.simulator.timeline import NO_SAMPLE
from tests.reference import collecting_twin as collecting
from tests.reference import later_methods_twin as later
from tests.reference import methods_twin as twin
from tests.reference.methods_support import (
    SEED,
    STEP,
    Case,
    assert_engines_agree,
    assert_like_twin,
    assert_players_agree,
    tree_of,
)
from tests.runs import execute, prepared


def moved(world: twin.World) -> twin.World:
    """Returns a world whose clients send what they moved by a step."""
    return replace(world, gradient=lambda i, j, x: STEP * world.gradient(i, j, x))


def in_steps(world: twin.World, steps: Sequence[int]) -> twin.World:
    """Returns a world whose jobs take the sum of their local steps' durations."""

    def duration(i: int, j: int) -> float:
        each = range(j * steps[i], (j + 1) * steps[i])
        return float(np.sum([world.duration(i, step) for step in each]))

    return replace(world, duration=duration)


NO_BIAS = {"bias_correction_mu": False, "bias_correction_nu": False}
DELAYED = {"kind": "delayed_nesterov", "decay": 0.8}
METHODS: dict[str, Case] = {
    "FADAS": (
        {"kind": "buffered", "size": 2},
        {
            "kind": "fed_buff",
            "weight": {"kind": "constant"},
            "optimizer": {"kind": "amsgrad", "learning_rate": 0.4, "b2": 0.9} | NO_BIAS,
            "staleness_threshold": 2,
        },
        lambda w: later.fadas(moved(w), 2, 0.4, 2, (0.9, 0.9), 1e-8),
    ),
    "weighted signs": (
        {},
        {
            "step_size": 1,
            "weight": {"kind": "polynomial", "exponent": 1.5},
            "optimizer": {"kind": "sign_sgd", "learning_rate": 0.1},
        },
        lambda w: later.weighted_directions(w, 1, 0.1, 1.5),
    ),
    "weighted buffers": (
        {"kind": "buffered", "size": 3},
        {
            "kind": "fed_buff",
            "weight": {"kind": "polynomial", "exponent": 2},
            "optimizer": {"kind": "rmsprop", "learning_rate": 0.1},
        },
        lambda w: later.weighted_directions(moved(w), 3, 0.1, 2, 0.9),
    ),
    "THROTTLE": (
        {"restarts": True},
        {"weight": {"kind": "repeats", "base": 2}, "step_size": 5 * STEP},
        lambda w: later.throttle(w, 2, 5 * STEP),
    ),
    "mini-batches by start": (
        {"kind": "collect", "count": 4, "filter": "start"},
        {},
        lambda w: later.batches_by_start(w, 4, STEP),
    ),
    "ATA": (
        {"kind": "collect", "allotment": {"jobs": 8, "spread": 0.05}},
        {},
        lambda w: later.ata(w, 8, 0.05, STEP),
    ),
    "Picky": (
        {},
        {"weight": {"kind": "distance", "largest": 0.2}},
        lambda w: later.picky(w, STEP, 0.2),
    ),
    "delayed Nesterov": (
        {},
        {"optimizer": DELAYED | {"period": 3, "spread": 0.2}},
        lambda w: later.diloco(w, 3, 0.8, STEP, 0.2),
    ),
    "look-ahead": (
        {},
        {"optimizer": DELAYED | {"period": 2, "look_ahead": True}},
        lambda w: later.diloco(w, 2, 0.8, STEP, look_ahead=True),
    ),
    "grace": (
        {"kind": "buffered", "grace": 0.4},
        {"optimizer": DELAYED | {"period": 2}},
        lambda w: later.diloco(w, 2, 0.8, STEP, grace_s=0.4),
    ),
    "DyLU": (
        {},
        {"local_steps": 4, "speeds": "1 / m", "optimizer": DELAYED | {"period": 2}},
        lambda w: later.diloco(in_steps(w, (4, 2, 1, 1, 1)), 2, 0.8, STEP),
    ),
}
SLOW_LINKS = {"download": {"latency": {"law": "expon", "scale": "2 / m"}}}
CHANGES: dict[str, Any] = {
    "mini-batches by start": {"clients": SLOW_LINKS},
    "DyLU": {"clients": {"compute_per": "step"}},
}
BY_ARRAYS = (
    "FADAS",
    "weighted signs",
    "weighted buffers",
    "Picky",
    "delayed Nesterov",
    "look-ahead",
    "DyLU",
)
OTHER_STEPS = {
    name: {"algorithm": {"optimizer": {"learning_rate": 0.2}}}
    for name in ("FADAS", "weighted signs", "weighted buffers")
}


@pytest.mark.parametrize("name", METHODS)
def test_events_and_models_are_those_of_the_twin(name: str) -> None:
    assert_like_twin(METHODS[name], commits=40, **CHANGES.get(name, {}))


@pytest.mark.parametrize("name", METHODS)
def test_arrays_make_what_simpy_plays(name: str) -> None:
    case, changes = METHODS[name], CHANGES.get(name, {})
    assert_players_agree(case, in_arrays=name in BY_ARRAYS, **changes)


@pytest.mark.long
@pytest.mark.parametrize("mode", ["stepwise", "batched", "shared"])
@pytest.mark.parametrize("name", METHODS)
def test_engines_agree(name: str, mode: str) -> None:
    other_step = OTHER_STEPS.get(name, {"algorithm": {"step_size": 0.03}})
    assert_engines_agree(METHODS[name], mode, other_step, **CHANGES.get(name, {}))


@pytest.mark.parametrize("q", [1.0, 1e60])
def test_the_limits_of_throttle(q: float) -> None:
    """A huge base makes a round one synchronous step; with 1 nothing is discounted."""
    centre = np.array([[0.0], [3.0], [-1.0]])
    world = twin.World(
        num_clients=3,
        duration=lambda i, j: (1.0, 2.7, 3.1)[i],
        gradient=lambda i, j, x: x - centre[i],
        start=np.array([5.0]),
        num_commits=18,
    )
    found = later.throttle(world, q, 0.3)
    ends = [c for c in found.commits if c.time_s % 3.1 < 1e-9 or c.time_s % 3.1 > 3.09]
    if q > 1:
        wanted = collecting.m_synchronous(
            replace(world, num_commits=4), 3, 0.3, stops=True
        )
        assert len(ends) > 2
        for mine, other in zip(ends, wanted.commits, strict=False):
            np.testing.assert_allclose(mine.x, other.x, rtol=1e-12)
        return
    steps = np.diff([world.start[0], *(c.x[0] for c in found.commits)])
    models = [world.start, *(c.x for c in found.commits)]
    for step, commit in zip(steps, found.commits, strict=True):
        (source,) = commit.entered
        gradient = models[source.read_version] - centre[source.client]
        np.testing.assert_allclose(step, -0.1 * gradient[0], rtol=1e-12)


def test_picky_ignores_some_and_applies_others() -> None:
    memory, _ = assert_like_twin(METHODS["Picky"], commits=40)
    weights = memory.column("commits", "weight")
    assert set(weights.tolist()) == {0.0, 1.0}


def test_fadas_makes_shorter_steps_only_of_stale_buffers() -> None:
    """The step is 0.4 up to a staleness of 2, and at most 1 / staleness beyond."""
    memory, found = assert_like_twin(METHODS["FADAS"], commits=40)
    oldest = [
        max(commit.version - 1 - source.read_version for source in commit.entered)
        for commit in found.commits
    ]
    wanted = [0.4 if tau <= 2 else min(0.4, 1 / tau) for tau in oldest]
    assert 0.4 in wanted
    assert min(wanted) < 0.3
    steps = memory.column("commits", "step_size")[1::2]  # every second row commits
    assert steps.tolist() == pytest.approx(wanted)


def test_simultaneous_arrivals_are_one_outer_step_of_nesterov() -> None:
    """Equal speeds: a period of grace makes the rounds of synchronous DiLoCo."""
    same = {"clients": {"compute": {"law": "constant", "value": 1}}}
    nesterov = {"kind": "sgd", "learning_rate": STEP, "momentum": 0.8, "nesterov": True}
    common = {"local_steps": 3, "local_step_size": 0.05}
    grace: Case = (
        {"kind": "buffered", "grace": 0},
        {"optimizer": DELAYED | {"period": 1}, **common},
        lambda w: later.diloco(w, 1, 0.8, STEP, grace_s=0.0),
    )
    waits: Case = (
        {"kind": "synchronous"},
        {"optimizer": nesterov, "step_size": 1, **common},
        grace[2],
    )
    found = []
    with jax.enable_x64(True):
        for case in (grace, waits):
            tree = merge(tree_of(case), {"stop": {"commits": 12}} | same)
            found.append(execute([prepared(tree, seed=SEED)])[0])
    one, other = (memory.column("evaluations", "objective") for memory in found)
    assert one.size == 13
    # The numbers of optax's update are of single precision.
    np.testing.assert_allclose(one, other, rtol=1e-5)


def test_arrivals_one_by_one_are_that_step_as_well() -> None:
    """A period of all clients, each of which has read the same model."""
    centre = np.array([[0.0, 1.0], [3.0, -2.0], [-1.0, 0.5]])
    world = twin.World(
        num_clients=3,
        duration=lambda i, j: 1.0 if j == 0 else 100.0,
        gradient=lambda i, j, x: x - centre[i],
        start=np.array([5.0, 4.0]),
        num_commits=3,
    )
    (wanted,) = later.outer_nesterov(
        world.start, [[world.start - each for each in centre]], 0.8, 0.3
    )
    found = later.diloco(world, 3, 0.8, 0.3)
    np.testing.assert_allclose(found.x, wanted, rtol=1e-12)
    together = later.diloco(replace(world, num_commits=1), 1, 0.8, 0.3, grace_s=0.5)
    np.testing.assert_allclose(together.x, wanted, rtol=1e-12)


def test_faster_clients_make_more_local_steps_in_the_same_time() -> None:
    """H_w = floor(v_w / v_ref H), with H = 4 and speeds of 1, 1/2, ... 1/5."""
    changes = {"stop": {"commits": 20}} | CHANGES["DyLU"]
    run = prepared(merge(tree_of(METHODS["DyLU"]), changes), seed=SEED)
    assert run.sampler.own_steps is not None
    assert run.sampler.own_steps.tolist() == [4, 2, 1, 1, 1]
    for client, steps in enumerate([4, 2, 1, 1, 1]):
        ids = run.sampler.batch(client, 3).reshape(4, 2)
        there = (ids != NO_SAMPLE).all(axis=1)
        assert there.tolist() == [place < steps for place in range(4)]
