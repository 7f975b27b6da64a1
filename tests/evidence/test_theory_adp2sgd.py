"""Theorem 1 and Proposition 1 of A(DP)2SGD: the specification's numbers, borders."""

import functools
import math
from collections.abc import Callable

import pytest

from evidence.theory import adp2sgd, pairings

FIXTURE = {
    "num_workers": 16,
    "batch": 4,
    "smoothness": 1.0,
    "staleness": 16,
    "rho_bar": pairings.rho_bar(0.9375, 16),
}
LOSS = {
    "smoothness": 2.0,
    "gap": 3.0,
    "within": 5.0,
    "across": 0.25,
    "dimension": 1000,
    "sigma": 0.7,
}
constants = functools.partial(adp2sgd.theorem1_constants, **FIXTURE)
bound = functools.partial(
    adp2sgd.theorem1_bound, 1000, num_workers=16, step_size=1e-3, batch=4
)


@pytest.mark.parametrize(
    ("step_size", "c1", "c2", "c3", "failed"),
    [
        # section 3, half a unit of the last digit
        (1e-6, (0.99999930, 5e-9), (1.24999908e-7, 5e-16), (0.73244450, 5e-9), ()),
        (1e-5, (0.9999297, 5e-8), (1.2499645e-6, 5e-14), (2.824638, 5e-7), ("c3",)),
    ],
)
def test_the_fixture_of_theorem_1(
    step_size: float,
    c1: tuple[float, float],
    c2: tuple[float, float],
    c3: tuple[float, float],
    failed: tuple[str, ...],
) -> None:
    found = constants(step_size=step_size)
    for value, (printed, digit) in zip(found, (c1, c2, c3), strict=True):
        assert value == pytest.approx(printed, abs=digit)
    assert found.failed == failed


def test_constants_depend_on_the_step_of_a_whole_batch() -> None:
    whole = constants(step_size=4e-6, batch=1)
    assert constants(step_size=1e-6) == pytest.approx(whole)
    # Without staleness and disagreement: 1, eta B / K (1/2 - eta B L / K) and 1/2.
    alone = constants(step_size=0.5, num_workers=1, batch=1, staleness=0, rho_bar=0)
    assert alone == pytest.approx((1, 0.5 * (0.5 - 0.5), 0.5))


def test_conditions_of_theorem_1_fail_by_name() -> None:
    assert "c1" in constants(step_size=1.0).failed
    slow = constants(step_size=0.2, rho_bar=0, staleness=0, batch=1, num_workers=1)
    assert slow.failed == ()
    # 24 (eta B L)^2 (tau (K - 1) / K + rho_bar) = 1.
    edge = constants(step_size=0.5, batch=1, num_workers=2, staleness=0, rho_bar=1 / 6)
    assert edge == (0, -math.inf, math.inf)
    assert edge.failed == ("c1", "c2", "c3")
    late = constants(step_size=0.4, batch=1, num_workers=1, staleness=9, rho_bar=0)
    assert "c2" in late.failed


def test_the_bound_of_theorem_1() -> None:
    # 2 * 3 * 16 / (1e-3 * 1000 * 4) = 24; 2e-3 * 2 / 64 (5 * 4 + 6 * .25 * 16 + 490)
    assert bound(**LOSS) == pytest.approx(24 + 4e-3 / 64 * (20 + 24 + 490))


@pytest.mark.parametrize("iterations", [1, 58_593])
@pytest.mark.parametrize("num_workers", [1, 16])
def test_proposition_1_is_theorem_1_at_its_step(
    iterations: int, num_workers: int
) -> None:
    step = adp2sgd.proposition1_step(iterations, num_workers=num_workers, batch=4)
    assert step == pytest.approx(num_workers / (4 * math.sqrt(iterations)))
    found = adp2sgd.proposition1_bound(iterations, batch=4, **LOSS)
    substituted = adp2sgd.theorem1_bound(
        iterations, num_workers=num_workers, step_size=step, batch=4, **LOSS
    )
    assert found == pytest.approx(substituted, rel=1e-12)
    # As printed: 2 gap + 2 L (within / B + 6 across + d sigma^2 / B^2).
    printed = 2 * 3 + 2 * 2 * (5 / 4 + 1.5 + 490 / 16)
    assert found == pytest.approx(printed / math.sqrt(iterations), rel=1e-12)
    without = adp2sgd.proposition1_bound(iterations, batch=4, **{**LOSS, "sigma": 0.0})
    cost = 2 * 2 * 1000 * 0.7**2 / (16 * math.sqrt(iterations))
    assert found - without == pytest.approx(cost)


def test_the_threshold_of_proposition_1_is_out_of_reach() -> None:
    found = adp2sgd.proposition1_threshold(
        num_workers=16, smoothness=1.0, staleness=16, rho_bar=FIXTURE["rho_bar"]
    )
    assert f"{found.iterations:.1e}" == "2.2e+14"  # section 3
    assert found.iterations == found.averaging
    assert found.iterations > 1e9 * 58_593
    assert found.staleness == pytest.approx(256 * 192 * (15 + FIXTURE["rho_bar"]))
    assert found.delay == 256 * 64
    # At the threshold the step satisfies Theorem 1.
    step = adp2sgd.proposition1_step(
        math.ceil(found.iterations), num_workers=16, batch=4
    )
    assert constants(step_size=step).failed == ()


def test_the_fourth_term_of_proposition_1() -> None:
    found = adp2sgd.proposition1_threshold(
        num_workers=2, smoothness=3.0, staleness=8, rho_bar=0.0
    )
    # L^2 K^2 = 36; 1 / 2^(1/6) (8 sqrt(6) 4 + 8)^2 8^(2/3)
    fourth = 36 * 2 ** (-1 / 6) * (32 * math.sqrt(6) + 8) ** 2 * 4
    assert found.both == pytest.approx(fourth)
    assert found.iterations == found.both
    assert found == pytest.approx((36 * 192 * 4, 0, 36 * 64 * 16, fourth))


@pytest.mark.parametrize("batch", [1, 256])
def test_the_noise_that_weights_accumulate(batch: int) -> None:
    # section 5.2: 160 epochs at rate 0.4 on the mean of 256
    iterations = 160 * 50_000 // 256
    noise = functools.partial(adp2sgd.accumulated_noise, iterations, num_workers=16)
    for sigma, of_sum, of_mean in ((1, 0.017, 4.4), (2, 0.035, 8.8), (4, 0.069, 17.7)):
        found = noise(step_size=0.4 / 256, sigma=sigma)
        assert found == pytest.approx(of_sum, abs=5e-4)
        assert noise(step_size=0.4, sigma=sigma) == pytest.approx(of_mean, abs=0.05)
    # A synchronous round moves the average by eta / (B sqrt(K)) sigma.
    rounds = iterations / 16
    step = 0.4 / batch
    assert noise(step_size=step, sigma=1.0) == pytest.approx(
        step / 4 * math.sqrt(rounds)
    )


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: constants(step_size=0.0), "step_size must be > 0 and finite, got 0.0"),
        (lambda: constants(step_size=math.inf), "step_size must be .* got inf"),
        (lambda: constants(step_size=1, rho_bar=-1), "rho_bar must be >= 0 .* got -1"),
        (lambda: constants(step_size=1, num_workers=0), "num_workers must be >= 1"),
        (lambda: constants(step_size=1, staleness=math.nan), "staleness must .* nan"),
        (lambda: bound(**{**LOSS, "sigma": -1.0}), "sigma must be >= 0 .* got -1.0; "),
        (
            lambda: bound(**{**LOSS, "dimension": 0}),
            "dimension must be >= 1 .* got 0; ",
        ),
        (
            lambda: adp2sgd.proposition1_threshold(
                num_workers=1, smoothness=1.0, staleness=1, rho_bar=1
            ),
            "num_workers must be >= 2 and finite, got 1; ",
        ),
        (
            lambda: adp2sgd.proposition1_step(0, num_workers=1, batch=1),
            "iterations must be >= 1 and finite, got 0; ",
        ),
        (
            lambda: adp2sgd.accumulated_noise(
                1, num_workers=1, step_size=-1.0, sigma=1.0
            ),
            "step_size must be > 0 and finite, got -1.0; ",
        ),
    ],
)
def test_mistakes_are_named(call: Callable[[], object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call()
