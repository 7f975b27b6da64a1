"""Embeddings of parties are as fresh as their bound says; batches depend on jobs."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stalesim.simulator.catalogue.protocols.bounded import Bounded
from stalesim.simulator.files.timeline import NO_WORKER, Kind, Outcome
from stalesim.simulator.problem.sampler import Sampler
from stalesim.simulator.timelines.simulated import SimulatedTimeline
from stalesim.simulator.world.clients import Clients
from stalesim.simulator.world.laws.distributions import Constant, Scipy
from tests.support import everything, played

LAWS = st.sampled_from(
    [
        Scipy(law="expon"),
        Scipy(law="lognorm", parameters={"s": 1.5}),
        Scipy(law="poisson", parameters={"mu": "2*m"}, scale="1/(2*M)", shift=1e-6),
        Scipy(law="poisson", parameters={"mu": 1}),
        Constant(value="m"),
    ]
)


@st.composite
def worlds(draw) -> SimulatedTimeline:
    """Draws worlds of parties who ask for embeddings that are too old."""
    num_clients = draw(st.integers(1, 8))
    seed = draw(st.integers(0, 2**32))
    clients = Clients(idle=draw(st.none() | LAWS), compute=draw(LAWS))
    protocol = Bounded(staleness_bound=draw(st.integers(1, 20)))
    commits = draw(st.integers(1, 120))
    plan = played(protocol, clients, num_clients, seed, commits=commits)
    batch = Sampler(seed, [np.arange(30)], 5).batch
    return replace(plan, batch=batch, num_samples=30)


@pytest.mark.slow
@settings(max_examples=60, deadline=None, derandomize=True)
@given(worlds())
def test_embeddings_are_never_used_beyond_the_bound(plan: SimulatedTimeline) -> None:
    rows, jobs, _ = everything(plan)
    applied = jobs.outcome == Outcome.APPLIED
    assert (applied & (jobs.refresh == 0)).sum() == plan.stop.commits
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
