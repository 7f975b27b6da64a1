"""PSGD, A(DP)2SGD and stochastic gradient push against the blind gossip twin."""

from itertools import cycle, product
from typing import Any

import jax
import numpy as np
import pytest

from stalesim.simulator.engine.simulation import Prepared
from stalesim.simulator.files.timeline import Kind, Rows
from stalesim.simulator.scenario.study import merge
from tests.reference import gossip_twin as twin
from tests.reference.gossip_support import (
    ARCS,
    GRAPHS,
    MOMENTUM,
    NEAR,
    PUSH,
    ROUNDS,
    UNEQUAL,
    WORLDS,
    K,
    assert_agree,
    flat,
    gossip,
    method_of,
    noisy,
    plan_of,
    ran,
    rounds_of,
    sampled,
    twin_of,
    world_of,
)

ORDERS = ("average_then_step", "step_then_average", "during")
PAIRS = [
    (*case, world)
    for case, world in zip(product(ORDERS, GRAPHS), cycle(WORLDS), strict=False)
]
"""Graphs and worlds make timelines, for which a kernel has one program."""
ALWAYS = {PAIRS[1], PAIRS[5], PAIRS[12]}


def check_pairs(plan: Prepared) -> None:
    rows, expected = twin_of(plan)
    (found,) = ran([plan])
    assert rows.time.size >= 200
    commits = np.flatnonzero(rows.kind == Kind.COMMIT)
    staleness = (rows.version - rows.read_version[:, 0])[commits]
    assert staleness.tolist() == expected.staleness.tolist()
    assert staleness.max() > 2
    consensus = np.full(rows.time.size, np.nan)
    consensus[commits] = expected.consensus
    models, ages = expected.models[-1].copy(), expected.ages[-1].copy()
    by_age = found.state.memory is not None
    for row in range(int(commits[-1]) + 1, rows.time.size):  # of the same instant
        twin.merge(models, ages, rows.worker[row].tolist(), by_age)
    assert_agree(found, models, consensus)
    if by_age:
        assert found.state.memory.tolist() == ages.tolist()
    if "clipped_fraction" in found.infos:
        assert 0.2 < found.infos["clipped_fraction"][commits].mean() < 0.8


@pytest.mark.parametrize(("order", "graph", "world"), sampled(PAIRS, ALWAYS))
def test_pairs_agree_with_the_twin(order: str, graph: str, world: str) -> None:
    check_pairs(plan_of(WORLDS[world], gossip(order=order, **GRAPHS[graph])))


VARIANTS: dict[str, tuple[dict[str, Any], ...]] = {
    "age": ({"algorithm": {"merge": "age"}},),
    "sum": (noisy(2.0),),
    "mean": (noisy(0.1, "mean"),),
    "sum, clipped": (noisy(1.0, clip="sample"),),
    "mean, clipped": (noisy(0.05, "mean", "sample"),),
    "clipped, by age": (noisy(1.0, clip="sample"), {"algorithm": {"merge": "age"}}),
    "momentum": (MOMENTUM,),
    "sum, momentum": (noisy(1.0), MOMENTUM),
}
METHODS = {
    ("age", "average_then_step"),
    ("sum", "step_then_average"),
    ("mean, clipped", "during"),
}


@pytest.mark.parametrize(
    ("variant", "order"), sampled(product(VARIANTS, ORDERS), METHODS)
)
def test_methods_in_pairs_agree_with_the_twin(variant: str, order: str) -> None:
    protocol = gossip(order=order, **GRAPHS["bipartite"])
    check_pairs(plan_of(WORLDS["idle"], protocol, *VARIANTS[variant]))


def metropolis(edges: Any) -> np.ndarray:
    """1 / (1 + the larger degree) along an edge, from numbers that begin with 1."""
    ends = np.array(edges) - 1
    degree = np.bincount(ends.ravel(), minlength=K)
    mixing = np.zeros((K, K))
    for i, j in ends:
        mixing[i, j] = mixing[j, i] = 1 / (1 + max(degree[i], degree[j]))
    return mixing + np.diag(1 - mixing.sum(axis=0))


def shared_out(arcs: Any) -> np.ndarray:
    """Equal shares of j's model to itself and whom it sends to, in column j."""
    mixing = np.eye(K)
    for sender, receiver in arcs:
        mixing[receiver - 1, sender - 1] = 1
    return mixing / mixing.sum(axis=0)


HOPS = [[(k + 1, (k + hop) % K + 1) for k in range(K)] for hop in (1, 2, 4)]
CYCLE = HOPS[0]
MIXED: dict[str, tuple[dict[str, Any], list[np.ndarray]]] = {
    "ring": ({"kind": "ring"}, [metropolis(CYCLE)]),
    "unequal": ({"kind": "edges", "edges": UNEQUAL}, [metropolis(UNEQUAL)]),
    "complete": ({"kind": "complete"}, [np.full((K, K), 1 / K)]),
    "exponential": ({"kind": "exponential"}, [shared_out(arcs) for arcs in HOPS]),
    "arcs": ({"kind": "arcs", "arcs": ARCS}, [shared_out(ARCS)]),
}
QUIET: dict[str, Any] = {}


def last_of_rounds(rows: Rows, values: np.ndarray) -> np.ndarray:
    """Puts a number of every round where the round ends; NaN elsewhere."""
    ends = np.flatnonzero(np.r_[np.diff(rows.round) > 0, True])
    found = np.full(rows.time.size, np.nan)
    found[ends] = values
    return found


ALL = {
    "plain": QUIET,
    "sum": noisy(2.0),
    "mean": noisy(0.1, "mean"),
    "momentum": merge(noisy(1.0), MOMENTUM),
}


@pytest.mark.parametrize(
    ("variant", "world"),
    sampled(
        [
            ("plain", "no links"),
            ("sum", "idle"),
            ("mean", "links"),
            ("momentum", "idle"),
        ],
        {("plain", "no links")},
    ),
)
def test_all_is_sync(variant: str, world: str) -> None:
    plan = plan_of(WORLDS[world], gossip(average="all"), ALL[variant], ROUNDS)
    rows, rounds = rounds_of(plan)
    assert rows.time.size >= 200
    mixing = [np.full((K, K), 1 / K)] * len(rounds)
    expected = twin.in_rounds(world_of(plan)[0], mixing, rounds, method_of(plan))
    (found,) = ran([plan])
    consensus = twin.consensus_of(expected)
    assert_agree(found, expected.z[-1], last_of_rounds(rows, consensus))
    # Step by step, and not round by round; a round ends with an averaging.
    _, events = twin_of(plan)
    commits = rows.kind == Kind.COMMIT
    consensus = np.full(rows.time.size, np.nan)
    consensus[commits] = events.consensus
    assert_agree(found, expected.z[-1], consensus)
    staleness = (rows.version - rows.read_version[:, 0])[commits]
    assert staleness.tolist() == events.staleness.tolist()


MIDWAY = {"algorithm": {"step_size": {"epochs": [5.1]}}}
"""Would change the step at commit 110, within a round, whose steps are of one size."""
NEIGHBOURS = [
    (*case, world)
    for case, world in zip(
        product(["ring", "unequal", "complete"], ORDERS[:2], ["plain", "sum"]),
        cycle(["links", "idle", "idle"]),
        strict=False,
    )
]


@pytest.mark.parametrize(
    ("graph", "order", "variant", "world"),
    sampled(NEIGHBOURS, {NEIGHBOURS[1], NEIGHBOURS[4], NEIGHBOURS[6]}),
)
def test_neighbours_are_d_psgd(
    graph: str, order: str, variant: str, world: str
) -> None:
    config, mixing = MIXED[graph]
    protocol = gossip(average="neighbours", graph=config, order=order)
    plan = plan_of(WORLDS[world], protocol, ALL[variant], ROUNDS, MIDWAY)
    rows, rounds = rounds_of(plan)
    assert rows.time.size >= 200
    expected = twin.in_rounds(
        *(world_of(plan)[0], mixing * len(rounds), rounds, method_of(plan)),
        steps_first=order == "step_then_average",
    )
    (found,) = ran([plan])
    consensus = twin.consensus_of(expected)
    assert_agree(found, expected.z[-1], last_of_rounds(rows, consensus))


@pytest.mark.parametrize(
    ("graph", "world"),
    sampled(product(["exponential", "arcs"], ["links", "idle"]), {("arcs", "idle")}),
)
def test_sgp_agrees_with_the_twin(graph: str, world: str) -> None:
    config, phases = MIXED[graph]
    protocol = gossip(average="neighbours", graph=config, order="step_then_average")
    plan = plan_of(WORLDS[world], protocol, PUSH, ROUNDS)
    rows, rounds = rounds_of(plan)
    mixing = [phases[r % len(phases)] for r in range(len(rounds))]
    expected = twin.in_rounds(world_of(plan)[0], mixing, rounds, method_of(plan))
    (found,) = ran([plan])
    consensus = twin.consensus_of(expected)
    assert_agree(found, expected.x[-1], last_of_rounds(rows, consensus))
    with jax.enable_x64(True):
        names = ("consensus_distance",)
        evaluated = plan.kernel.evaluate(plan.problem, found.state, names)
    np.testing.assert_allclose(evaluated["consensus_distance"], consensus[-1], 1e-9)
    np.testing.assert_allclose(found.state.shares, expected.y[-1], 1e-12)
    np.testing.assert_allclose(flat(found.state.registers), expected.z[-1], *NEAR)
    assert (np.ptp(expected.y[-1]) > 0.1) == (graph == "arcs")
