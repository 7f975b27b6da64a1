"""A staleness bound that grows: against a heap of arrivals, and as fast as proved."""

import heapq
from math import ceil, isqrt
from typing import Any

import numpy as np
import pytest

from stalesim.simulator.catalogue.protocols.growing_bound import GrowingBound
from stalesim.simulator.files.timeline import Outcome
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


def twin(beyond: str, commits: int) -> tuple[list[tuple[float, int, int]], list[int]]:
    """Returns time, client and staleness of each commit, and who was lost, in order.

    `LMO Ringmaster` without and with stops, R_0 = 1 and R_k = floor(1 / alpha_k) with
    alpha_k = 1 / sqrt(k).
    """
    heap = [(seconds, client, 0) for client, seconds in enumerate(SECONDS)]
    made: list[tuple[float, int, int]] = []
    lost: list[int] = []
    while len(made) < commits:
        time, client, read = heapq.heappop(heap)
        k, fresh = len(made), [client]
        if k - read < (isqrt(k) if k else 1):
            made.append((time, client, k - read))
            if beyond == "stop":
                late = [e for e in heap if k + 1 - e[2] >= isqrt(k + 1)]
                heap = [each for each in heap if each not in late]
                fresh += [who for _, who, _ in late]
                lost += sorted(who for _, who, _ in late)
        else:
            lost.append(client)
        heap += [(time + SECONDS[who], who, len(made)) for who in fresh]
        heapq.heapify(heap)
    return made, lost


@pytest.mark.parametrize("beyond", ["reject", "stop"])
def test_commits_are_those_of_a_heap(beyond: Any) -> None:
    clients, protocol = Clients(compute=Constant(value=SECONDS)), GrowingBound
    rows, jobs, _ = everything(played(protocol(beyond=beyond), clients, K, commits=150))
    made, lost = twin(beyond, 150)
    found = [
        (who, int(rows.version[i] - rows.read_version[i, 0]))
        for i, (who,) in enumerate(workers(rows))
    ]
    assert found == [each[1:] for each in made]
    assert rows.time == pytest.approx([each[0] for each in made], rel=1e-9)
    gone = Outcome.REJECTED if beyond == "reject" else Outcome.STOPPED
    counts = np.bincount(jobs.client[jobs.outcome == gone], minlength=K)
    assert np.abs(counts - np.bincount(lost, minlength=K)).max() <= 1  # at the end
    assert len(lost) > 10
    check_conservation(rows, jobs, K)
    replay_registers(rows)


@pytest.mark.parametrize("beyond", ["reject", "stop"])
@pytest.mark.parametrize("seed", range(6))
def test_commits_are_as_fast_as_proved(seed: int, beyond: Any) -> None:
    """K commits take at most sum_r N_r t(r) seconds, t(r) = 2 min_m A_m (1 + r / m).

    N_r is the number of commits with R_k = r over r, rounded up. Source: the lemma on
    thresholds that do not fall of the authors' draft (vectozavr/ringmaster-lmo), by
    Lemma 4.1 of Maranjyan, Tyurin and Richtarik, Ringmaster ASGD (2025).
    """
    r = np.random.default_rng(seed)
    n, number = int(r.integers(2, 30)), int(r.integers(50, 900))
    tau = np.sort(r.uniform(0.1, 10, n))
    clients = Clients(compute=Constant(value=tuple(tau.tolist())))
    protocol = GrowingBound(beyond=beyond)
    rows, jobs, _ = everything(played(protocol, clients, n, commits=number))
    thresholds, m = [max(1, isqrt(k)) for k in range(number)], np.arange(1, n + 1)
    longest = sum(
        ceil(thresholds.count(R) / R) * (2 * (1 + R / m) * m / np.cumsum(1 / tau)).min()
        for R in {*thresholds}
    )
    assert rows.time[-1] <= longest
    staleness = rows.version - rows.read_version[:, 0]
    assert (staleness < thresholds).all()
    assert staleness.max() > 1
    if beyond == "stop":
        assert not (jobs.outcome == Outcome.REJECTED).any()


def test_the_first_commits_are_the_fastest_client_s() -> None:
    """R_k is 1 up to k = 3, so that only what was read just before counts."""
    clients = Clients(compute=Constant(value=(1.0, 1.5)))
    rows, jobs, _ = everything(played(GrowingBound(), clients, 2, commits=6))
    assert workers(rows)[:4] == [(0,)] * 4
    assert stale(jobs).max() == 1
    assert rows.time[:4].tolist() == [1, 2, 3, 4]


def test_jobs_of_random_times_end_in_one_way() -> None:
    clients = Clients(compute=Scipy(law="expon", scale=[1.0, 3.0, 9.0]))
    rows, jobs, _ = everything(
        played(GrowingBound(beyond="stop"), clients, 3, time=300)
    )
    check_conservation(rows, jobs, 3)
    replay_registers(rows)
