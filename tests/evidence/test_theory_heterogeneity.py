"""Workers that are not equally fast: section 5.5 of A(DP)2SGD's specification."""

import heapq
from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest

from evidence.theory import heterogeneity
from evidence.theory.heterogeneity import Slow

SLOW = [1.0] * 15 + [10.0]
"""Case II"""


def _played(times: list[Fraction], count: int) -> tuple[list[int], list[int]]:
    """Returns whose mini-batches are, in the order of their ends, and how stale."""
    pending = [(time, worker, 0) for worker, time in enumerate(times)]
    heapq.heapify(pending)
    workers, staleness = [], []
    for done in range(count):
        now, worker, read = heapq.heappop(pending)
        workers.append(worker)
        staleness.append(done - read)
        heapq.heappush(pending, (now + times[worker], worker, done + 1))
    return workers, staleness


def test_case_2_and_equal_workers() -> None:
    # section 5.5
    found = heterogeneity.constant_throughput(SLOW)
    assert f"{found.ratio:.2f}" == "9.44"
    stale = heterogeneity.constant_staleness(SLOW)
    assert f"{100 * stale.shares[-1]:.2f}" == "0.66"
    assert stale.overall == pytest.approx(15)
    assert stale.most.max() == stale.least[-1] == 150
    assert (stale.least[0], stale.most[0]) == (14, 15)
    equal = heterogeneity.constant_staleness([2.0] * 16)
    assert heterogeneity.constant_throughput([2.0] * 16).ratio == 1
    for values in (equal.mean, equal.least, equal.most):
        np.testing.assert_array_equal(values, 15)


@pytest.mark.parametrize(
    ("slow", "ratio"),
    [
        # section 5.5 has 1.88 for Case I, which is that of one slow worker in every
        # round; by its own model (each mini-batch with chance 1 / K) it is 1.55
        ("one_a_round", "1.88"),
        ("per_minibatch", "1.55"),
    ],
)
def test_case_1(slow: Slow, ratio: str) -> None:
    found = heterogeneity.random_slow_throughput(16, 2.0, slow)
    assert f"{found.ratio:.2f}" == ratio
    assert found.asynchronous == pytest.approx(16 / (17 / 16))
    faster = heterogeneity.random_slow_throughput(16, 2.0, slow, 0.25)
    assert faster.asynchronous == pytest.approx(4 * found.asynchronous)
    assert faster.ratio == pytest.approx(found.ratio)


@pytest.mark.parametrize("slow", ["one_a_round", "per_minibatch"])
def test_case_1_by_drawing(slow: Slow) -> None:
    generator = np.random.default_rng(0)
    K, factor, rounds = 5, 3.0, 100_000
    late = generator.random((rounds, K)) < 1 / K
    if slow == "one_a_round":
        late = generator.integers(K, size=(rounds, 1)) == np.arange(K)
    durations = np.where(late, factor, 1.0)
    found = heterogeneity.random_slow_throughput(K, factor, slow)
    # Standard errors: below 1 / sqrt(rounds) of a round, 0.0032; three of them.
    assert K / found.synchronous == pytest.approx(
        durations.max(axis=1).mean(), abs=0.0095
    )
    assert K / found.asynchronous == pytest.approx(durations.mean(), abs=0.0095)


def test_random_slowness_at_its_ends() -> None:
    for slow in ("one_a_round", "per_minibatch"):
        same = heterogeneity.random_slow_throughput(7, 1.0, slow)
        assert same == pytest.approx((7, 7))
        alone = heterogeneity.random_slow_throughput(1, 4.0, slow)
        assert alone == pytest.approx((0.25, 0.25))


@pytest.mark.parametrize(
    "times",
    [
        ["1"] * 15 + ["10"],
        ["1"] * 4,
        ["1", "1", "1/3"],
        ["2/7", "3/7", "1", "5/3"],
        ["1/10", "7"],
        ["5"],
    ],
    ids=lambda times: f"{len(times)}-{times[-1].replace('/', '_')}",
)
def test_constant_times_leave_their_staleness(times: list[str]) -> None:
    exact = [Fraction(time) for time in times]
    numbers = [float(time) for time in exact]
    K, count = len(times), 3000
    workers, staleness = _played(exact, count)
    stale = heterogeneity.constant_staleness(numbers)
    assert stale.overall == pytest.approx(K - 1)
    for worker in range(K):
        mine = [s for s, who in zip(staleness, workers, strict=True) if who == worker]
        assert all(s <= stale.most[worker] for s in mine)
        assert all(s >= stale.least[worker] for s in mine[1:])
        # Counts of completions differ from rates by at most one per worker.
        assert np.mean(mine) == pytest.approx(
            stale.mean[worker], abs=(2 * K + 1) / len(mine)
        )
        share = len(mine) / count
        assert share == pytest.approx(stale.shares[worker], abs=(K + 1) / count)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: heterogeneity.constant_throughput([]),
            r"times_s must be > 0 and finite, one per worker, got \[\]; ",
        ),
        (
            lambda: heterogeneity.constant_staleness([1.0, 0.0]),
            r"times_s must be .* got \[1.0, 0.0\]; ",
        ),
        (
            lambda: heterogeneity.random_slow_throughput(0, 2.0, "one_a_round"),
            "num_workers must be >= 1 and finite, got 0; ",
        ),
        (
            lambda: heterogeneity.random_slow_throughput(2, 0.5, "one_a_round"),
            "factor must be >= 1 and finite, got 0.5; ",
        ),
        (
            lambda: heterogeneity.random_slow_throughput(2, 2.0, "rotating"),  # pyright: ignore
            "slow must be one of per_minibatch, one_a_round, got 'rotating'; ",
        ),
    ],
)
def test_mistakes_are_named(call: Callable[[], object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call()
