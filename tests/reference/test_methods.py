"""Methods of the field against a blind NumPy twin: events, staleness and models."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from stalesim.simulator.protocols.routed.routed import Routes
from stalesim.simulator.streams import Streams
from tests.reference import collecting_twin as collecting
from tests.reference import methods_twin as twin
from tests.reference.methods_support import (
    SEED,
    STEP,
    TAU,
    Case,
    K,
    assert_engines_agree,
    assert_like_twin,
    assert_players_agree,
)

P = [1 - np.exp(-1.3 / tau) for tau in TAU]
"""Chances that a job is done in 1.3 s."""
Q = [m / sum(range(K + 1)) for m in range(1, K + 1)]
"""Chances of the clients where tasks are routed."""
STOPS: dict[str, Any] = {"late": "stop"}
MINDFLAYER = {"kind": "collect", "quota": "m", "allotted": 1.3}


def routes(kind: str = "random") -> Callable[[int], int]:
    """Returns the clients of tasks, by their numbers."""
    found = Routes(kind, np.array(Q), Streams(SEED))  # pyright: ignore
    drawn: list[int] = []

    def route(task: int) -> int:
        while len(drawn) <= task:
            drawn.append(found.first(0))
        return drawn[task]

    return route


METHODS: dict[str, Case] = {
    "asgd": ({}, {}, lambda w: twin.asgd(w, twin.constant(STEP))),
    "Rennala": (
        {"kind": "collect", "count": 7},
        {},
        lambda w: collecting.rennala(w, 7, STEP, stops=False),
    ),
    "Rennala with stops": (
        {"kind": "collect", "count": 7} | STOPS,
        {},
        lambda w: collecting.rennala(w, 7, STEP, stops=True),
    ),
    "Rennala, the fastest": (
        {"kind": "collect", "count": 3, "fastest": 3} | STOPS,
        {},
        lambda w: collecting.rennala(w, 3, STEP, stops=True, fastest=TAU),
    ),
    "m-synchronous": (
        {"kind": "collect", "count": 3, "repeats": False},
        {},
        lambda w: collecting.m_synchronous(w, 3, STEP, stops=False),
    ),
    "m-synchronous with stops": (
        {"kind": "collect", "count": 3, "repeats": False} | STOPS,
        {},
        lambda w: collecting.m_synchronous(w, 3, STEP, stops=True),
    ),
    "Malenia": (
        {"kind": "collect", "harmonic_mean": 1.4},
        {"kind": "malenia"},
        lambda w: collecting.malenia(w, 1.4 * K, STEP, stops=False),
    ),
    "Malenia with stops": (
        {"kind": "collect", "harmonic_mean": 2} | STOPS,
        {"kind": "malenia"},
        lambda w: collecting.malenia(w, 2 * K, STEP, stops=True),
    ),
    "Ringmaster": (
        {"staleness_bound": 3},
        {},
        lambda w: twin.ringmaster(w, 4, STEP, stops=False),
    ),
    "Ringmaster with stops": (
        {"staleness_bound": 3, "beyond": "stop"},
        {},
        lambda w: twin.ringmaster(w, 4, STEP, stops=True),
    ),
    "Ringleader": (
        {"kind": "phases"},
        {"kind": "ringleader"},
        lambda w: collecting.ringleader(w, STEP),
    ),
    "IA2SGD": (
        {"warm_up": True},
        {"kind": "ia2sgd"},
        lambda w: collecting.ia2sgd(w, STEP),
    ),
    "ACED": (
        {"warm_up": True},
        {"kind": "ia2sgd", "max_age": 8},
        lambda w: collecting.aced(w, STEP, 8, empty="commit"),
    ),
    "CA2FL": (
        {"kind": "buffered", "size": 3},
        {"kind": "ca2fl"},
        lambda w: collecting.ca2fl(w, 3, STEP),
    ),
    "CA2FL, a buffer of one": (
        {"kind": "buffered", "size": 1},
        {"kind": "ca2fl"},
        lambda w: collecting.ca2fl(w, 1, STEP),
    ),
    "MindFlayer": (
        MINDFLAYER,
        {"divisor": sum(p * trials for trials, p in enumerate(P, start=1))},
        lambda w: collecting.mindflayer(w, range(1, K + 1), [1.3] * K, P, STEP),
    ),
    "clipped": (
        {},
        {
            "mechanism": {
                "clip_bound": 0.5,
                "clip": "contribution",
                "multiplier": 0,
            }
        },
        lambda w: twin.clipped_asgd(w, STEP, 0.5),
    ),
    "Mishchenko": (
        {},
        {"weight": {"kind": "inverse", "concurrency": 3}},
        lambda w: twin.asgd(w, twin.inverse_delay(STEP, 3)),
    ),
    "Rescaled ASGD": (
        {},
        {"weight": {"kind": "inverse_share", "shares": "1 / m"}},
        lambda w: twin.asgd(w, twin.rescaled(STEP, TAU)),
    ),
    "Generalized AsyncSGD": (
        {"kind": "routed", "tasks": 8, "weights": "m"},
        {"weight": {"kind": "inverse_share", "shares": "m"}},
        lambda w: twin.generalized(w, 8, routes(), Q, STEP),
    ),
    "AsGrad, shuffled": (
        {"kind": "routed", "tasks": 4, "route": "shuffled"},
        {},
        lambda w: twin.generalized(w, 4, routes("shuffled"), [1 / K] * K, STEP),
    ),
    "delay-adaptive": (
        {},
        {"weight": {"kind": "delay_adaptive", "concurrency": 2, "smoothness": 2.0}},
        lambda w: twin.asgd(w, twin.delay_adaptive(STEP, 2, 2.0)),
    ),
}


@pytest.mark.parametrize("name", METHODS)
def test_events_and_models_are_those_of_the_twin(name: str) -> None:
    assert_like_twin(METHODS[name], too_old_is_applied=name == "ACED")


BY_ARRAYS = [
    *("asgd", "Ringmaster", "CA2FL", "CA2FL, a buffer of one", "clipped"),
    *("Mishchenko", "Rescaled ASGD", "delay-adaptive"),
]


@pytest.mark.parametrize("name", METHODS)
def test_arrays_make_what_simpy_plays(name: str) -> None:
    assert_players_agree(METHODS[name], in_arrays=name in BY_ARRAYS)


def test_a_cache_with_a_buffer_of_one_is_no_table() -> None:
    """CA2FL steps along h + (D - h_i), IA2SGD along h + (D - h_i) / n.

    Gradients are b_i but for one job of client 0, whose is b_0 + e. While none changes
    both move by the mean of b. That job moves IA2SGD by e / n more, and so does each
    commit until the client's next one; CA2FL by e, e / n, and at its next one by
    -(1 - 1 / n) e. Source: methods.md, section 6, which says that they are one.
    """
    b, e, n, tau = np.array([[1.0], [4.0], [-2.0]]), 6.0, 3, (1.0, 1.3, 1.7)
    world = twin.World(
        num_clients=n,
        duration=lambda i, j: tau[i],
        gradient=lambda i, j, x: b[i] + e * (i == 0 and j == 5),
        start=np.zeros(1),
        num_commits=20,
    )
    moves: list[dict[tuple[int, int], float]] = []
    for found in (collecting.ia2sgd(world, 1.0), collecting.ca2fl(world, 1, 1.0)):
        models = [0.0, *(commit.x[0] for commit in found.commits)]
        sources = [commit.entered[-1] for commit in found.commits]
        steps = zip(sources, -np.diff(models), strict=True)
        moves.append({(s.client, s.job): move for s, move in steps})
    since, until = (0, 5), (0, 6)  # at 6 s and at 7 s
    compared = 0
    for client, job in moves[0].keys() & moves[1].keys():
        arrival = (job + 1) * tau[client]
        if arrival <= max(tau):  # not everyone has arrived before
            continue
        table = b.mean() + e / n * (6.0 <= arrival < 7.0)
        jump = ((client, job) == since) - ((client, job) == until)
        assert moves[0][client, job] == pytest.approx(table)
        assert moves[1][client, job] == pytest.approx(table + (1 - 1 / n) * e * jump)
        compared += 1
    assert compared > 12
    assert {since, until} <= moves[0].keys() & moves[1].keys()


ENGINES = ["stepwise", "batched", "shared"]
NEW = [
    *("Rennala with stops", "Malenia", "Ringleader", "ACED", "CA2FL", "MindFlayer"),
]


@pytest.mark.long
@pytest.mark.parametrize("mode", ENGINES)
@pytest.mark.parametrize("name", NEW)
def test_engines_agree(name: str, mode: str) -> None:
    other_step = {"algorithm": {"step_size": 0.03}}
    assert_engines_agree(METHODS[name], mode, other_step)
