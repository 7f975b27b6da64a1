"""Collect: who contributes to a round, when it ends, and what becomes of the others."""

from fractions import Fraction
from math import exp, floor
from typing import Any

import numpy as np
import pytest

from stalesim.simulator.catalogue.protocols.collect.collect import Collect
from stalesim.simulator.catalogue.protocols.collect.rules import HarmonicMean
from stalesim.simulator.catalogue.protocols.synchronous import Synchronous
from stalesim.simulator.files.timeline import Kind, Outcome
from stalesim.simulator.parts.base import LocatedError
from stalesim.simulator.world.clients import (
    Clients,
)
from stalesim.simulator.world.laws.distributions import Constant, Scipy
from tests.support import everything, played
from tests.unit.protocols.replay import (
    check_conservation,
    kinds,
    replay_registers,
    workers,
)

CON, COM = "CONTRIBUTE", "COMMIT"


def test_a_round_ends_with_the_count_and_late_arrivals_are_rejected() -> None:
    clients = Clients(compute=Constant(value=(1, 2, 2.5)))
    rows, jobs, _ = everything(played(Collect(count=3), clients, 3, time=6.0))
    # Round 0: clients 0, 0, 1 arrive by 2 s. Client 2 is late at 2.5 s.
    assert rows.time.tolist()[:3] == [1, 2, 2]
    assert kinds(rows)[:3] == [CON, CON, COM]
    assert workers(rows)[:3] == [(1 - 1,), (1,), (0,)]
    rejected = jobs.outcome == Outcome.REJECTED
    assert jobs.client[rejected][0] == 2
    assert jobs.arrived_time[rejected][0] == 2.5
    assert (rows.read_version[:, 0] == rows.version).all()
    replay_registers(rows)
    check_conservation(rows, jobs, 3)


def test_jobs_are_stopped_at_the_end_of_a_round() -> None:
    clients = Clients(compute=Constant(value=(1, 2, 2.5)))
    plan = played(Collect(count=3, late="stop"), clients, 3, time=6.0)
    rows, jobs, _ = everything(plan)
    # At 2 s client 1 begins another job, and client 0 ends the round; so again at 4 s.
    assert rows.time.tolist() == [1, 2, 2, 3, 4, 4, 5, 6, 6]
    stopped = jobs.outcome == Outcome.STOPPED
    assert jobs.client[stopped].tolist()[:4] == [1, 2, 1, 2]
    assert jobs.read_time[stopped].tolist()[:4] == [2, 0, 4, 2]
    assert not (jobs.outcome == Outcome.REJECTED).any()
    assert np.isnan(jobs.arrived_time[stopped]).all()
    check_conservation(rows, jobs, 3)


def test_a_restart_takes_its_time() -> None:
    clients = Clients(compute=Constant(value=(1, 10)), restart=Constant(value=0.5))
    plan = played(Collect(count=2, late="stop"), clients, 2, time=4.0)
    _, jobs, _ = everything(plan)
    late = jobs.client == 1
    assert jobs.read_time[late].tolist() == [0, 2.5]


@pytest.mark.parametrize("size", [1, 7, 60])
def test_rounds_with_stops_are_as_long_as_the_formula_says(size: int) -> None:
    """Least t with sum_i floor(t / tau_i) >= S, between half the harmonic bound and it.

    Without stops it is at most twice as long: in t all clients i have at most one job
    of an old round to end, and floor(2 t / tau_i) - 1 >= floor(t / tau_i) where that is
    1 or more.

    Source: methods.md, section 2; ties by exact ticks.
    """
    for seed in range(40):
        check_a_round_with_stops(seed, size)


def check_a_round_with_stops(seed: int, size: int) -> None:
    r = np.random.default_rng(seed)
    n = int(r.integers(1, 12))
    ticks = r.integers(1, 60, n)
    clients = Clients(compute=Constant(value=tuple((ticks / 4).tolist())))
    plan = played(Collect(count=size, late="stop"), clients, n, rounds=5)
    rows, jobs, _ = everything(plan)
    ends = rows.time[rows.kind == Kind.COMMIT]
    tau = [Fraction(int(t), 4) for t in ticks]
    moments = sorted({t * k for t in tau for k in range(1, size + 1)})
    long = next(t for t in moments if sum(floor(t / one) for one in tau) >= size)
    np.testing.assert_array_equal(np.diff(ends, prepend=0), float(long))
    fast = np.sort(ticks / 4)
    m = np.arange(1, n + 1)
    bound = ((size + m) / np.cumsum(1 / fast)).min()
    assert 0.5 * bound <= float(long) <= bound
    check_conservation(rows, jobs, n)
    rows, *_ = everything(played(Collect(count=size), clients, n, rounds=5))
    rounds = np.diff(rows.time[rows.kind == Kind.COMMIT], prepend=0)
    assert rounds[0] == float(long)
    assert (float(long) <= rounds).all()
    assert (rounds <= 2 * float(long)).all()


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("mean", [1, 2.5, 8])
def test_a_round_of_means_is_within_its_bounds(seed: int, mean: float) -> None:
    """The harmonic mean is met by the last arrival, and the time is of Malenia's order.

    The ratio to tau_n + mean(tau) S / n is in [1/2, 1]: counts b_i <= t / tau_i have a
    harmonic mean of at most t / mean(tau), and t is at least tau_n; and after the bound
    b_i >= mean(tau) S / n / tau_i. Source: methods.md, section 3.
    """
    r = np.random.default_rng(seed)
    n = int(r.integers(2, 9))
    tau = r.uniform(0.1, 5, n)
    clients = Clients(compute=Constant(value=tuple(tau.tolist())))
    protocol = Collect(harmonic_mean=mean, late="stop")
    rows, jobs, _ = everything(played(protocol, clients, n, rounds=4))
    for number in range(4):
        own = rows.worker[rows.round == number, 0]
        counts = np.bincount(own, minlength=n)
        assert n / (1 / counts).sum() >= mean
        before = np.bincount(own[:-1], minlength=n)
        assert (before == 0).any() or n / (1 / before).sum() < mean
    rounds = np.diff(rows.time[rows.kind == Kind.COMMIT], prepend=0)
    bound = tau.max() + tau.mean() * mean
    assert (rounds <= bound * (1 + 1e-12)).all()
    assert (rounds >= 0.5 * bound * (1 - 1e-12)).all()
    check_conservation(rows, jobs, n)


def test_the_mean_of_counts_is_exact_where_rounding_could_decide() -> None:
    rule = HarmonicMean(3, [0, 1, 2])
    done = [rule.tried(c, arrived=True) for c in (0, 0, 0, 1, 1, 1, 2, 2, 2)]
    assert done == [False] * 8 + [True]


def test_everyone_and_stops_is_synchronous() -> None:
    """The same rounds end at the same times with the same jobs."""
    clients = Clients(compute=Scipy(law="expon"))
    protocol = Collect(count=6, repeats=False, late="stop")
    rows, _, _ = everything(played(protocol, clients, 6, rounds=30))
    wanted, _, _ = everything(played(Synchronous(), clients, 6, rounds=30))
    ends = rows.kind == Kind.COMMIT
    np.testing.assert_array_equal(rows.time[ends], wanted.time)
    for number in range(30):
        own = rows.round == number
        assert sorted(rows.worker[own, 0].tolist()) == list(range(6))
        assert (rows.job[own, 0] == number).all()


def test_a_batch_of_one_with_stops_is_the_fastest_client_alone() -> None:
    clients = Clients(compute=Constant(value=(3, 1.25, 2)))
    plan = played(Collect(count=1, late="stop"), clients, 3, commits=40)
    rows, jobs, _ = everything(plan)
    assert rows.time.tolist() == [1.25 * (k + 1) for k in range(40)]
    assert set(rows.worker[:, 0].tolist()) == {1}
    assert (jobs.outcome[jobs.client != 1] != Outcome.APPLIED).all()


def test_the_fastest_arrivals_end_a_round_and_the_others_are_stopped() -> None:
    """With stops and exponential times a round lasts sum 1 / (n - i) on average.

    All jobs are fresh at its start, so rounds are independent order statistics.
    """
    n, m, rounds = 10, 4, 4000
    clients = Clients(compute=Scipy(law="expon"))
    protocol = Collect(count=m, repeats=False, late="stop")
    rows, jobs, _ = everything(played(protocol, clients, n, rounds=rounds))
    ends = rows.time[rows.kind == Kind.COMMIT]
    mean = sum(1 / (n - i) for i in range(m))
    sd = sum(1 / (n - i) ** 2 for i in range(m)) ** 0.5
    assert abs(ends[-1] / rounds - mean) < 4 * sd / rounds**0.5
    assert (jobs.outcome == Outcome.STOPPED).sum() == (n - m) * rounds
    check_conservation(rows, jobs, n)


def test_trials_are_given_up_after_their_time() -> None:
    """Of B_i trials those arrive that are short enough; a round waits for all.

    Source: methods.md, section 7: E(batch) = sum p_i B_i.
    """
    clients = Clients(compute=Scipy(law="expon", loc=1))
    protocol = Collect(quota=(3, 1), allotted=1.5)
    rows, jobs, _ = everything(played(protocol, clients, 2, rounds=3000))
    assert (rows.kind == Kind.COMMIT).sum() == 3000
    arrived = jobs.outcome == Outcome.APPLIED
    stopped = jobs.outcome == Outcome.STOPPED
    for client, quota in ((0, 3), (1, 1)):
        mine = jobs.client == client
        assert abs((mine & (arrived | stopped)).sum() - 3000 * quota) <= quota
    p = 1 - np.exp(-0.5)
    share = arrived.sum() / (arrived | stopped).sum()
    assert abs(share - p) < 4 * (p * (1 - p) / 12000) ** 0.5
    assert (jobs.arrived_time - jobs.read_time)[arrived].max() <= 1.5
    rounds = np.diff(rows.time[rows.kind == Kind.COMMIT], prepend=0)
    assert rounds.max() <= 3 * 1.5 + 1e-9
    check_conservation(rows, jobs, 2)


@pytest.mark.parametrize(("n", "trials"), [(1, 10), (10, 4)])
def test_trials_pay_for_one_client_of_heavy_tails_and_not_for_ten(n, trials) -> None:
    """Seconds of a round against Rennala's with the same mean batch, p n B = S.

    A job takes 1 s and a time of Lomax(1.1), a trial at most its median m more: p is
    1/2. Rounds are independent, since all begin anew; each sign holds by five standard
    errors. For one client, whose times have no variance, Rennala's rounds are cut at
    100 s, which can but shorten them; of ten all must be slow for a round to be, and
    the variance is finite. E min(X, m) = 10 (1 - (1 + m)^-0.1).

    Source: methods.md, section 7, against "consistently outperforms".
    """
    rounds, median = 400, 2 ** (1 / 1.1) - 1
    clients = Clients.model_validate({"number": n, "world": "lomax"})
    means, errors = [], []
    for protocol in (
        Collect(quota=trials, allotted=1 + median),
        Collect(count=trials * n // 2, late="stop"),
    ):
        rows, *_ = everything(played(protocol, clients, n, rounds=rounds))
        took = np.diff(rows.time[rows.kind == Kind.COMMIT], prepend=0)
        took = np.minimum(took, 100) if n == 1 else took
        means.append(took.mean())
        errors.append(took.std(ddof=1) / rounds**0.5)
    difference = (means[1] - means[0]) * (1 if n == 1 else -1)
    assert difference > 5 * np.hypot(*errors)
    if n == 1:
        trial = 1 + 10 * (1 - (1 + median) ** -0.1)
        assert abs(means[0] - trials * trial) < 5 * errors[0]


def test_a_trial_that_takes_just_its_time_is_finished() -> None:
    clients = Clients(compute=Constant(value=2))
    _, jobs, _ = everything(played(Collect(quota=1, allotted=2), clients, 2, rounds=3))
    assert (jobs.outcome[jobs.outcome != Outcome.IN_FLIGHT] == Outcome.APPLIED).all()


def test_a_round_of_nothing_is_a_commit_of_nothing() -> None:
    clients = Clients(compute=Constant(value=2))
    rows, jobs, _ = everything(
        played(Collect(quota=1, allotted=1), clients, 2, rounds=3)
    )
    assert workers(rows) == [(), (), ()]
    assert rows.time.tolist() == [1, 2, 3]
    assert set(jobs.outcome.tolist()) <= {Outcome.STOPPED, Outcome.IN_FLIGHT}


def test_a_clock_ends_a_round_but_never_without_a_contribution() -> None:
    clients = Clients(compute=Constant(value=(1, 3)))
    rows, *_ = everything(played(Collect(seconds=2.0), clients, 2, time=6.0))
    # What arrives at 2 s is in the first round; its job of version 1 at 3 s is late.
    assert rows.time[rows.kind == Kind.COMMIT].tolist() == [2, 4, 6]
    slow = Clients(compute=Constant(value=5))
    rows, *_ = everything(played(Collect(seconds=2.0), slow, 2, rounds=2))
    assert rows.time[rows.kind == Kind.COMMIT].tolist() == [5, 10]
    # Both arrive at that instant, and both count.
    assert workers(rows) == [(0,), (1,), (), (0,), (1,), ()]


def test_only_the_fastest_are_asked() -> None:
    clients = Clients(compute=Constant(value=(5, 1, 3, 2)))
    protocol = Collect(count=2, fastest=2, late="stop")
    _, jobs, _ = everything(played(protocol, clients, 4, rounds=5))
    assert set(jobs.client.tolist()) == {1, 3}


MORE_TO_A_JOB = [
    {"compute_per": "step"},
    {"upload": {"bandwidth": 1}},
    {"slowdowns": [{"kind": "random", "factor": 3}]},
]


@pytest.mark.parametrize("more", MORE_TO_A_JOB, ids=str)
def test_trials_in_time_are_counted_by_the_law_where_it_is_all_that_counts(
    more: dict[str, Any],
) -> None:
    trials = Collect(quota=(3, 5), allotted=(1.0, 2.0))
    expon = {"compute": {"law": "expon", "scale": "m"}}
    found = trials.expected_batch(Clients.model_validate(expon), 2, 1)
    # Both are given one mean: m seconds of a law of mean m.
    assert found == pytest.approx((3 + 5) * (1 - exp(-1)), abs=1e-4)
    with pytest.raises(LocatedError, match=f"clients.{next(iter(more))}"):
        trials.expected_batch(Clients.model_validate(expon | more), 2, 1)


def test_trials_that_are_never_in_time_are_refused() -> None:
    clients = Clients.model_validate({"compute": {"law": "constant", "value": "m"}})
    trials = Collect(quota=(0, 5), allotted=1.5)
    says = r"got 1.5 s for client 2, whose shortest.* 2 s"
    with pytest.raises(LocatedError, match=says):
        trials.expected_batch(clients, 2, 1)
    some = Collect(quota=(1, 5), allotted=1.5)
    assert some.expected_batch(clients, 2, 1) == 1
