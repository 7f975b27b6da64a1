"""Stale-synchronous parallel: who may begin when, against a heap of arrivals."""

import heapq

import pytest

from stalesim.simulator.catalogue.protocols.ssp import StaleSynchronous
from stalesim.simulator.catalogue.protocols.synchronous import Synchronous
from stalesim.simulator.world.clients import Clients
from stalesim.simulator.world.laws.distributions import Constant, Scipy
from tests.support import everything, played
from tests.unit.protocols.replay import (
    check_conservation,
    replay_registers,
    stale,
    workers,
)

SECONDS = (1.0, 1.3717, 2.1131, 7.3019, 29.7077)
"""No two sums of these meet within the first 300 s, so that ties decide nothing."""
K = len(SECONDS)


def twin(slack: int, until: float) -> list[tuple[float, int, int]]:
    """Returns time, client and staleness of each commit (Ho et al. 2013, section 2)."""
    clocks, version, made = [0] * K, 0, []
    heap = [(seconds, client, 0) for client, seconds in enumerate(SECONDS)]
    ahead: list[int] = []
    while heap[0][0] <= until:
        time, client, read = heapq.heappop(heap)
        made.append((time, client, version - read))
        version += 1
        clocks[client] += 1
        ahead.append(client)
        for one in [c for c in ahead if clocks[c] <= min(clocks) + slack]:
            ahead.remove(one)
            heapq.heappush(heap, (time + SECONDS[one], one, version))
    return made


@pytest.mark.parametrize("slack", [0, 1, 3, 50])
def test_commits_are_those_of_a_heap(slack: int) -> None:
    clients = Clients(compute=Constant(value=SECONDS))
    rows, jobs, _ = everything(
        played(StaleSynchronous(slack=slack), clients, K, time=299)
    )
    found = [
        (time, who, int(rows.version[i] - rows.read_version[i, 0]))
        for i, (time, (who,)) in enumerate(zip(rows.time, workers(rows), strict=True))
    ]
    wanted = twin(slack, 299)
    assert len(found) == len(wanted) > 40
    assert [each[1:] for each in found] == [each[1:] for each in wanted]
    assert rows.time == pytest.approx([each[0] for each in wanted], rel=1e-9)
    assert stale(jobs).max() <= (K - 1) * (2 * slack + 1)


def test_without_slack_rounds_are_as_long_as_their_slowest_job() -> None:
    """The same draws as in rounds; the last commit of each ends it."""
    clients = Clients(compute=Scipy(law="expon"))
    rows, _, _ = everything(played(StaleSynchronous(slack=0), clients, K, commits=200))
    rounds, _, _ = everything(played(Synchronous(), clients, K, commits=40))
    assert rows.time[K - 1 :: K] == pytest.approx(rounds.time, rel=1e-12)


def test_who_has_left_is_not_waited_for() -> None:
    """The slowest leaves during its first job, and the others have waited for it."""
    clients = Clients(compute=Constant(value=SECONDS), leave=(1e6, 1e6, 1e6, 1e6, 20))
    rows, jobs, _ = everything(played(StaleSynchronous(slack=0), clients, K, time=60))
    expected = [20 + turn * SECONDS[3] for turn in range(1, 6)]
    assert [rows.time[i] for i in range(7, 24, 4)] == pytest.approx(expected)
    check_conservation(rows, jobs, K)
    replay_registers(rows)
