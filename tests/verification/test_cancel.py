"""The study of cancelling: its event loop against the simulator, moments by hand."""

import math
from itertools import islice

import numpy as np
import pytest

from benchmarks import cancel
from benchmarks.cancel import (
    CancelWorld,
    ExactMoments,
    Fresh,
    JobTimes,
    Method,
    PlayedCommit,
)
from stalesim.simulator.laws.constant import Constant
from stalesim.simulator.laws.distributions import Scipy
from stalesim.simulator.protocols import Asynchronous, Collect
from stalesim.simulator.timeline import Kind
from stalesim.simulator.world.clients import Clients
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
    clients = Clients(compute=Scipy(law="expon", scale=MEANS), restart=pause)
    rows, *_ = everything(played(protocol(method), clients, N, rounds=COMMITS))
    ends = np.flatnonzero(rows.kind == Kind.COMMIT)
    times = JobTimes(CancelWorld(N, "exponential", 0.0), 0)
    times.of = jobs
    found = list(islice(cancel.play(times, method, MEANS), COMMITS))
    np.testing.assert_allclose([c.time for c in found], rows.time[ends], rtol=1e-9)
    begins = np.r_[0, ends[:-1] + 1]
    for commit, first, last in zip(found, begins, ends, strict=True):
        assert commit.reads == rows.read_version[first : last + 1, 0].tolist()


def random_commits(seed: int, batch: int, bound: int) -> list[PlayedCommit]:
    r = np.random.default_rng(seed)
    found, held = [], [0] * 5
    for version in range(40):
        held = [read if version - read < bound else version for read in held]
        chosen = r.integers(5, size=batch).tolist()
        reads = [held[c] for c in chosen]
        for c in chosen:
            held[c] = version + 1
        found.append(PlayedCommit(float(version), reads, list(held)))
    return found


@pytest.mark.parametrize(("batch", "bound"), [(1, 40), (3, 40), (2, 4), (3, 1)])
def test_moments_are_those_of_sums(batch: int, bound: int) -> None:
    """Every version is the start and all noises, times numbers that are kept here."""
    at = np.array([5, 20])
    product = cancel.PRODUCTS[at]
    versions = [np.zeros((2, 1 + 40 * batch))]
    versions[0][:, 0] = 1
    moments = ExactMoments(5, bound)
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


def test_fresh_contributions_need_no_covariance() -> None:
    moments, fresh = ExactMoments(5, None), Fresh(3)
    for version in range(30):
        commit = PlayedCommit(0.0, [version] * 3, [version + 1] * 5)
        for one, other in zip(moments.apply(commit), fresh.apply(commit), strict=True):
            np.testing.assert_allclose(one[8:], other[8:], rtol=1e-9)


def test_the_target_is_of_the_whole_gradient() -> None:
    """With exact gradients at one step, G is sum_j a_j^2 (1 - step a_j)^2 over sum."""
    at = 14
    squares = cancel.squares(
        1 - cancel.PRODUCTS[None], np.ones((1, cancel.PRODUCTS.size))
    )
    a, step = cancel.CURVATURES, cancel.STEPS[at]
    wanted = (a**2 * (1 - step * a) ** 2).sum() / (a**2).sum()
    np.testing.assert_allclose(squares.mean[0, at], wanted)
    noise = step**2 * (a**2 * a).sum() / a.sum() * cancel.EPSILON
    np.testing.assert_allclose(squares.noise[0, at], noise)


def test_a_bound_that_nothing_meets_is_not_played_again(monkeypatch) -> None:
    monkeypatch.setattr(cancel, "NOISES", cancel.NOISES[:1])
    world = CancelWorld(2, "exponential", 0.0)
    played_alone = {
        method: cancel.run(JobTimes(world, 3), method, world.means.tolist()).seconds
        for method in cancel.methods(2)
    }
    for method, seconds in cancel.measure(world, 3).items():
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
