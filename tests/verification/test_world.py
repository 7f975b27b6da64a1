"""Staleness, selection, bounds and rounds of a played world against closed forms.

Where an estimate comes from a correlated run, its standard error is that of the means
of successive batches, each much longer than the run's memory. Five standard errors
bound every difference, unless a comment says otherwise.
"""

from dataclasses import replace
from functools import cache
from math import prod, sqrt
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.stats

import stalesim
from stalesim.analysis import staleness, theory
from stalesim.simulator.catalogue.protocols.asynchronous import Asynchronous
from stalesim.simulator.catalogue.protocols.buffered import Buffered
from stalesim.simulator.catalogue.protocols.collect.collect import Collect
from stalesim.simulator.catalogue.protocols.synchronous import Synchronous
from stalesim.simulator.catalogue.protocols.t_synchronous import TSynchronous
from stalesim.simulator.files.timeline import NO_WORKER, Jobs, Outcome, Rows, StopReason
from stalesim.simulator.world.clients import Clients, Group, Link, Selection
from stalesim.simulator.world.laws.distributions import Constant, Scipy
from stalesim.simulator.world.workload import Workload
from tests.oracles import queues as oracles
from tests.support import everything, played

EXPONENTIAL = Scipy(law="expon")
LOGNORMAL = Scipy(law="lognorm", parameters={"s": 1.0})
HEAVY = Scipy(law="pareto", parameters={"b": 2.5})
UNIFORM = Scipy(law="uniform")
LAWS = [LOGNORMAL, HEAVY, UNIFORM, Constant(value=1)]
NAMES = ["lognormal", "pareto", "uniform", "constant"]
BATCHES = 40


def play(protocol: Any, clients: Clients, K: int, **stop: Any) -> tuple[Rows, Jobs]:
    rows, jobs, reason = everything(played(protocol, clients, K, **stop))
    assert reason != StopReason.STALLED
    return rows, jobs


def staleness_of(rows: Rows) -> np.ndarray:
    """Returns the staleness of each commit of one contribution."""
    return rows.version - rows.read_version[:, 0]


def agrees(values: np.ndarray, expected: float) -> None:
    """Asserts that a mean is as expected, by the means of successive batches."""
    size = len(values) // BATCHES
    means = np.asarray(values)[-size * BATCHES :].reshape(BATCHES, size).mean(axis=1)
    bound = 5 * means.std(ddof=1) / sqrt(BATCHES)
    assert means.mean() == pytest.approx(expected, abs=bound)
    assert bound < 0.2 * expected  # or the test would say nothing


def check_staleness_accounts(rows: Rows, jobs: Jobs, in_flight: int) -> None:
    """Asserts the exact sum of all staleness.

    Every commit ages each of the other C - 1 jobs by one. So what the applied jobs have
    aged, and those that are under way have aged so far, is C - 1 per commit.
    """
    applied = jobs.outcome == Outcome.APPLIED
    under_way = jobs.outcome == Outcome.IN_FLIGHT
    assert under_way.sum() == in_flight
    commits = rows.time.size
    ages = (jobs.commit - 1 - jobs.read_version)[applied].sum()
    ages += (commits - jobs.read_version)[under_way].sum()
    assert ages == (in_flight - 1) * commits
    np.testing.assert_array_equal(
        np.sort((jobs.commit - 1 - jobs.read_version)[applied]),
        np.sort(staleness_of(rows)),
    )


@pytest.mark.parametrize("law", LAWS, ids=NAMES)
def test_mean_staleness_without_idle(law: Any) -> None:
    C, commits = 12, 20_000
    rows, jobs = play(Asynchronous(), Clients(compute=law), C, commits=commits)
    check_staleness_accounts(rows, jobs, C)
    staleness = staleness_of(rows)
    # What is under way at the end is missing: C jobs, none older than the run's
    # largest staleness but by chance, or twice that.
    expected = theory.mean_staleness_in_flight(C)
    edge = 2 * C * staleness.max() / commits
    assert expected - edge <= staleness.mean() <= expected
    if isinstance(law, Constant):
        assert (staleness[C:] == C - 1).all()


@pytest.mark.parametrize(
    ("refill", "size"), [(2, 1), (6, 1), (1, 5), (4, 6), (5, 5), (6, 4)]
)
@pytest.mark.parametrize("law", LAWS, ids=NAMES)
def test_mean_staleness_of_places_that_are_filled_together(
    law: Any, refill: int, size: int
) -> None:
    C, arrivals = 6, 12_000
    selection = Selection(in_flight=C, refill=refill)
    clients = Clients(compute=law, selection=selection)
    protocol = Buffered(size=size) if size > 1 else Asynchronous()
    _, jobs = play(protocol, clients, 15, commits=arrivals // size)
    applied = jobs.outcome == Outcome.APPLIED
    staleness = (jobs.commit - 1 - jobs.read_version)[applied]
    expected = theory.mean_staleness_buffered(C, size, refill)
    # Of jobs under way at the end nothing is counted, as above.
    edge = 2 * C * staleness.max() / arrivals
    assert abs(staleness.mean() - expected) <= edge


@pytest.mark.parametrize("by", ["uniform", "weighted", "cyclic"])
@pytest.mark.parametrize("law", LAWS, ids=NAMES)
def test_mean_staleness_under_selection(by: Any, law: Any) -> None:
    C, K, commits = 6, 15, 5_000
    clients = Clients(
        compute=law, selection=Selection(in_flight=C, by=by, weights="1 + m % 3")
    )
    rows, jobs = play(Asynchronous(), clients, K, commits=commits)
    check_staleness_accounts(rows, jobs, C)


def inclusion(weights: np.ndarray, number: int) -> np.ndarray:
    """Returns each client's chance to be under way, among `number` who are.

    Clients who compute for independent exponential times of one rate are replaced by
    one of those not under way (who has just ended included), with a chance in
    proportion to its weight. From B to B - i + j and back the candidates are the same,
    all but B - i, so that pi(B) w_j = pi(B - i + j) w_i: the law of B is the product
    of its weights, and client i's chance w_i e_{C-1}(w without i) / e_C(w), where e are
    elementary symmetric polynomials, the coefficients of prod (1 + w x).
    """
    whole = np.polynomial.polynomial.polyfromroots(-1 / weights) * prod(weights)
    others = [
        np.polynomial.polynomial.polyfromroots(-1 / rest) * prod(rest)
        for rest in (np.delete(weights, i) for i in range(weights.size))
    ]
    return weights * np.array([p[number - 1] for p in others]) / whole[number]


@pytest.mark.parametrize("C", [1, 3, 6])
@pytest.mark.parametrize("by", ["uniform", "weighted"])
def test_frequencies_of_selection(by: Any, C: int) -> None:
    K = 8
    weights = np.arange(1.0, K + 1) if by == "weighted" else np.ones(K)
    clients = Clients(
        compute=EXPONENTIAL, selection=Selection(in_flight=C, by=by, weights="m")
    )
    rows, _ = play(Asynchronous(), clients, K, commits=40_000)
    # All compute for as long, so commits are as frequent as being under way.
    expected = inclusion(weights, C) / C
    assert expected.sum() == pytest.approx(1)
    if C == 1:  # proportional to the weights where nobody is busy; else less unequal
        np.testing.assert_allclose(expected, weights / weights.sum())
    for client in range(K):
        agrees((rows.worker[:, 0] == client).astype(float), expected[client])


@pytest.mark.parametrize(("C", "K"), [(3, 7), (5, 5), (1, 4)])
def test_cyclic_selection_keeps_its_order(C: int, K: int) -> None:
    clients = Clients(compute=LOGNORMAL, selection=Selection(in_flight=C, by="cyclic"))
    rows, jobs = play(Asynchronous(), clients, K, commits=6_000)
    later = jobs.read_version > 0  # one job reads each version after the first
    order = np.argsort(jobs.read_version[later])
    np.testing.assert_array_equal(
        jobs.read_version[later][order], np.arange(1, later.sum() + 1)
    )
    chosen = jobs.client[later][order]
    busy, turn = set(range(C)), C - 1
    assert set(jobs.client[~later]) == busy
    for done, client in zip(rows.worker[:, 0], chosen, strict=True):
        busy.remove(int(done))
        turn = (turn + 1) % K
        while turn in busy:
            turn = (turn + 1) % K
        busy.add(turn)
        assert client == turn


@pytest.mark.parametrize(
    "rates", [np.ones(6), np.array([1.0, 2.0, 3.0, 4.0, 5.0])], ids=["iid", "unequal"]
)
def test_staleness_is_geometric_among_exponentials(rates: np.ndarray) -> None:
    clients = Clients(compute=Scipy(law="expon", scale=tuple((1 / rates).tolist())))
    rows, _ = play(Asynchronous(), clients, rates.size, commits=60_000)
    staleness = staleness_of(rows)
    means = theory.mean_staleness_exponential(rates)
    for client, mean in enumerate(means):
        # One client's jobs overlap in no commit: independent draws.
        mine = staleness[rows.worker[:, 0] == client]
        law = theory.exponential_staleness_law(rates, client)
        bound = 5 * law.std() / sqrt(mine.size)
        assert mine.mean() == pytest.approx(mean, abs=bound)
        # Chi-square over bins that expect 20 and more, the last one open.
        last = int(law.isf(20 / mine.size))
        seen = np.bincount(np.minimum(mine, last), minlength=last + 1)
        chance = np.append(law.pmf(np.arange(last)), law.sf(last - 1))
        found = scipy.stats.chisquare(seen, chance * mine.size)
        assert found.pvalue > 5.7e-7  # five standard deviations, two-sided


def accepted_without_staleness(clients: int) -> float:
    """Returns the share of arrivals that are applied with a staleness bound of 0.

    By iid exponentials each arrival is anybody's. With f jobs that have read the
    newest version, it is one of them with probability f / C and leaves one (its
    client's next); else it is rejected and makes f + 1.
    """
    step = np.zeros((clients, clients))
    fresh = np.arange(1, clients + 1) / clients
    step[:, 0] = fresh
    step[np.arange(clients - 1), np.arange(1, clients)] += 1 - fresh[:-1]
    equations = np.vstack([step.T - np.eye(clients), np.ones(clients)])
    share = np.linalg.lstsq(equations, np.append(np.zeros(clients), 1), rcond=None)[0]
    return float(share @ fresh)


@pytest.mark.parametrize("C", [2, 5])
def test_rejections_by_a_bound_of_nothing(C: int) -> None:
    _, jobs = play(
        Asynchronous(staleness_bound=0), Clients(compute=EXPONENTIAL), C, commits=30_000
    )
    ended = jobs.outcome != Outcome.IN_FLIGHT
    order = np.argsort(jobs.arrived_time[ended], kind="stable")
    applied = jobs.outcome[ended][order] == Outcome.APPLIED
    assert C != 2 or accepted_without_staleness(C) == pytest.approx(2 / 3)
    agrees(applied.astype(float), accepted_without_staleness(C))


@pytest.mark.parametrize("law", LAWS, ids=NAMES)
@pytest.mark.parametrize("bound", [0, 3, 20])
def test_nothing_beyond_the_bound_is_applied(law: Any, bound: int) -> None:
    C = 8
    rows, jobs = play(
        Asynchronous(staleness_bound=bound), Clients(compute=law), C, commits=5_000
    )
    staleness = staleness_of(rows)
    assert staleness.max() <= bound
    rejected = jobs.outcome == Outcome.REJECTED
    assert bool(rejected.any()) == (bound < C - 1 or not isinstance(law, Constant))
    # Who was rejected had seen more commits pass than the bound.
    made = np.searchsorted(rows.time, jobs.arrived_time[rejected], side="right")
    assert (made - jobs.read_version[rejected] > bound).all()


@pytest.mark.parametrize("law", LAWS, ids=NAMES)
@pytest.mark.parametrize("bound", [0, 3, 7, 9])
def test_arrivals_wait_for_the_bound(law: Any, bound: int) -> None:
    C, commits = 8, 5_000
    rows, _ = play(
        Asynchronous(staleness_bound=bound, beyond="wait"),
        Clients(compute=law),
        C,
        commits=commits,
    )
    staleness = staleness_of(rows)
    assert staleness.max() <= bound
    # Always min(C, bound + 1) jobs have been read and not applied, which every commit
    # ages but for one; those left at the end are missing.
    jobs = min(C, bound + 1)
    assert (jobs - 1) - jobs * bound / commits <= staleness.mean() <= jobs - 1
    if bound < C:  # then the mean is the bound, so that nothing can be below it
        assert (staleness[jobs:] == bound).all()
    if bound + 1 < C:
        # Then each version is read once and jobs are applied in the order of their
        # reads, which is that of asking: everybody in turn, however slow.
        share = np.bincount(rows.worker[:, 0], minlength=C)
        assert share.max() - share.min() <= 1


@pytest.mark.parametrize("n", [2, 10])
def test_synchronous_rounds_of_exponentials(n: int) -> None:
    rounds = 4_000
    rows, _ = play(Synchronous(), Clients(compute=EXPONENTIAL), n, rounds=rounds)
    assert (rows.worker == np.arange(n)).all()
    assert (rows.read_version == rows.version[:, None]).all()
    # Independent rounds, of variance sum 1/k^2.
    bound = 5 * sqrt(sum(1 / k**2 for k in range(1, n + 1)) / rounds)
    expected = oracles.exponential_order_statistic(1, n, n)
    assert np.diff(rows.time, prepend=0).mean() == pytest.approx(expected, abs=bound)


def test_synchronous_rounds_of_unequal_laws() -> None:
    groups = {
        "a": Group(number=2, compute=LOGNORMAL),
        "b": Group(number=1, compute=Scipy(law="uniform", loc=1, scale=2)),
        "c": Group(number=2, compute=Scipy(law="expon", scale="m")),
        "d": Group(number=1, compute=Scipy(law="gamma", parameters={"a": 0.5})),
    }
    s = scipy.stats
    laws = [s.lognorm(1), s.lognorm(1), s.uniform(1, 2), s.expon(), s.expon(scale=2)]
    laws.append(s.gamma(0.5))
    rounds = 6_000
    rows, _ = play(Synchronous(), Clients(groups=groups), 6, rounds=rounds)
    durations = np.diff(rows.time, prepend=0)  # independent
    bound = 5 * durations.std() / sqrt(rounds)
    expected = theory.expected_maximum(laws)
    assert durations.mean() == pytest.approx(expected, abs=bound)


@pytest.mark.parametrize("t", [1, 3, 5])
@pytest.mark.parametrize("scale", [1, "m"], ids=["iid", "unequal"])
def test_t_synchronous_periods_of_exponentials(t: int, scale: Any) -> None:
    K = 5
    clients = Clients(compute=Scipy(law="expon", scale=scale))
    rows, jobs = play(TSynchronous(t=t), clients, K, commits=10_000)
    assert ((rows.worker != NO_WORKER).sum(axis=1) == t).all()
    # Without memory all K compute afresh from each commit on: independent periods.
    periods = np.diff(rows.time, prepend=0)
    means = [1.0] * K if scale == 1 else list(range(1, K + 1))
    laws = [scipy.stats.expon(scale=mean) for mean in means]
    bound = 5 * periods.std() / sqrt(periods.size)
    expected = theory.t_synchronous_period(laws, t)
    assert periods.mean() == pytest.approx(expected, abs=bound)
    applied = jobs.outcome == Outcome.APPLIED
    assert applied.sum() == t * periods.size


def over_selected(n: int, t: int, *, rejoin: bool) -> tuple[float, float]:
    """Returns a round's mean duration and rejections, for exponentials of rate 1.

    A round begins with `late` jobs of earlier ones under way and asks n - late more; it
    ends with t arrivals, or all that it asked. Whoever is late is rejected, and asked
    again at once (`rejoin`: without selection) or in the next round. The next arrival
    is anybody's of those under way.
    """

    @cache
    def after(asked: int, late: int, arrived: int) -> tuple[float, float, tuple]:
        """Returns mean time, rejections, and the law of the late ones at the end."""
        if arrived == t or not asked:
            left = tuple(float(k == asked + late) for k in range(n + 1))
            return 0.0, 0.0, left
        all_ = asked + late
        parts = [(asked / all_, after(asked - 1, late, arrived + 1), 0)]
        if late:
            parts.append((late / all_, after(asked + rejoin, late - 1, arrived), 1))
        time = 1 / all_ + sum(p * found[0] for p, found, _ in parts)
        lost = sum(p * (found[1] + one) for p, found, one in parts)
        law = sum(p * np.array(found[2]) for p, found, _ in parts)
        return time, lost, tuple(law)

    rounds = [after(n - late, late, 0) for late in range(n - t + 1)]
    step = np.array([found[2][: n - t + 1] for found in rounds])
    share = np.linalg.matrix_power(step, 200)[0]
    return share @ [r[0] for r in rounds], share @ [r[1] for r in rounds]


@pytest.mark.parametrize(("n", "t"), [(5, 3), (6, 5), (4, 4)])
@pytest.mark.parametrize("select", [True, False])
def test_over_selection_of_clients_that_run_on(n: int, t: int, *, select: bool) -> None:
    # The expected t-th order statistic holds for the first round alone: those who are
    # late are still under way in the next. For exponentials they can be counted.
    clients = Clients(
        compute=EXPONENTIAL, selection=Selection(in_flight=n) if select else None
    )
    number = 3 * n if select else n
    protocol = Synchronous(wait_for=t, late="reject")
    rows, jobs = play(protocol, clients, number, rounds=8_000)
    duration, rejections = over_selected(n, t, rejoin=not select)
    if n == t:
        assert duration == pytest.approx(oracles.exponential_order_statistic(1, n, n))
        assert not rejections
    agrees(np.diff(rows.time, prepend=0), duration)
    rejected = np.sort(jobs.arrived_time[jobs.outcome == Outcome.REJECTED])
    if rejections:
        per_round = np.diff(np.searchsorted(rejected, rows.time), prepend=0)
        agrees(per_round.astype(float), rejections)
    else:
        assert not rejected.size


def test_first_rounds_of_an_over_selection() -> None:
    # Of 4 clients, numbered from 0, those under way are made 3, and 2 are waited for.
    # They take 1, 2.5, 10.2 and 0.3 s, so that 2 is late until 10.2. Until then two are
    # asked, those next in turn: 0 1 2, 3 0, 1 3, 0 1, 3 0, 1 3, and then 0 1 2 again.
    clients = Clients(
        compute=Constant(value=(1, 2.5, 10.2, 0.3)),
        selection=Selection(in_flight=3, by="cyclic"),
    )
    protocol = Synchronous(wait_for=2, late="reject")
    rows, jobs = play(protocol, clients, 4, rounds=7)
    assert rows.time.tolist() == pytest.approx([2.5, 3.5, 6, 8.5, 9.5, 12, 14.5])
    workers = [[0, 1], [0, 3], [1, 3], [0, 1], [0, 3], [1, 3], [0, 1]]
    assert rows.worker[:, :2].tolist() == workers
    rejected = jobs.outcome == Outcome.REJECTED
    assert jobs.client[rejected].tolist() == [2]
    assert jobs.arrived_time[rejected] == pytest.approx([10.2])
    waits = jobs.read_time[jobs.outcome == Outcome.IN_FLIGHT]
    assert np.sort(waits) == pytest.approx([12.0, 14.5, 14.5])


@pytest.mark.parametrize(
    ("law", "asked", "kept", "rounds", "expected"),
    [
        (EXPONENTIAL, 13, 10, 4_000, 1.347),  # H_13 - H_3
        (Scipy(law="halfnorm"), 1300, 1000, 40, 1.197),
    ],
)
def test_each_round_of_an_over_selection_asks_fresh_clients(
    law: Any, asked: int, kept: int, rounds: int, expected: float
) -> None:
    clients = Clients(compute=law, selection=Selection(in_flight=asked))
    rows, jobs = play(Synchronous(wait_for=kept), clients, 3 * asked, rounds=rounds)
    value = theory.expected_order_statistic(
        [getattr(scipy.stats, law.law)], kept, [asked]
    )
    assert value == pytest.approx(expected, abs=1e-3)
    agrees(np.diff(rows.time, prepend=0), value)
    started = np.searchsorted(np.sort(jobs.read_time), rows.time[:-1], side="right")
    assert np.diff(started).tolist() == [asked] * (rounds - 2)
    assert (jobs.outcome == Outcome.STOPPED).sum() == (asked - kept) * rounds


@pytest.mark.parametrize("stop", [{"wait_for": 2}, {"deadline": 3.0}])
def test_who_is_late_is_stopped_and_may_be_asked_at_once(stop: dict[str, Any]) -> None:
    # 2 of the 3 asked end a round; those next in turn: 0 1 2, 3 0 1, 2 3 0, 1 2 3.
    clients = Clients(
        compute=Constant(value=(1, 2.5, 10.2, 0.3)),
        selection=Selection(in_flight=3, by="cyclic"),
    )
    rows, jobs = play(Synchronous(**stop), clients, 4, rounds=4)
    ends = [2.5, 3.5, 4.5, 7] if "wait_for" in stop else [3, 5.5, 8.5, 11.5]
    workers = [[0, 1], [0, 3], [0, 3], [1, 3]]
    if "deadline" in stop:
        workers[1] = [0, 1, 3]
    assert rows.time.tolist() == pytest.approx(ends)
    assert [
        [w for w in row if w != NO_WORKER] for row in rows.worker.tolist()
    ] == workers
    stopped = jobs.outcome == Outcome.STOPPED
    late = [2, 1, 2, 2] if "wait_for" in stop else [2, 2, 2]
    assert jobs.client[stopped].tolist() == late


def test_everyone_is_asked_again_where_late_jobs_are_stopped() -> None:
    # K-sync of Dutta et al., which collect plays as well; a stop takes 0.5 s.
    clients = Clients(
        compute=Constant(value=(1, 2.5, 10.2)), restart=Constant(value=0.5)
    )
    rounds = Synchronous(wait_for=2, late="stop")
    rows, jobs = play(rounds, clients, 3, rounds=4)
    assert rows.time.tolist() == pytest.approx([2.5, 5, 7.5, 10])
    assert jobs.read_time[jobs.client == 2].tolist() == pytest.approx([0, 3, 5.5, 8])
    other = Collect(count=2, repeats=False, late="stop")
    law = Clients(compute=EXPONENTIAL)
    times = [
        play(each, law, 5, rounds=200)[0].time[-1]
        for each in (Synchronous(wait_for=2, late="stop"), other)
    ]
    assert times[0] == pytest.approx(times[1])


def test_rounds_with_a_deadline() -> None:
    # Clients take 1, 2.5 and 10.2 s; a round takes 2.5 s without the third, and 4 s,
    # until its deadline, with it: when it is asked, or has just been rejected (at 10.2
    # in the round from 9 to 13, at 20.4 in that from 18 to 22).
    clients = Clients(compute=Constant(value=(1, 2.5, 10.2)))
    rows, jobs = play(Synchronous(deadline=4.0), clients, 3, rounds=7)
    assert rows.time.tolist() == pytest.approx([4, 6.5, 9, 13, 15.5, 18, 22])
    assert (rows.worker[:, :2] == (0, 1)).all()
    rejected = jobs.outcome == Outcome.REJECTED
    assert jobs.arrived_time[rejected] == pytest.approx([10.2, 20.4])
    assert (jobs.client[rejected] == 2).all()


@pytest.mark.parametrize("steps", [10, 100])
def test_stragglers_average_out_over_the_steps_of_a_round(steps: int) -> None:
    # 16 workers, exponential steps, a second of communication a round: the slowest of
    # 16 Erlang sums, and 1 s, over so many steps. AdaComm (Wang and Joshi, 2019).
    clients = Clients(
        compute=EXPONENTIAL,
        compute_per="step",
        upload=Link(latency=Constant(value=1)),
    )
    plan = played(Synchronous(), clients, 16, rounds=4_000)
    plan = replace(plan, workload=Workload(0, 0, 16, steps=steps))
    rows, *_ = everything(plan)
    expected = (theory.expected_maximum([scipy.stats.gamma(steps)], [16]) + 1) / steps
    assert expected == pytest.approx({10: 1.734, 100: 1.194}[steps], abs=1e-3)
    agrees(np.diff(rows.time, prepend=0) / steps, expected)


@pytest.mark.slow
def test_staleness_of_clients_whose_rates_differ_follows_their_laws(
    tmp_path: Path,
) -> None:
    """As the figure of each client draws them: cumulative shares at all bins.

    A client's jobs have independent staleness: each commit is anybody's by the same
    chances, whatever was before. By the inequality of Dvoretzky, Kiefer and Wolfowitz
    (with Massart's constant) a share is off by more than d with a chance of
    2 exp(-2 n d^2) at most: 1e-6 of all five clients together.
    """
    tree = {
        "name": "unequal",
        "problem": {
            "data": {"kind": "digits", "limit": 100},
            "partition": {"kind": "iid", "clients": 5},
        },
        "clients": {"compute": {"law": "expon", "scale": "1/m"}},
        "protocol": {"kind": "asynchronous"},
        "algorithm": {"kind": "sgd", "step_size": 0.01, "batch": 1},
        "stop": {"commits": 30_000},
        "evaluate": {"every": {"commits": 10_000}},
    }
    study = stalesim.simulate(tree, tmp_path / "unequal")
    (group,) = {run["label"] for run in study.manifest["runs"]}
    law = staleness.staleness_law(study, group)
    assert law is not None
    for client in range(1, 6):
        found = staleness.histogram(study, group, client, steady=True)
        ages, chances = law(client)
        count = found["count"].sum()
        assert count > 1_000 * client
        shares = found["count"].cumsum() / count
        below = [chances[ages < high].sum() for high in found["high"]]
        bound = np.sqrt(np.log(2 * 5 / 1e-6) / (2 * count))
        assert np.abs(shares - below).max() < bound
        equal = [1 - 0.8**high for high in found["high"]]  # as if all had one rate
        assert (np.abs(shares - equal).max() > bound) == (client != 3)
