"""The study of cancelling: its event loop against the simulator, moments by hand."""

import math
from itertools import combinations, islice
from typing import Any

import numpy as np
import pytest
import scipy.stats
from scipy.special import ndtr

from evidence.studies import cancel
from evidence.studies.cancel import (
    CancelWorld,
    ExactMoments,
    Fresh,
    JobTimes,
    Method,
    PlayedCommit,
    Shift,
)
from stalesim.simulator.catalogue.laws.autoregressive import Autoregressive
from stalesim.simulator.catalogue.protocols.asynchronous import Asynchronous
from stalesim.simulator.catalogue.protocols.collect.collect import Collect
from stalesim.simulator.files.timeline import Kind, Rows
from stalesim.simulator.world.clients import Clients
from stalesim.simulator.world.laws.base import Draws, Population
from stalesim.simulator.world.laws.distributions import Constant, Scipy
from stalesim.simulator.world.slowdowns import SharedSlowdown
from stalesim.simulator.world.streams import Streams
from tests.support import everything, played

N, COMMITS = 6, 40
MEANS = (0.5, 1.0, 1.0, 2.0, 4.0, 9.0)
METHODS = (
    Method(None, 1, cancels=False),
    Method(None, 4, cancels=False),
    Method(3, 1, cancels=False),
    Method(3, 1, True, cost=0.3),
    Method(1, 1, True),
    Method(1, 4, cancels=False),
    Method(1, 4, True, cost=1.0),
    Method(1, 4, cancels=False, waits=True),
    Method(1, 4, True, waits=True, cost=0.1),
    Method(2, 3, True, cost=0.03),
    Method(3, 1, True, cost=0.3, fate="kept"),
    Method(1, 4, True, fate="kept"),
    Method(2, 3, True, cost=0.1, fate="resumed"),
    Method(1, 4, True, waits=True, fate="resumed"),
)


def protocol(method: Method) -> Collect:
    """Returns the protocol that a method is."""
    return Collect(
        count=method.batch,
        staleness_bound="none" if method.bound is None else method.bound - 1,
        late="stop" if method.cancels else "reject",
        repeats=not method.waits,
    )


@pytest.fixture(scope="module")
def jobs() -> list[list[float]]:
    """Seconds of every client's jobs, as the simulator draws them."""
    clients = Clients(compute=Scipy(law="expon", scale=MEANS))
    _, jobs, _ = everything(played(Asynchronous(), clients, N, time=9 * 2.5 * COMMITS))
    ended = np.isfinite(jobs.computed_time)
    client, took = jobs.client[ended], (jobs.computed_time - jobs.read_time)[ended]
    order = np.argsort(jobs.job[ended], kind="stable")
    return [took[order][client[order] == each].tolist() for each in range(N)]


@pytest.mark.parametrize("method", METHODS, ids=str)
def test_the_loop_is_the_protocol(jobs, method: Method) -> None:
    cost = tuple(method.cost * mean for mean in MEANS)
    pause = Constant(value=cost) if method.cost else None
    own: dict[str, Any] = {"stopped": method.fate} if method.cancels else {}
    clients = Clients(compute=Scipy(law="expon", scale=MEANS), restart=pause, **own)
    rows, *_ = everything(played(protocol(method), clients, N, rounds=COMMITS))
    times = JobTimes(CancelWorld(N, "exponential", 0.0), 0)
    times.of = jobs
    compare(times, method, rows)


@pytest.mark.parametrize("method", [METHODS[3], METHODS[8]], ids=str)
def test_a_common_factor_is_a_shared_slowdown(jobs, method: Method) -> None:
    """Of the second in which a job begins, which cancelled jobs' followers do early."""
    half = Scipy.model_validate({"law": "lognorm", "s": cancel.HALF})
    factor = Autoregressive(of=half, correlation=cancel.MEMORY)
    slowdown = SharedSlowdown(factor=factor, every=1)
    pause = Constant(value=tuple(method.cost * mean for mean in MEANS))
    clients = Clients(
        compute=Scipy(law="expon", scale=MEANS), restart=pause, slowdowns=(slowdown,)
    )
    rows, *_ = everything(played(protocol(method), clients, N, rounds=COMMITS))
    times = JobTimes(CancelWorld(N, "exponential", 0.0), 0)
    shared = slowdown.make(Population(N, Streams(1), stage="clients.slowdowns.0"))
    times.of, times.common = jobs, [shared(0, 0, second) for second in range(1000)]
    compare(times, method, rows)


def compare(times: JobTimes, method: Method, rows: Rows) -> None:
    ends = np.flatnonzero(rows.kind == Kind.COMMIT)
    found = list(islice(cancel.play(times, method, MEANS), COMMITS))
    np.testing.assert_allclose([c.time for c in found], rows.time[ends], rtol=1e-9)
    begins = np.r_[0, ends[:-1] + 1]
    for commit, first, last in zip(found, begins, ends, strict=True):
        assert commit.reads == rows.read_version[first : last + 1, 0].tolist()
        assert commit.clients == rows.worker[first : last + 1, 0].tolist()


def test_memory_is_that_of_the_simulator() -> None:
    new = np.random.default_rng(4).standard_normal(200)
    law = Autoregressive(of=Scipy(law="expon"), correlation=cancel.MEMORY)
    sampler = law.make(Population(1, Streams(1)))
    wanted = sampler.draw(Draws(ndtr(new), 0, 0), None)[1:]
    found = scipy.stats.expon.ppf(ndtr(cancel.remembered(new[1:], new[0])))
    np.testing.assert_allclose(found, wanted, rtol=1e-9)


@pytest.mark.parametrize(
    ("tail", "of"),
    [
        ("log-normal 0.5 memory", scipy.stats.lognorm(0.5, scale=math.exp(-0.125))),
        ("exponential memory", scipy.stats.expon()),
    ],
)
def test_memory_leaves_the_law_of_a_job(tail: str, of: Any) -> None:
    """One job in 100 is as good as independent: 0.9^100 < 3e-5."""
    times = JobTimes(CancelWorld(1, tail, 0.0), 2)
    found = np.array([times.seconds(0, job, 0.0) for job in range(100_000)])
    assert scipy.stats.kstest(found[::100], of.cdf).pvalue > 0.001
    # By quadrature over two scores; standard error sqrt((1 - 0.9^2) / 100,000) = 0.0014
    z, weights = np.polynomial.hermite_e.hermegauss(60)
    z = np.clip(z, -5, 5)  # beyond are weights below 1e-6
    after = 0.9 * z[:, None] + math.sqrt(0.19) * z
    weights = weights / weights.sum()
    first, second = np.log(of.ppf(ndtr(z))), np.log(of.ppf(ndtr(after)))
    mean, power = weights @ first, weights @ first**2
    wanted = (weights @ (first * (second @ weights)) - mean**2) / (power - mean**2)
    logs = np.log(found)
    assert np.corrcoef(logs[1:], logs[:-1])[0, 1] == pytest.approx(wanted, abs=0.006)


def test_half_of_the_variance_is_common() -> None:
    """By jobs a second counts as often as it is fast: its harmonic mean is 1."""
    times = JobTimes(CancelWorld(1, "log-normal 0.5 common", 0.0), 2)
    times.seconds(0, 0, 200_000.0)
    assert times.common is not None
    logs, own = np.log(times.common), np.log(times.of[0])
    # Of 200,000 numbers with memory as many as 200,000 / 19 count: 4 standard errors
    bound = 4 * cancel.HALF * math.sqrt(19 / 200_000)
    assert logs.mean() == pytest.approx(cancel.HALF**2 / 2, abs=bound)
    assert np.exp(-logs).mean() == pytest.approx(1, abs=bound)
    assert logs.std() == pytest.approx(cancel.HALF, abs=bound)
    assert np.corrcoef(logs[1:], logs[:-1])[0, 1] == pytest.approx(0.9, abs=0.004)
    law = scipy.stats.norm(-(cancel.HALF**2) / 2, cancel.HALF)
    assert scipy.stats.kstest(own, law.cdf).pvalue > 0.001


CLIENTS = 6


def random_commits(seed: int, batch: int, bound: int) -> list[PlayedCommit]:
    r = np.random.default_rng(seed)
    found, held = [], [0] * CLIENTS
    for version in range(40):
        held = [read if version - read < bound else version for read in held]
        chosen = r.integers(CLIENTS, size=batch).tolist()
        reads = [held[c] for c in chosen]
        for c in chosen:
            held[c] = version + 1
        found.append(PlayedCommit(float(version), reads, chosen, list(held)))
    return found


@pytest.mark.parametrize(("batch", "bound"), [(1, 40), (3, 40), (2, 4), (3, 1)])
def test_moments_are_those_of_sums(batch: int, bound: int) -> None:
    """Every version is the start and all noises, times numbers that are kept here."""
    at = np.array([5, 20])
    product = cancel.PRODUCTS[at]
    versions = [np.zeros((2, 1 + 40 * batch))]
    versions[0][:, 0] = 1
    moments = ExactMoments(CLIENTS, bound)
    for number, commit in enumerate(random_commits(batch, batch, bound)):
        read = sum(versions[v] for v in commit.reads) / batch
        after = versions[-1] - product[:, None] * read
        mine = slice(1 + number * batch, 1 + (number + 1) * batch)
        after[:, mine] -= 1 / batch
        versions.append(after)
        mean, variance = moments.apply(commit)
        np.testing.assert_allclose(mean[at], after[:, 0], rtol=1e-9)
        wanted = (after[:, 1:] ** 2).sum(axis=1)
        np.testing.assert_allclose(variance[at], wanted, rtol=1e-9)


@pytest.mark.parametrize(("batch", "bound"), [(1, 40), (3, 40), (3, 1)])
def test_shifts_are_means_over_all_halves_of_the_clients(
    batch: int, bound: int
) -> None:
    commits, product = random_commits(batch, batch, bound), cancel.PRODUCTS[20]
    wanted = []
    for above in combinations(range(CLIENTS), CLIENTS // 2):
        optima = np.array([1.0 if c in above else -1.0 for c in range(CLIENTS)])
        means = [0.0]
        for commit in commits:
            pulls = [
                means[v] - optima[c]
                for v, c in zip(commit.reads, commit.clients, strict=True)
            ]
            means.append(means[-1] - product * float(np.mean(pulls)))
        wanted.append(np.square(means[1:]))
    shift = Shift(CLIENTS)
    found = [shift.apply(commit)[20] for commit in commits]
    np.testing.assert_allclose(found, np.mean(wanted, axis=0), rtol=1e-9)


def test_fresh_contributions_need_no_covariance() -> None:
    moments, fresh = ExactMoments(CLIENTS, None), Fresh(3)
    for version in range(30):
        now = [version + 1] * CLIENTS
        commit = PlayedCommit(0.0, [version] * 3, [0, 1, 2], now)
        for one, other in zip(moments.apply(commit), fresh.apply(commit), strict=True):
            np.testing.assert_allclose(one[8:], other[8:], rtol=1e-9)


@pytest.mark.parametrize("condition", [10, 100])
def test_the_target_is_of_the_whole_gradient(condition: int) -> None:
    """With exact gradients at one step, G is sum_j a_j^2 (1 - step a_j)^2 over sum."""
    at = 14
    ones = np.ones((1, cancel.PRODUCTS.size))
    squares = cancel.squares(1 - cancel.PRODUCTS[None], ones, condition=condition)
    a, step = cancel.CURVATURES[condition], cancel.STEPS[at]
    wanted = (a**2 * (1 - step * a) ** 2).sum() / (a**2).sum()
    np.testing.assert_allclose(squares.mean[0, at], wanted)
    noise = step**2 * (a**2 * a).sum() / a.sum() * cancel.EPSILON
    np.testing.assert_allclose(squares.noise[0, at], noise)


def test_a_bound_that_nothing_meets_is_not_played_again(monkeypatch) -> None:
    monkeypatch.setattr(cancel, "NOISES", cancel.NOISES[:1])
    world = CancelWorld(2, "exponential", 0.0)
    played_alone = {
        method: cancel.run(world, JobTimes(world, 3), method).seconds
        for method in cancel.methods(2)
    }
    for method, seconds in cancel.measure(world, 3, cancel.methods(2)).items():
        np.testing.assert_array_equal(seconds, played_alone[method])


def test_grids_that_end_at_the_best_are_refused(monkeypatch) -> None:
    world = CancelWorld(2, "constant", 0.0)
    seconds = np.full((len(cancel.NOISES), cancel.STEPS.size), math.inf)
    seconds[:, -1] = 1.0
    monkeypatch.setattr(
        cancel, "measure", lambda *_: dict.fromkeys(cancel.methods(2), seconds)
    )
    with pytest.raises(ValueError, match="must reach beyond the best"):
        cancel.table(world)
