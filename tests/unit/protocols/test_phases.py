"""Phases: who commits when, how long a round is, and how old what a step uses is."""

from collections import defaultdict

import numpy as np
import pytest

from stalesim.simulator.catalogue.protocols.phases import Phases
from stalesim.simulator.files.timeline import Kind, Outcome, Rows
from stalesim.simulator.world.clients import (
    Clients,
)
from stalesim.simulator.world.laws.distributions import Constant, Scipy
from tests.support import everything, played
from tests.unit.protocols.replay import (
    check_conservation,
    kinds,
    replay_registers,
    stale,
    workers,
)

SOON = Scipy(law="expon")


def test_everyone_contributes_and_then_everyone_s_next_arrival_commits() -> None:
    clients = Clients(compute=Constant(value=(1, 2.5)))
    rows, jobs, _ = everything(played(Phases(), clients, 2, time=7.6))
    con, com = "CONTRIBUTE", "COMMIT"
    # At 2.5 s client 1 ends the first phase; at 3 s client 0 makes the second commit.
    # Round 1: client 0 at 4 s; at 5 s client 1 ends the phase, before client 0 arrives.
    assert rows.time.tolist() == [1, 2, 2.5, 3, 4, 5, 5, 6, 7, 7.5]
    assert kinds(rows) == [con, con, com, com, con, com, com, con, con, com]
    assert workers(rows)[2:4] == [(1,), (0,)]
    assert rows.round.tolist()[:4] == [0, 0, 0, 0]
    check_conservation(rows, jobs, 2)


def ages_of_use(rows: Rows, n: int) -> tuple[dict[tuple[int, int], int], int, int]:
    """Returns which version uses a job first, and its largest delay then, or later."""
    current: dict[int, list[int]] = defaultdict(list)
    following: dict[int, list[int]] = defaultdict(list)
    served: set[int] = set()
    used: dict[tuple[int, int], int] = {}
    first = most = 0
    for row in range(rows.time.size):
        client, job = int(rows.worker[row, 0]), int(rows.job[row, 0])
        entry = (int(rows.read_version[row, 0]), job)
        (following if client in served else current)[client].append(entry)
        if rows.kind[row] != Kind.COMMIT:
            assert client in served or len(current) < n  # or it would end the phase
            continue
        version = int(rows.version[row])
        for who, entries in current.items():
            for read, number in entries:
                most = max(most, version - read)
                if (who, number) not in used:
                    first = max(first, version - read)
                    used[who, number] = version
        served.add(client)
        if len(served) == n:
            current, following = following, defaultdict(list)
            served = set()
    return used, first, most


@pytest.mark.parametrize("seed", range(12))
def test_rounds_and_delays_are_within_the_bounds_of_the_theory(seed: int) -> None:
    """A round takes at most 2 tau_n, and all that a step uses is at most 2n - 2 old.

    Counts have a harmonic mean of at least tau_n / (2 mean(tau)).

    Source: methods.md, section 5; the bound on delays is attained.
    """
    r = np.random.default_rng(seed)
    n = int(r.integers(2, 9))
    tau = np.sort(r.uniform(0.2, 5, n))
    clients = Clients(compute=Constant(value=tuple(tau.tolist())))
    rows, jobs, _ = everything(played(Phases(), clients, n, rounds=40))
    ends = rows.time[rows.kind == Kind.COMMIT][n - 1 :: n]
    assert np.diff(ends, prepend=0).max() <= 2 * tau[-1] * (1 + 1e-12)
    used, first, most = ages_of_use(rows, n)
    applied = jobs.outcome == Outcome.APPLIED
    columns = (jobs.client, jobs.job, jobs.commit)
    for client, job, commit in zip(*(c[applied] for c in columns), strict=True):
        assert used[client, job] == commit - 1
    assert most == 2 * n - 2
    assert first == n - 1
    assert stale(jobs).max() == first
    for round_ in range(1, 40):
        own = (rows.round == round_) & (rows.kind != Kind.COMMIT)
        counts = np.bincount(rows.worker[own, 0], minlength=n) + 1
        assert n / (1 / counts).sum() >= tau[-1] / (2 * tau.mean()) * (1 - 1e-12)
    replay_registers(rows)
    check_conservation(rows, jobs, n)
