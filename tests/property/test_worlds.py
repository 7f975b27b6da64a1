"""Invariants of timelines in worlds where clients are away, crash and lose messages."""

from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from simulator.protocols.played import Played, Traffic
from simulator.scenario.clients import Clients, Server
from simulator.scenario.laws import Constant, Markov, Mixture, Scipy, Truncated
from simulator.scenario.protocols import Asynchronous, Synchronous, TSynchronous
from simulator.scenario.stop import Stop
from simulator.timeline import NO_SLOT, NO_WORKER, Jobs, Kind, Outcome, StopReason
from tests.support import everything

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
def worlds(draw: Any) -> Played:
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
            st.builds(TSynchronous, t=st.integers(1, num_clients)),
        )
    )
    selection = None
    if draw(st.booleans()):
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
    return Played(
        clients=clients,
        protocol=protocol,
        num_clients=num_clients,
        seed=draw(st.integers(0, 2**32)),
        stop=Stop(time=HORIZON, commits=400),
        traffic=Traffic(5, 5, 10),
        server=server,
    )


@settings(max_examples=500, deadline=None, derandomize=True)
@given(worlds(), st.integers(1, 100))
def test_invariants(plan: Played, chunk: int) -> None:
    rows, jobs, stop = everything(plan, chunk)
    present = rows.worker != NO_WORKER
    assert (np.diff(rows.time) >= 0).all()
    assert (rows.kind == Kind.COMMIT).all()
    assert rows.version.tolist() == list(range(rows.version.size))
    assert (rows.read_version[present] <= np.repeat(rows.version, present.sum(1))).all()

    # A register holds what the record says that it holds, replayed literally.
    held = {0: 0}
    for row in range(rows.time.size):
        for column in np.flatnonzero(present[row]):
            slot = int(rows.read_slot[row, column])
            assert held[slot] == rows.read_version[row, column]
        if rows.write_slot[row] != NO_SLOT:
            held[int(rows.write_slot[row])] = int(rows.version[row]) + 1
    assert len(held) <= plan.num_registers

    # Jobs are conserved: each begins once and ends once, one after the other.
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
        last = known.max(axis=0)
        assert (times[0, 1:] >= last[:-1] - 1e-9).all()
    applied = jobs.outcome == Outcome.APPLIED
    assert applied.sum() == present.sum()
    assert np.isfinite(jobs.applied_time[applied]).all()
    assert np.isnan(jobs.applied_time[~applied]).all()
    if (
        plan.protocol.kind == "asynchronous"
        and plan.protocol.staleness_bound is not None
    ):
        staleness = rows.version - rows.read_version[:, 0]
        assert (staleness <= plan.protocol.staleness_bound).all()
    assert stop is not None


@settings(max_examples=150, deadline=None, derandomize=True)
@given(worlds())
def test_somebody_makes_progress_or_the_run_is_stalled(plan: Played) -> None:
    _, _, stop = everything(plan)
    if stop is StopReason.STALLED:
        # Only a world that clients leave stands still.
        behaviours = [b for *_, b in plan.clients.behaviours(plan.num_clients)]
        assert any(b.leave is not None for b in behaviours)
        return
    assert stop in (StopReason.TIME, StopReason.COMMITS)


@settings(max_examples=60, deadline=None, derandomize=True)
@given(worlds())
def test_the_same_seed_gives_the_same_timeline(plan: Played) -> None:
    rows, jobs, _ = everything(plan, 11)
    other_rows, other_jobs, _ = everything(plan, 64)
    for one, other in zip(rows, other_rows, strict=True):
        np.testing.assert_array_equal(one, other)
    # Jobs are handed over with the chunk in which they end.
    for one, other in zip(_ordered(jobs), _ordered(other_jobs), strict=True):
        np.testing.assert_array_equal(one, other)


def _ordered(jobs: Jobs) -> Jobs:
    order = np.lexsort((jobs.job, jobs.client))
    return Jobs(*(column[order] for column in jobs))
