"""Methods with a server against blind NumPy twins: events, and numbers.

Events are compared with `events_twin`, numbers with `server_twin` on the events of the
run.
"""

from collections.abc import Callable
from typing import Any

import jax
import numpy as np
import pytest

from stalesim.simulator.catalogue.protocols.routed import routed
from stalesim.simulator.engine.of_run import timeline
from stalesim.simulator.files.timeline import NO_SAMPLE
from stalesim.simulator.scenario.study import Run
from stalesim.simulator.timelines.simulated import SimulatedTimeline
from stalesim.simulator.world.streams import Streams
from tests.reference import events_twin as events
from tests.reference.methods_support import (
    BASE,
    SEED,
    STEP,
    K,
    Tolerance,
    assert_events_alike,
    assert_like_twin,
    tree_of,
)
from tests.runs import execute, prepared
from tests.support import SGD, merge, scenario
from tests.unit.timelines.random_worlds import compare

Q = [m / sum(range(K + 1)) for m in range(1, K + 1)]
"""Chances of the clients where tasks are routed."""


def routes(kind: str = "random") -> Callable[[int], int]:
    """Returns the clients of tasks, by their numbers."""
    found = routed(np.array(Q), Streams(SEED), shuffled=kind == "shuffled")
    drawn: list[int] = []

    def route(task: int) -> int:
        while len(drawn) <= task:
            drawn.append(next(found))
        return drawn[task]

    return route


COUNT: dict[str, Any] = {"kind": "collect", "count": 7}
FIRST = {"kind": "collect", "count": 3, "repeats": False}
STOPS = {"late": "stop"}
IMPATIENT = {"kind": "collect", "seconds": 2.0, "repeats": False} | STOPS
MALENIA = {"algorithm": {"kind": "malenia"}}
TRIALS = {"kind": "collect", "quota": "m", "allotted": 1.3}
SLOW_LINKS = {"download": {"latency": {"law": "expon", "scale": "2 / m"}}}
WARM = {"protocol": {"warm_up": True}, "algorithm": {"kind": "ia2sgd"}}
STEPS = {"local_steps": 4, "speeds": "1 / m"}
Case = tuple[dict[str, Any], Callable[[events.World], events.Run]]
PROTOCOLS: dict[str, Case] = {
    "asynchronous": ({}, events.asynchronous),
    "Rennala": (
        {"protocol": COUNT},
        lambda w: events.collect(w, lambda n: sum(n) == 7),
    ),
    "Rennala with stops": (
        {"protocol": COUNT | STOPS},
        lambda w: events.collect(w, lambda n: sum(n) == 7, "stop"),
    ),
    "Rennala, the fastest": (
        {"protocol": {"kind": "collect", "count": 3, "fastest": 3} | STOPS},
        lambda w: events.collect(w, lambda n: sum(n) == 3, "stop", range(3)),
    ),
    "m-synchronous": ({"protocol": FIRST}, lambda w: events.first_ones(w, 3)),
    "m-synchronous with stops": (
        {"protocol": FIRST | STOPS},
        lambda w: events.first_ones(w, 3, "stop"),
    ),
    "Malenia": (
        {"protocol": {"kind": "collect", "harmonic_mean": 1.4}, **MALENIA},
        lambda w: events.collect(w, events.harmonic(1.4)),
    ),
    "Malenia with stops": (
        {"protocol": {"kind": "collect", "harmonic_mean": 2} | STOPS, **MALENIA},
        lambda w: events.collect(w, events.harmonic(2), "stop"),
    ),
    "Ringmaster": (
        {"protocol": {"staleness_bound": 3}},
        lambda w: events.asynchronous(w, 3),
    ),
    "Ringmaster with stops": (
        {"protocol": {"staleness_bound": 3, "beyond": "stop"}},
        lambda w: events.asynchronous(w, 3, "stop"),
    ),
    "Ringleader": (
        {"protocol": {"kind": "phases"}, "algorithm": {"kind": "ringleader"}},
        events.phases,
    ),
    "warm-up": (WARM, lambda w: events.asynchronous(w, warm_up=True)),
    "buffered": (
        {"protocol": {"kind": "buffered", "size": 3}},
        lambda w: events.buffered(w, 3),
    ),
    "grace": (
        {"protocol": {"kind": "buffered", "grace": 0.4}},
        lambda w: events.grace(w, 0.4),
    ),
    "rounds": ({"protocol": {"kind": "synchronous"}}, events.rounds),
    "MindFlayer": (
        {"protocol": TRIALS},
        lambda w: events.trials(w, range(1, K + 1), 1.3),
    ),
    "routed": (
        {"protocol": {"kind": "routed", "tasks": 8, "weights": "m"}},
        lambda w: events.routed(w, 8, routes()),
    ),
    "shuffled": (
        {"protocol": {"kind": "routed", "tasks": 4, "route": "shuffled"}},
        lambda w: events.routed(w, 4, routes("shuffled")),
    ),
    "THROTTLE": ({"protocol": {"restarts": True}}, events.restarting),
    "mini-batches by start": (
        {
            "protocol": {"kind": "collect", "count": 4, "filter": "start"},
            "clients": SLOW_LINKS,
        },
        lambda w: events.by_start(w, 4),
    ),
    "ATA": (
        {"protocol": {"kind": "collect", "allotment": {"jobs": 8, "spread": 0.05}}},
        lambda w: events.allotted(w, 8, 0.05),
    ),
    "DyLU": (
        {"algorithm": STEPS, "clients": {"compute_per": "step"}},
        events.asynchronous,
    ),
}
BY_ARRAYS = ("asynchronous", "Ringmaster", "buffered", "DyLU", "rounds")


@pytest.mark.parametrize("name", PROTOCOLS)
def test_events_are_those_of_the_twin(name: str) -> None:
    changes, protocol = PROTOCOLS[name]
    assert_events_alike(tree_of(**changes), protocol)


@pytest.mark.parametrize("name", PROTOCOLS)
def test_arrays_make_what_simpy_plays(name: str) -> None:
    """Or the world is SimPy's, where the protocol has feedback on who acts when."""
    tree = merge(tree_of(**PROTOCOLS[name][0]), {"stop": {"commits": 200}})
    made = timeline(Run(0, "base", {}, 0, SEED, scenario(tree)))
    assert isinstance(made, SimulatedTimeline)
    in_arrays = name in BY_ARRAYS
    because = "" if in_arrays else f"the protocol {tree['protocol']['kind']}"
    assert made.feedback == because
    if in_arrays:
        compare(made)


# Numbers


BUFFER = {"kind": "buffered", "size": 3}
TOGETHER = {"kind": "synchronous"}
THREE = {"kind": "t_synchronous", "t": 3}
COSINE = {"schedule": "cosine_decay_schedule", "init_value": 0.05, "decay_steps": 30}
ADAMW = {"kind": "adamw", "learning_rate": 0.03, "weight_decay": 0.3}
ADAMW |= {"b1": 0.8, "b2": 0.95, "eps": 1e-6}
NO_BIAS = {"bias_correction_mu": False, "bias_correction_nu": False}
DELAYED = {"kind": "delayed_nesterov", "decay": 0.8}
WHOLE = {"clip": "contribution", "law": "spherical_laplace", "multiplier": 0.01}
UNEVEN = {"partition": {"kind": "sizes", "clients": K, "weights": "m"}}
LOSSES = {"loss": {"chance": 0.3, "timeout": 1.0}}
MOVING = {"kind": "fed_buff", "step_size": 0.2, "local_steps": 2}
AVERAGE: dict[str, Any] = {"kind": "fed_avg", "step_size": 0.2}


def by(kind: str, **options: Any) -> dict[str, Any]:
    """Returns a weight."""
    return {"weight": {"kind": kind, **options}}


def sgd(protocol: dict[str, Any] | None = None, **algorithm: Any) -> dict[str, Any]:
    return {"protocol": protocol or {}, "algorithm": algorithm}


def drawn(number: int, **more: Any) -> dict[str, Any]:
    """Returns a selection of so many clients, and other changes."""
    return {"clients": {"selection": {"in_flight": number}}} | more


NUMBERS: dict[str, dict[str, Any]] = {
    "plain": {},
    "local steps, inverse": sgd(local_steps=3, local_step_size=0.1, **by("inverse")),
    "local steps in rounds": sgd(TOGETHER, local_steps=2),
    "polynomial, compensated": sgd(
        compensation={"strength": 2.0}, **by("polynomial", exponent=0.7)
    ),
    "inverse, compensated together": sgd(
        THREE, compensation={"strength": 0.1, "adaptive": True}, **by("inverse")
    ),
    "hinge, momentum": sgd(
        optimizer={"kind": "momentum"}, **by("hinge", slope=2.0, late=1.0)
    ),
    "polynomial, adam": sgd(
        step_size=0.02, optimizer={"kind": "adam"}, **by("polynomial")
    ),
    "delay-adaptive, clipped by sample": sgd(
        mechanism={"clip_bound": 1.0, "multiplier": 0.5},
        **by("delay_adaptive", concurrency=2, smoothness=2.0),
    ),
    "clipped as a whole": sgd(local_steps=2, mechanism=WHOLE | {"clip_bound": 2.0}),
    "Mishchenko": sgd(**by("inverse", concurrency=3)),
    "Rescaled ASGD": sgd(**by("inverse_share", shares="1 / m")),
    "shares so far": sgd(BUFFER, **by("inverse_share")),
    "Picky": sgd(**by("distance", largest=0.2)),
    "THROTTLE": sgd({"restarts": True}, step_size=5 * STEP, **by("repeats", base=2)),
    "MindFlayer": sgd(TRIALS, divisor=7.3),
    "Malenia": sgd({"kind": "collect", "harmonic_mean": 1.4}, kind="malenia"),
    "Ringleader": sgd({"kind": "phases"}, kind="ringleader"),
    "IA2SGD": sgd({"warm_up": True}, kind="ia2sgd", local_steps=2),
    "ACED": sgd({"warm_up": True}, kind="ia2sgd", max_age=8),
    "MIFA": sgd(FIRST | STOPS, kind="ia2sgd", local_steps=2),
    "MIFA, impatient": sgd(IMPATIENT, kind="ia2sgd") | {"clients": LOSSES},
    "AREA": sgd(kind="area", local_steps=2),
    "AREA, buffered": sgd(BUFFER, kind="area", step_size=0.5, local_step_size=0.1),
    "CA2FL": sgd(BUFFER, kind="ca2fl", local_steps=2, local_step_size=0.1),
    "CA2FL, a buffer of one": sgd(BUFFER | {"size": 1}, kind="ca2fl"),
    "delayed Nesterov": sgd(optimizer=DELAYED | {"period": 3, "spread": 0.2}),
    "look-ahead": sgd(optimizer=DELAYED | {"period": 2, "look_ahead": True}),
    "DyLU, grace": sgd(
        {"kind": "buffered", "grace": 0.4}, **STEPS, optimizer=DELAYED | {"period": 2}
    )
    | {"clients": {"compute_per": "step"}},
    "AdamW at the server": sgd(
        THREE,
        step_size=None,
        optimizer=ADAMW | {"learning_rate": COSINE, "clip_norm": 0.5},
    ),
    "weighted signs": sgd(
        step_size=1,
        optimizer={"kind": "sign_sgd", "learning_rate": 0.1},
        **by("polynomial", exponent=1.5),
    ),
    "AdamW at clients": sgd(
        step_size=None,
        local_steps=2,
        local_optimizer=ADAMW | {"learning_rate": COSINE},
    ),
    "AdamW kept where some is lost": sgd(
        step_size=None, local_steps=2, local_optimizer=ADAMW | {"state": "kept"}
    )
    | {"clients": LOSSES},
    "FedBuff, AdamW kept": sgd(
        BUFFER,
        **MOVING | {"step_size": None, "local_optimizer": ADAMW | {"state": "kept"}},
    ),
    "FedAsync": sgd(kind="fed_async", step_size=0.2, local_steps=3, proximal=0.1),
    "FedAsync, hinge, private": sgd(
        kind="fed_async",
        step_size=0.2,
        mechanism={"clip_bound": 1.0, "multiplier": 0.2},
        **by("hinge", slope=1.0, late=1.0),
    ),
    "FedBuff": sgd(BUFFER, **MOVING, server_step_size=0.7),
    "FedBuff by window, yogi": sgd(
        {"kind": "buffered", "window": 1.5},
        **MOVING,
        server_step_size=0.02,
        optimizer={"kind": "yogi"},
    ),
    "FADAS": sgd(
        BUFFER | {"size": 2},
        **MOVING | {"local_steps": 1, "staleness_threshold": 2},
        optimizer={"kind": "amsgrad", "learning_rate": 0.4, "b2": 0.9} | NO_BIAS,
        **by("constant"),
    ),
    "FedAvg, epochs": sgd(TOGETHER, **AVERAGE, local_epochs=2) | {"problem": UNEVEN},
    "FedProx of some": sgd(
        TOGETHER,
        **AVERAGE,
        local_steps=3,
        sampling="shuffled",
        proximal=0.5,
        server_step_size=0.5,
    )
    | drawn(3, problem=UNEVEN),
    "FedAvg, all alike, over-selection": sgd(
        TOGETHER | {"wait_for": 4},
        **AVERAGE | {"weighting": "equal", "batch": 10_000},
        local_epochs=1,
    )
    | {"problem": UNEVEN},
}
ROUNDED = {"AdamW": 1e-7, "FADAS": 1e-8}
"""Adam divides by roots of squares: where a gradient is of the size of its epsilon,
rounding grows."""


def near(name: str) -> Tolerance:
    error = next((ROUNDED[word] for word in ROUNDED if word in name), 1e-9)
    return Tolerance(error, max(100 * error, 1e-7))


@pytest.mark.parametrize("name", NUMBERS)
def test_numbers_are_those_of_the_twin(name: str) -> None:
    tree = tree_of(**NUMBERS[name]) | {"stop": {"commits": 40}}
    assert_like_twin(tree, near=near(name))


TWO = {"data": {"kind": "breast_cancer", "scale": "standard"}}
TEN = {"data": {"kind": "digits", "limit": 200, "scale": "unit"}}
LOSS: dict[str, dict[str, Any]] = {
    "softmax": TEN,
    "sigmoid": TWO,
    "hinge": TEN | {"loss": "hinge"},
    "hinge of two classes": TWO | {"loss": "hinge"},
}


@pytest.mark.parametrize("name", LOSS)
def test_losses_are_those_of_the_twin(name: str) -> None:
    """Of linear models, whose bias has no regulariser; samples are clipped."""
    seen = {"every": {"commits": 10}, "metrics": BASE["evaluate"]["metrics"][:2]}
    bound = 3.5 if "digits" in str(LOSS[name]) else 1.0  # cuts some
    private = {"mechanism": {"clip_bound": bound, "multiplier": 0.1}, "batch": 7}
    changes = {"problem": LOSS[name], "stop": {"commits": 30}, "evaluate": seen}
    changes |= {"algorithm": private, "engine": BASE["engine"]}
    memory, _ = assert_like_twin(SGD, changes)
    cut = memory.column("commits", "clipped_fraction")
    assert 0 < cut.mean() < 1


def test_simultaneous_arrivals_are_one_outer_step_of_nesterov() -> None:
    """Equal speeds: a period of grace makes the rounds of synchronous DiLoCo."""
    same = {"clients": {"compute": {"law": "constant", "value": 1}}}
    nesterov = {"kind": "sgd", "learning_rate": STEP, "momentum": 0.8, "nesterov": True}
    common = {"local_steps": 3, "local_step_size": 0.05}
    grace = sgd(
        {"kind": "buffered", "grace": 0}, **common, optimizer=DELAYED | {"period": 1}
    )
    waits = sgd(TOGETHER, **common, step_size=1, optimizer=nesterov)
    found = []
    with jax.enable_x64(True):
        for case in (grace, waits):
            tree = merge(tree_of(**case), {"stop": {"commits": 12}} | same)
            found.append(execute([prepared(tree, seed=SEED)])[0])
    one, other = (memory.column("evaluations", "objective") for memory in found)
    assert one.size == 13
    # The numbers of optax's update are of single precision.
    np.testing.assert_allclose(one, other, rtol=1e-5)


def test_faster_clients_make_more_local_steps_in_the_same_time() -> None:
    """H_w = floor(v_w / v_ref H), with H = 4 and speeds of 1, 1/2, ... 1/5."""
    run = prepared(tree_of(**PROTOCOLS["DyLU"][0]), seed=SEED)
    assert run.sampler.own_steps is not None
    assert run.sampler.own_steps.tolist() == [4, 2, 1, 1, 1]
    for client, steps in enumerate([4, 2, 1, 1, 1]):
        ids = run.sampler.batch(client, 3).reshape(4, 2)
        there = (ids != NO_SAMPLE).all(axis=1)
        assert there.tolist() == [place < steps for place in range(4)]
