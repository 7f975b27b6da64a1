"""Invariants of timelines in worlds where clients are away, crash and lose messages."""

from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from stalesim.simulator.laws.constant import Constant
from stalesim.simulator.laws.distributions import Scipy
from stalesim.simulator.laws.markov import Markov
from stalesim.simulator.laws.mixture import Mixture
from stalesim.simulator.laws.truncated import Truncated
from stalesim.simulator.protocols import (
    Asynchronous,
    Buffered,
    Gossip,
    Rounds,
    Synchronous,
    TSynchronous,
)
from stalesim.simulator.protocols.graphs.base import find_senders
from stalesim.simulator.timeline import (
    NO_SLOT,
    NO_WORKER,
    Kind,
    Outcome,
    StopReason,
)
from stalesim.simulator.timelines.simulated import SimulatedTimeline
from stalesim.simulator.world.clients import Clients, Server
from stalesim.simulator.world.workload import Workload
from tests.property.whole import assert_alike, whole
from tests.support import everything, played
from tests.unit.protocols.replay import (
    check_conservation,
    edges_of,
    pairs,
    replay_models,
    replay_registers,
)

EXPON = Scipy(law="expon")
RARE = Scipy(law="expon", scale=9)
TIMES = [
    EXPON,
    Scipy(law="lognorm", parameters={"s": 1.5}),
    Scipy(law="pareto", parameters={"b": 1.1}),
    Scipy(law="expon", scale=Scipy(law="gamma", parameters={"a": 2.0})),
    Mixture(of=(Constant(value=0.1), EXPON), weights=(1, 1)),
    Markov(of=(EXPON, Constant(value=3)), transition=((0.8, 0.2), (0.5, 0.5))),
    Truncated(of=EXPON, low=0.1, high=4),
    Constant(value="m"),
    Constant(value=1),
]
LAWS = st.sampled_from(TIMES)
PRESENCE = st.sampled_from(
    [
        None,
        {"kind": "on_off", "on": EXPON, "off": EXPON},
        {"kind": "on_off", "on": Constant(value=5), "off": Constant(value=1)},
        {"kind": "periodic", "period": 10, "on": 0.4, "phase": "m"},
    ]
)
HORIZON = 60.0


def behaviours(draw: Any) -> dict[str, Any]:
    """Draws what a group of clients does."""
    maybe = lambda strategy: draw(st.none() | strategy)  # noqa: E731
    link = st.fixed_dictionaries(
        {"latency": st.none() | LAWS, "bandwidth": st.none() | st.just("10*m")}
    )
    loss = st.fixed_dictionaries(
        {
            "chance": st.sampled_from([0.0, 0.3, 0.9]),
            "timeout": st.just(0.5),
            "retries": st.integers(0, 3),
            "duplicates": st.sampled_from([0.0, 0.5]),
        }
    )
    return {
        "idle": maybe(LAWS),
        "read": maybe(st.just(Constant(value=0.2))),
        "compute": draw(LAWS),
        "upload": maybe(link),
        "download": maybe(link),
        "availability": draw(PRESENCE),
        "join": draw(st.sampled_from([0, "m"])),
        "leave": draw(st.sampled_from([None, "20*m"])),
        "crashes": maybe(
            st.just({"after": Scipy(law="expon", scale=9), "down": EXPON})
        ),
        "loss": maybe(loss),
    }


@st.composite
def worlds(draw: Any) -> SimulatedTimeline:
    num_clients = draw(st.integers(1, 8))
    settled = behaviours(draw)
    slowdowns = draw(
        st.sampled_from(
            [
                (),
                ({"kind": "random", "factor": 2},),
                ({"kind": "named", "clients": [1], "factor": 10},),
                ({"kind": "regime", "factor": 3, "normal": EXPON, "slow": EXPON},),
            ]
        )
    )
    groups = {}
    if num_clients > 1 and draw(st.booleans()):
        groups = {
            "first": {"number": 1} | behaviours(draw),
            "others": {"number": num_clients - 1},
        }
    protocol = draw(
        st.one_of(
            st.just(Asynchronous()),
            st.builds(
                Asynchronous,
                staleness_bound=st.integers(0, 5),
                beyond=st.sampled_from(["wait", "reject"]),
            ),
            st.builds(
                Synchronous,
                deadline=st.none() | st.just(4.0),
                timeout=st.none() | st.just(3.0),
                wait_for=st.none() | st.integers(1, num_clients),
            ),
            st.builds(
                Synchronous,
                deadline=st.none() | st.just(4.0),
                wait_for=st.integers(1, num_clients),
                late=st.sampled_from(["stop", "reject"]),
            ),
            st.builds(TSynchronous, t=st.integers(1, num_clients)),
            st.builds(Buffered, size=st.integers(1, 5)),
            st.builds(Buffered, window=st.just(2.5)),
            st.builds(Rounds, order=st.sampled_from(["parallel", "sequential"])),
        )
    )
    selection = None
    if protocol.kind != "rounds" and draw(st.booleans()):
        by = draw(st.sampled_from(["uniform", "weighted", "cyclic"]))
        in_flight = draw(st.integers(getattr(protocol, "t", 1), num_clients))
        selection = {"in_flight": in_flight, "by": by, "weights": "m"}
    shared = st.none() | st.just(20.0)
    server = Server(
        service=draw(st.none() | st.just(Scipy(law="expon", scale=0.1))),
        upload_bandwidth=draw(shared),
        download_bandwidth=draw(shared),
    )
    clients = Clients.model_validate(
        settled | {"slowdowns": slowdowns, "groups": groups, "selection": selection}
    )
    seed, work = draw(st.integers(0, 2**32)), Workload(5, 5, 10)
    stop = {"time": HORIZON, "commits": 400}
    return played(protocol, clients, num_clients, seed, work, server, **stop)


@settings(max_examples=300, deadline=None, derandomize=True)
@given(worlds(), st.integers(1, 100))
def test_invariants(plan: SimulatedTimeline, chunk: int) -> None:
    rows, jobs, stop = everything(plan, chunk)
    present = rows.worker != NO_WORKER
    assert (np.diff(rows.time) >= 0).all()
    assert (rows.read_version[present] <= np.repeat(rows.version, present.sum(1))).all()
    replay_registers(rows)
    used = rows.write_slot[rows.write_slot != NO_SLOT]
    assert used.max(initial=0) < plan.num_registers

    # Jobs are conserved: each begins once and ends once, one after the other.
    check_conservation(rows, jobs, plan.num_clients)
    in_flight = jobs.outcome == Outcome.IN_FLIGHT
    assert in_flight.sum() <= plan.num_registers - 1
    for client in range(plan.num_clients):
        mine = np.flatnonzero(jobs.client == client)
        mine = mine[np.argsort(jobs.job[mine])]
        assert jobs.job[mine].tolist() == list(range(mine.size))
        times = np.stack(
            [
                jobs.read_time[mine],
                jobs.computed_time[mine],
                jobs.sent_time[mine],
                jobs.arrived_time[mine],
                jobs.applied_time[mine],
            ]
        )
        known = np.where(np.isnan(times), -np.inf, times)
        assert (np.maximum.accumulate(known, axis=0) <= np.fmax(known, -np.inf) + 1e-9)[
            ~np.isnan(times)
        ].all()
        buffered = plan.protocol.kind == "buffered"  # whose clients go on at once
        last = known[: 4 if buffered else 5].max(axis=0)
        assert (times[0, 1:] >= last[:-1] - 1e-9).all()
    applied = jobs.outcome == Outcome.APPLIED
    assert np.isfinite(jobs.applied_time[applied]).all()
    assert np.isnan(jobs.applied_time[~applied]).all()
    if (
        plan.protocol.kind == "asynchronous"
        and plan.protocol.staleness_bound is not None
    ):
        staleness = rows.version - rows.read_version[:, 0]
        assert (staleness <= plan.protocol.staleness_bound).all()
    assert stop is not None


@settings(max_examples=100, deadline=None, derandomize=True)
@given(worlds())
def test_somebody_makes_progress_or_the_run_is_stalled(plan: SimulatedTimeline) -> None:
    _, _, stop = everything(plan)
    if stop is StopReason.STALLED:
        # Only a world that clients leave stands still.
        behaviours = [b for *_, b in plan.clients.behaviours(plan.num_clients)]
        assert any(b.leave is not None for b in behaviours)
        return
    assert stop in (StopReason.TIME, StopReason.COMMITS)


GRAPHS = [
    {"kind": "bipartite"},
    {"kind": "ring"},
    {"kind": "torus"},
    {"kind": "complete"},
    {"kind": "random_regular", "degree": 3},
    {"kind": "erdos_renyi", "probability": 0.6},
    {"kind": "edges"},
]


@st.composite
def neighbourhoods(draw: Any) -> SimulatedTimeline:
    """Draws workers without a server."""
    num_workers = draw(st.sampled_from([4, 6, 9, 16]))
    graph = draw(st.sampled_from(GRAPHS))
    if graph["kind"] == "random_regular" and num_workers % 2:
        graph = graph | {"degree": 4}
    if graph["kind"] == "edges":
        graph = graph | {"edges": [[1, k] for k in range(2, num_workers + 1)]}
    protocol = Gossip.model_validate(
        {
            "graph": graph,
            "order": draw(
                st.sampled_from(["average_then_step", "step_then_average", "during"])
            ),
            "initiator": draw(st.sampled_from([None, "every"])),
        }
    )
    if draw(st.integers(0, 4)) == 0:
        protocol = Gossip(average="all")
    clients = Clients.model_validate(
        {
            "idle": draw(st.none() | LAWS),
            "compute": draw(LAWS),
            "upload": draw(st.none() | st.fixed_dictionaries({"latency": LAWS})),
            "slowdowns": draw(
                st.sampled_from([(), ({"kind": "random", "factor": 2},)])
            ),
        }
    )
    traffic, seed = Workload(5, 5, 10), draw(st.integers(0, 2**32))
    return played(protocol, clients, num_workers, seed, traffic, commits=150)


@settings(max_examples=150, deadline=None, derandomize=True)
@given(neighbourhoods(), st.integers(1, 100))
def test_neighbours_never_lock_each_other(plan: SimulatedTimeline, chunk: int) -> None:
    rows, jobs, stop = everything(plan, chunk)
    assert stop is StopReason.COMMITS
    assert (np.diff(rows.time) >= 0).all()
    check_conservation(rows, jobs, plan.num_clients)
    replay_models(rows, jobs, plan.num_clients)
    commits = rows.kind == Kind.COMMIT
    assert commits.sum() == 150
    everyone = set(rows.node[commits].tolist())
    protocol: Any = plan.protocol
    if protocol.average == "pairwise":
        edges = edges_of(protocol.graph, plan.num_clients, plan.seed)
        assert {(min(pair), max(pair)) for pair in pairs(rows)} <= set(edges)
        senders = find_senders(edges, plan.num_clients)
        if protocol.initiator is None and senders is not None:
            assert {pair[0] for pair in pairs(rows)} <= senders
    # Nobody is kept from working: a worker's wait is a law's tail, not a lock.
    if isinstance(plan.clients.compute, Constant):
        assert len(everyone) == plan.num_clients


@settings(max_examples=60, deadline=None, derandomize=True)
@given(st.one_of(worlds(), neighbourhoods()))
def test_the_same_seed_gives_the_same_timeline(plan: SimulatedTimeline) -> None:
    # Jobs are handed over with the chunk in which they end.
    assert_alike(whole(plan, 11), whole(plan, 64))
