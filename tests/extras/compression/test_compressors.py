"""Compressors against theory: bias, variance, contraction, bytes; what is refused."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from stalesim.simulator.extras.compression.compressors import (
    LowRank,
    Qsgd,
    RandomK,
    Signs,
    TopK,
)
from stalesim.simulator.parts.errors import ScenarioError
from stalesim.simulator.problem.models.parts import ModelCounts, ProblemShape
from stalesim.simulator.scenario.study import merge
from tests.extras.compression.cases import compressed
from tests.runs import prepared
from tests.support import SGD, scenario

n, DRAWS = 40, 4000
X = np.random.default_rng(5).standard_normal(n)
X += 0.3 * np.sign(X)
"""None so small that it is hardly ever drawn."""


def drawn(compressor: Any) -> np.ndarray:
    """Returns what is made of X, `[DRAWS, n]`."""
    with jax.enable_x64(True):
        keys = jax.random.split(jax.random.key(1), DRAWS)
        x = jnp.asarray(X)
        made = jax.vmap(lambda key: compressor(x, None, key, None)[0])(keys)
        return np.asarray(made)


def once(compressor: Any, x: np.ndarray, state: Any = None, arrays: Any = None) -> Any:
    with jax.enable_x64(True):
        made, state = compressor(jnp.asarray(x), state, None, arrays)
        return np.asarray(made), state


def rounding(levels: int, bucket: int) -> np.ndarray:
    """Returns E (Q(X) - X)^2 of each number: norm^2 / s^2 p (1 - p)."""
    found = []
    for first in range(0, n, bucket):
        part = X[first : first + bucket]
        norm = np.linalg.norm(part)
        p = levels * np.abs(part) / norm % 1
        found.append(norm**2 / levels**2 * p * (1 - p))
    return np.concatenate(found)


UNBIASED = {
    "qsgd 1": (Qsgd(levels=1), rounding(1, n)),
    "qsgd 2": (Qsgd(levels=2), rounding(2, n)),
    "qsgd 9": (Qsgd(levels=9), rounding(9, n)),
    "qsgd 2, buckets": (Qsgd(levels=2, bucket=12), rounding(2, 12)),
    "random_k": (RandomK(keep=8), (n / 8 - 1) * X**2),
    "random_k, a share": (RandomK(keep=0.3), (n / 12 - 1) * X**2),
}
"""Compressors, and the exact mean of (C(X) - X)^2 of each number."""


@pytest.mark.parametrize("case", UNBIASED)
def test_unbiased_compressors_have_the_mean_and_variance_of_theory(case: str) -> None:
    compressor, variance = UNBIASED[case]
    made = drawn(compressor)
    # 40 numbers within 5 standard errors, and the mean square within 5 of its own.
    assert (np.abs(made.mean(axis=0) - X) <= 5 * np.sqrt(variance / DRAWS)).all()
    squares = ((made - X) ** 2).sum(axis=1)
    error = squares.std() / np.sqrt(DRAWS)
    assert abs(squares.mean() - variance.sum()) <= 5 * error
    # The published bound: min(d / s^2, sqrt(d) / s), n / k - 1.
    assert variance.sum() <= compressor.variance(n) * (X**2).sum() * (1 + 1e-12)


def test_the_bounds_of_theory_in_numbers() -> None:
    assert Qsgd(levels=2).variance(40) == pytest.approx(40**0.5 / 2)
    assert Qsgd(levels=9).variance(40) == pytest.approx(40 / 81)
    assert Qsgd(levels=9, bucket=10).variance(40) == pytest.approx(10 / 81)
    assert RandomK(keep=8).variance(40) == pytest.approx(4)
    assert [each.variance(40) for each in (TopK(keep=1), Signs())] == [None, None]


def test_rounded_numbers_are_levels_and_random_ones_k_of_them() -> None:
    levels = drawn(Qsgd(levels=3)) / np.linalg.norm(X) * 3
    np.testing.assert_allclose(levels, np.round(levels), atol=1e-9)
    made = drawn(RandomK(keep=8))
    assert ((made != 0).sum(axis=1) == 8).all()
    places = (made != 0).mean(axis=0)  # each 1/5, within 5 standard errors
    assert np.abs(places - 0.2).max() <= 5 * np.sqrt(0.16 / DRAWS)


@pytest.mark.parametrize("k", [1, 7, 39])
def test_top_k_contracts_by_the_rest_and_no_more(k: int) -> None:
    made, _ = once(TopK(keep=k), X)
    kept = np.argsort(-np.abs(X))[:k]
    assert set(np.flatnonzero(made)) == set(kept)
    np.testing.assert_array_equal(made[kept], X[kept])
    assert ((made - X) ** 2).sum() <= (1 - k / n) * (X**2).sum()
    even, _ = once(TopK(keep=k), np.ones(n))
    assert ((even - 1) ** 2).sum() == n - k  # 1 - k / n cannot be less
    assert np.flatnonzero(even).tolist() == list(range(k))


def test_signs_leave_what_theory_says() -> None:
    made, _ = once(Signs(), X)
    np.testing.assert_allclose(np.abs(made), np.abs(X).mean())
    np.testing.assert_array_equal(np.sign(made), np.sign(X))
    left = (X**2).sum() - np.abs(X).sum() ** 2 / n
    np.testing.assert_allclose(((made - X) ** 2).sum(), left, rtol=1e-12)
    assert once(Signs(), np.zeros(3))[0].tolist() == [0, 0, 0]


def test_low_rank_becomes_the_best_of_its_rank() -> None:
    """Steps of a power iteration end at the largest singular values (Eckart, Young)."""
    matrix = np.random.default_rng(2).standard_normal((9, 2, 3))
    bias = np.arange(4.0)
    arrays = ((9, 2, 3), (4,))
    values = np.concatenate([matrix.ravel(), bias])
    compressor = LowRank(rank=2)
    with jax.enable_x64(True):
        state = compressor.start(jnp.asarray(values), arrays)
    made, lefts = values, []
    for _ in range(200):
        made, state = once(compressor, values, state, arrays)
        lefts.append(((made - values) ** 2).sum())
    np.testing.assert_array_equal(made[-4:], bias)
    singular = np.linalg.svd(matrix.reshape(9, 6), compute_uv=False)
    assert (np.diff(lefts) <= 1e-12).all(), "each step is no worse than the last"
    np.testing.assert_allclose(lefts[-1], (singular[2:] ** 2).sum(), rtol=1e-9)
    assert lefts[0] < (singular**2).sum()


SHAPE = ProblemShape(100, 64, 10, 5, 650, 11, arrays=((10, 65),))
BYTES = {
    # 5 bits (2 * 8 + 1 levels) of 650 numbers are 3250 bits; 11 buckets of 64
    "qsgd": (Qsgd(levels=8, bucket=64), 407 + 44),
    "qsgd, a norm": (Qsgd(levels=1), 163 + 4),  # 2 bits
    "top_k": (TopK(keep=65), 65 * 4 + 82),  # 10 bits of an index: 650 bits
    "top_k, a share": (TopK(keep=0.001), 4 + 2),  # one number
    "random_k": (RandomK(keep=65), 260),
    "signs": (Signs(), 82 + 4),
    "low_rank": (LowRank(rank=2), 4 * 2 * (10 + 65)),
}


@pytest.mark.parametrize("case", BYTES)
def test_bytes_are_those_counted_by_hand(case: str) -> None:
    compressor, wanted = BYTES[case]
    assert compressor.num_bytes(SHAPE) == wanted


def test_what_rank_makes_no_smaller_is_sent_as_it_is() -> None:
    # [9, 6] of rank 2: 2 (9 + 6) numbers; [2, 2] would be 2 * 4; a vector and a number.
    arrays = ((9, 2, 3), (2, 2), (4,), ())
    shape = SHAPE._replace(arrays=arrays)
    assert LowRank(rank=2).num_bytes(shape) == 4 * (30 + 4 + 4 + 1)


def test_arrays_of_a_deep_model_are_its_own() -> None:
    tree = merge(SGD, {"problem": {"model": {"kind": "dense", "hidden": [6, 5]}}})
    chain = compressed({"kind": "low_rank", "rank": 1}, {"kind": "signs"})
    plan = prepared(merge(tree, {"algorithm": chain, "stop": {"commits": 1}}))
    assert plan.shape.arrays == ((6, 64), (6,), (5, 6), (5,), (10, 5), (10,))
    sent = plan.scenario.algorithm.messages(plan.shape, common=False)
    # 70 + 6 + 11 + 5 + 15 + 10 numbers up; 485 bits and a scale down
    assert sent == {"up": 4 * 117, "down": 61 + 4}


LARGER = {
    "numbers beyond all": ({"kind": "random_k", "keep": 700}, {}, "2,600", "2,800"),
    "indices": ({"kind": "top_k", "keep": 0.8}, {}, "2,600", "2,730"),
    "levels": ({"kind": "qsgd", "levels": 32767, "bucket": 2}, {}, "2,600", "2,600"),
    "rank": ({"kind": "low_rank", "rank": 9}, {}, "2,600", "2,600"),
    "no matrix": (
        {"kind": "low_rank", "rank": 1},
        {
            "problem": {
                "data": {"kind": "quadratic", "clients": 5, "dimension": 9},
                "partition": {"kind": "natural", "clients": 5},
                "model": {"kind": "diagonal"},
                "loss": "squared",
            },
            "evaluate": {"metrics": ["objective"]},
        },
        *("36", "36"),
    ),
}
"""Compressors, changes of the scenario, bytes without and with them."""


@pytest.mark.parametrize("case", LARGER)
def test_messages_that_grow_are_refused(case: str) -> None:
    up, changes, given, made = LARGER[case]
    chain = compressed(up, {"kind": "signs"})
    with pytest.raises(ScenarioError) as caught:
        prepared(merge(merge(SGD, {"algorithm": chain}), changes))
    assert str(caught.value) == (
        f"algorithm's compressor must make a message of {given} bytes smaller, got "
        f"{up['kind']!r}, which makes it {made}; lower its numbers, or take another "
        f"one or a larger model"
    )


def test_statistics_of_batches_are_refused() -> None:
    chain = compressed({"kind": "signs"}, {"kind": "signs"})
    method = scenario(SGD, {"algorithm": chain}).algorithm
    method.check_model(ModelCounts(650))
    with pytest.raises(ScenarioError) as caught:
        method.check_model(ModelCounts(650, num_statistics=6))
    assert str(caught.value) == (
        "algorithm.chain.0 must be left out for a model that keeps statistics of "
        "batches, got 6 numbers, which would be sent as they are; normalise layers or "
        "groups"
    )
