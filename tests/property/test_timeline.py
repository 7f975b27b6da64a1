"""Invariants of every timeline, in random worlds."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from stalesim.simulator.config.stop import Stop
from stalesim.simulator.laws.constant import Constant
from stalesim.simulator.laws.distributions import Scipy
from stalesim.simulator.learning.sampler import Sampler
from stalesim.simulator.protocols import (
    Asynchronous,
    Bounded,
    Synchronous,
    TSynchronous,
)
from stalesim.simulator.timeline import NO_SLOT, NO_WORKER, Kind, Outcome
from stalesim.simulator.timelines.simulated import SimulatedTimeline
from stalesim.simulator.world.clients import Clients
from stalesim.simulator.world.workload import Workload
from tests.support import everything

LAWS = st.sampled_from(
    [
        Scipy(law="expon"),
        Scipy(law="lognorm", parameters={"s": 1.5}),
        Scipy(law="poisson", parameters={"mu": "2*m"}, scale="1/(2*M)", shift=1e-6),
        Scipy(law="poisson", parameters={"mu": 1}),
        Scipy(law="pareto", parameters={"b": 1.1}),
        Constant(value="m"),
        Constant(value=1),
    ]
)


@st.composite
def worlds(draw) -> SimulatedTimeline:
    num_clients = draw(st.integers(1, 8))
    seed = draw(st.integers(0, 2**32))
    sampler = Sampler(seed, [np.arange(30)], 5)
    protocol = draw(
        st.one_of(
            st.just(Asynchronous()),
            st.just(Synchronous()),
            st.builds(TSynchronous, t=st.integers(1, num_clients)),
            st.builds(Bounded, staleness_bound=st.integers(1, 20)),
        )
    )
    looks = protocol.kind == "bounded" and draw(st.booleans())
    return SimulatedTimeline(
        clients=Clients(idle=draw(st.none() | LAWS), compute=draw(LAWS)),
        protocol=protocol,
        num_clients=num_clients,
        seed=seed,
        stop=Stop(commits=draw(st.integers(1, 120))),
        workload=Workload(1, 1, 10),
        batch=sampler.batch if looks else None,
        num_samples=30,
    )


@settings(max_examples=200, deadline=None, derandomize=True)
@given(worlds(), st.integers(1, 50))
def test_invariants(plan: SimulatedTimeline, chunk: int) -> None:
    rows, jobs, _ = everything(plan, chunk)
    commits = rows.kind == Kind.COMMIT
    present = (rows.worker != NO_WORKER) & commits[:, None]
    assert (np.diff(rows.time) >= 0).all()
    assert rows.version[commits].tolist() == list(range(plan.stop.commits))
    assert (rows.read_version[present] <= np.repeat(rows.version, present.sum(1))).all()

    # A register holds what the record says that it holds, replayed literally.
    held = {0: 0}
    for row in range(rows.time.size):
        if not commits[row]:
            continue
        for column in np.flatnonzero(present[row]):
            slot = int(rows.read_slot[row, column])
            assert held[slot] == rows.read_version[row, column]
        if rows.write_slot[row] != NO_SLOT:
            held[int(rows.write_slot[row])] = int(rows.version[row]) + 1
    assert len(held) <= plan.num_clients + 1

    # Every job that began is applied or under way; numbers are consecutive per client,
    # and work is applied in the order in which it began.
    assert set(jobs.outcome.tolist()) <= {Outcome.APPLIED, Outcome.IN_FLIGHT}
    assert (jobs.outcome == Outcome.IN_FLIGHT).sum() <= plan.num_clients
    for client in range(plan.num_clients):
        mine = jobs.client == client
        assert sorted(jobs.job[mine].tolist()) == list(range(mine.sum()))
        work = mine & (jobs.refresh == 0)
        assert (np.diff(jobs.job[work]) > 0).all()
    applied = (jobs.outcome == Outcome.APPLIED) & (jobs.refresh == 0)
    assert applied.sum() == present.sum()
    done = jobs.outcome == Outcome.APPLIED
    assert (jobs.applied_time[done] >= jobs.read_time[done]).all()


@settings(max_examples=60, deadline=None, derandomize=True)
@given(worlds())
def test_the_same_seed_gives_the_same_timeline(plan: SimulatedTimeline) -> None:
    first, _, _ = everything(plan, 11)
    again, _, _ = everything(plan, 64)
    for one, other in zip(first, again, strict=True):
        np.testing.assert_array_equal(one, other)


@settings(max_examples=60, deadline=None, derandomize=True)
@given(worlds())
def test_embeddings_are_never_used_beyond_the_bound(plan: SimulatedTimeline) -> None:
    if plan.protocol.kind != "bounded" or plan.batch is None:
        return
    rows, _, _ = everything(plan)
    stamp = np.full((30, plan.num_clients), -1)
    bound = plan.protocol.staleness_bound
    for row in range(rows.time.size):
        client, version = int(rows.worker[row, 0]), int(rows.version[row])
        ids = plan.batch(client, int(rows.job[row, 0]))
        if rows.kind[row] == Kind.REFRESH:
            for party in rows.worker[row, 1:]:
                if party != NO_WORKER:
                    late = ids[version - stamp[ids, party] > bound]
                    assert late.size  # nobody is asked for nothing
                    stamp[late, party] = version
            continue
        others = np.arange(plan.num_clients) != client
        assert (version - stamp[np.ix_(ids, others)] <= bound).all()
        stamp[ids, client] = version


@settings(max_examples=100, deadline=None, derandomize=True)
@given(
    st.integers(1, 60),
    st.integers(1, 60),
    st.booleans(),
    st.integers(0, 5),
    st.integers(0, 100),
)
def test_batches_are_pure_functions_of_client_and_job(
    n: int, size: int, replacement: bool, client: int, job: int
) -> None:
    size = size if replacement else min(size, n)
    pools = [np.arange(n) + 100 * m for m in range(6)]
    sampling = "replacement" if replacement else "distinct"
    sampler = Sampler(3, pools, size, sampling=sampling)
    batch = sampler.batch(client, job)
    assert batch.shape == (size,)
    assert np.isin(batch, pools[client]).all()
    if not replacement:
        assert np.unique(batch).size == size
    again = Sampler(3, pools, size, sampling=sampling)
    again.batch((client + 1) % 6, job + 1)
    assert again.batch(client, job).tolist() == batch.tolist()
