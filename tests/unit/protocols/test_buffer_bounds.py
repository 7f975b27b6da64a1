"""A buffer with a staleness bound, with a few of many clients, and with a quorum."""

import heapq
from collections import Counter

import numpy as np
import pytest

from stalesim.simulator.catalogue.protocols.buffered import Buffered
from stalesim.simulator.files.timeline import Kind, Outcome
from stalesim.simulator.world.clients import Clients
from stalesim.simulator.world.laws.distributions import Constant, Scipy
from stalesim.simulator.world.selection import Selection
from tests.support import everything, played
from tests.unit.protocols.replay import (
    check_conservation,
    kinds,
    replay_registers,
    stale,
    workers,
)

SECONDS = (1.0, 1.3717, 2.1131, 7.3019, 29.7077)
"""No two sums of these meet within the first 300 s, so that ties decide nothing."""


def twin(
    size: int, bound: int, beyond: str, until: float
) -> list[tuple[float, tuple[int, ...], tuple[int, ...]]]:
    """Returns time, clients and staleness of each version, by a heap of arrivals."""
    version, versions = 0, []
    buffer: list[tuple[int, int]] = []
    heap = [(seconds, client, 0) for client, seconds in enumerate(SECONDS)]
    heapq.heapify(heap)
    while heap[0][0] <= until:
        time, client, read = heapq.heappop(heap)
        if version - read <= bound:
            buffer.append((client, version - read))
            late = any(version + 1 - other > bound for _, _, other in heap)
            if len(buffer) >= size and not (beyond == "wait" and late):
                who, how = zip(*sorted(buffer), strict=True)
                versions.append((time, who, how))
                version, buffer = version + 1, []
                if beyond == "stop":
                    heap = [
                        (time + SECONDS[other], other, version)
                        if version - since > bound
                        else (end, other, since)
                        for end, other, since in heap
                    ]
                    heapq.heapify(heap)
        heapq.heappush(heap, (time + SECONDS[client], client, version))
    return versions


@pytest.mark.parametrize("beyond", ["reject", "stop", "wait"])
@pytest.mark.parametrize(("size", "bound"), [(1, 3), (2, 1), (3, 2), (4, 1)])
def test_versions_are_those_of_a_heap(size: int, bound: int, beyond: str) -> None:
    protocol = Buffered(size=size, staleness_bound=bound, beyond=beyond)
    clients = Clients(compute=Constant(value=SECONDS))
    rows, jobs, _ = everything(played(protocol, clients, len(SECONDS), time=299.5))
    applied = jobs.outcome == Outcome.APPLIED
    found = []
    for commit in range(1, int(jobs.commit[applied].max()) + 1):
        of = applied & (jobs.commit == commit)
        order = np.lexsort(
            (stale(jobs)[jobs.commit[applied] == commit], jobs.client[of])
        )
        found.append(
            (
                rows.time[rows.kind == Kind.COMMIT][commit - 1],
                tuple(jobs.client[of][order].tolist()),
                tuple((commit - 1 - jobs.read_version[of])[order].tolist()),
            )
        )
    wanted = twin(size, bound, beyond, 299.5)
    assert len(found) == len(wanted) > 10
    for one, other in zip(found, wanted, strict=True):
        assert one[0] == pytest.approx(other[0], rel=1e-9)
        assert one[1:] == other[1:]
    assert stale(jobs).max() == bound
    check_conservation(rows, jobs, len(SECONDS))
    replay_registers(rows)


@pytest.mark.parametrize("beyond", ["reject", "stop", "wait"])
def test_a_few_of_many_are_at_work_under_a_bound(beyond: str) -> None:
    """Plato's, FLSim's and NVFlare's settings: a buffer, a bound, and a selection."""
    protocol = Buffered(size=5, staleness_bound=3, beyond=beyond)
    clients = Clients(
        compute=Scipy(law="lognorm", s=1.5), selection=Selection(in_flight=20)
    )
    rows, jobs, _ = everything(played(protocol, clients, 200, rounds=300))
    assert stale(jobs).max() == 3
    assert (jobs.outcome == Outcome.IN_FLIGHT).sum() <= 20
    sizes = Counter(jobs.commit[jobs.outcome == Outcome.APPLIED].tolist())
    lost = {"reject": Outcome.REJECTED, "stop": Outcome.STOPPED}.get(beyond)
    if lost is None:
        assert min(sizes.values()) == 5 < max(sizes.values())
        assert not np.isin(jobs.outcome, (Outcome.REJECTED, Outcome.STOPPED)).any()
    else:
        assert set(sizes.values()) == {5}
        assert (jobs.outcome == lost).sum() > 50
    replay_registers(rows)


def test_a_lost_job_is_not_waited_for() -> None:
    """Client 2 leaves before it arrives; what waited for it is applied then."""
    clients = Clients(compute=Constant(value=(1, 1.5, 50)), leave=(99, 99, 20.25))
    protocol = Buffered(size=2, staleness_bound=1, beyond="wait")
    rows, _, _ = everything(played(protocol, clients, 3, time=24))
    commits = rows.time[rows.kind == Kind.COMMIT]
    assert commits.tolist()[:2] == [1.5, 20.25]


def test_a_grace_begins_when_the_quorum_is_there() -> None:
    clients = Clients(compute=Constant(value=(1, 1.25, 1.5, 3)))
    rows, _, _ = everything(played(Buffered(size=2, grace=0.5), clients, 4, time=3.5))
    con, com = "CONTRIBUTE", "COMMIT"
    assert kinds(rows) == [con, con, con, com, con, con, con, con, com]
    # The second arrival is at 1.25 s, so that the first version is made at 1.75 s.
    assert rows.time.tolist() == [1, 1.25, 1.5, 1.75, 2.75, 3, 3, 3.25, 3.5]
    assert workers(rows)[3] == ()


def test_a_quorum_of_one_is_a_grace_alone() -> None:
    clients = Clients(compute=Scipy(law="lognorm", s=1))
    one, *_ = everything(played(Buffered(size=1, grace=0.7), clients, 6, rounds=50))
    alone, *_ = everything(played(Buffered(grace=0.7), clients, 6, rounds=50))
    np.testing.assert_array_equal(one.time, alone.time)
