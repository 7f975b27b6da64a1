"""Invariants of timelines in random worlds, before any table is made of them."""

from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from stalesim.simulator.catalogue.protocols.graphs.base import (
    find_senders,
    neighbours,
)
from stalesim.simulator.engine.of_run import timeline
from stalesim.simulator.files.timeline import NO_SLOT, Kind, StopReason
from stalesim.simulator.scenario.study import expand
from stalesim.simulator.timelines.simulated import SimulatedTimeline
from tests.drawn_worlds import PROTOCOLS, SHOWN, timeline_scenario
from tests.property.whole import assert_alike, whole
from tests.support import everything
from tests.unit.protocols.replay import (
    check_conservation,
    edges_of,
    pairs,
    replay_models,
    replay_registers,
)

SERVED = (*SHOWN, "collect", "phases", "rounds", "cyclic", "centralised")
"""Protocols of one model, whose clients have a job at a time."""


def worlds(*kinds: str) -> st.SearchStrategy[SimulatedTimeline]:
    """Draws worlds of some protocols, by default of all."""
    asked = [name in (kinds or PROTOCOLS) for name in PROTOCOLS]
    seeds = [seed for seed in range(3000) if asked[seed % len(PROTOCOLS)]]
    return st.sampled_from(seeds).map(plan_of)


def plan_of(seed: int) -> Any:
    """Returns the timeline of a world that is drawn by a seed."""
    return timeline(expand(timeline_scenario(seed))[0])


@settings(max_examples=300, deadline=None, derandomize=True)
@given(worlds(*SERVED), st.integers(1, 100))
def test_registers_hold_what_is_read(plan: SimulatedTimeline, chunk: int) -> None:
    rows, jobs, stop = everything(plan, chunk)
    assert stop is not None
    assert (np.diff(rows.time) >= 0).all()
    replay_registers(rows)
    used = rows.write_slot[rows.write_slot != NO_SLOT]
    assert used.max(initial=0) < plan.num_registers
    check_conservation(rows, jobs, plan.num_clients)
    bound = getattr(plan.protocol, "staleness_bound", None)
    if plan.protocol.kind == "asynchronous" and bound is not None:
        assert (rows.version - rows.read_version[:, 0] <= bound).all()


@settings(max_examples=150, deadline=None, derandomize=True)
@given(worlds())
def test_somebody_makes_progress_or_the_run_is_stalled(plan: SimulatedTimeline) -> None:
    if everything(plan)[2] is StopReason.STALLED:
        # Only a world that clients leave stands still.
        assert plan.clients is not None
        behaviours = [b for *_, b in plan.clients.behaviours(plan.num_clients)]
        assert any(b.leave is not None for b in behaviours)


@settings(max_examples=200, deadline=None, derandomize=True)
@given(worlds("gossip"), st.integers(1, 100))
def test_neighbours_never_lock_each_other(plan: SimulatedTimeline, chunk: int) -> None:
    rows, jobs, stop = everything(plan, chunk)
    n = plan.num_clients
    options: Any = plan.protocol
    assert stop is not StopReason.STALLED
    check_conservation(rows, jobs, n)
    replay_models(rows, jobs, n)
    if stop is StopReason.TIME:
        assert set(rows.node[rows.kind == Kind.COMMIT].tolist()) == set(range(n))
    if options.average == "pairwise":
        edges = edges_of(options.graph, n, plan.seed)
        assert {(min(pair), max(pair)) for pair in pairs(rows)} <= set(edges)
        senders = find_senders(neighbours(edges, n))
        if options.initiator is None and senders is not None:
            assert {pair[0] for pair in pairs(rows)} <= senders


@settings(max_examples=100, deadline=None, derandomize=True)
@given(worlds())
def test_the_same_seed_gives_the_same_timeline(plan: SimulatedTimeline) -> None:
    # Jobs are handed over with the chunk in which they end.
    assert_alike(whole(plan, 11), whole(plan, 64))
