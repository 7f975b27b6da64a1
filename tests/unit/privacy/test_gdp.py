import functools
import math
from collections.abc import Callable
from decimal import Decimal, localcontext
from itertools import product
from typing import Any

import numpy as np
import pytest

from stalesim.simulator.parts.errors import UserError
from stalesim.simulator.privacy import gdp

FORMS = ("gdp_uniform", "gdp_poisson", "gdp_linear")
SUBSAMPLED = ("gdp_uniform", "gdp_poisson")
UNKNOWN: Any = "gdp"


def level(multipliers: Any, sampling_ratio: float, form: gdp.Form) -> float:
    """Returns the GDP level mu of releases together."""
    return math.sqrt(gdp.increments(multipliers, sampling_ratio, form).sum())


def _phi_minus_half(a: Decimal) -> Decimal:
    """Phi(a) - 1/2 by its power series: an implementation apart from SciPy's."""
    term, total, n = a, a, 0
    while abs(term) > Decimal("1e-90"):
        n += 1
        term *= -a * a / (2 * n)
        total += term / (2 * n + 1)
    pi = Decimal("3.14159265358979323846264338327950288419716939937510582097494")
    return total / (2 * pi).sqrt()


def _unit(z: float, form: str) -> float:
    with localcontext() as context:
        context.prec = 120
        x = 1 / Decimal(z)
        if form == "gdp_poisson":
            return float((x * x).exp() - 1)
        upper = _phi_minus_half(Decimal("1.5") * x) + Decimal("0.5")
        lower = Decimal("0.5") - _phi_minus_half(x / 2)
        return float(2 * ((x * x).exp() * upper + 3 * lower - 2))


@pytest.mark.parametrize(
    ("releases", "mu", "linear", "poisson", "uniform"),
    [
        # vafl.md 6.3 prints the Poisson form's as "exact"
        (100, 1.0, 0.100, 0.466, 0.5036),
        (1_000, 1.0, 0.316, 0.646, 0.7344),
        (10_000, 1.0, 1.000, 1.201, 1.4103),
        (10_000, 0.5, 2.000, 2.117, 2.4050),
        (100_000, 1.0, 3.162, 3.239, 3.5650),
    ],
)
def test_specification_numbers(
    releases: int, mu: float, linear: float, poisson: float, uniform: float
) -> None:
    # half a unit of the last printed digit; 0.466 is 0.46549 rounded twice
    find = functools.partial(gdp.noise_multiplier, mu, releases, 0.01)
    assert find("gdp_linear") == pytest.approx(linear, abs=5e-4)
    assert find("gdp_poisson") == pytest.approx(poisson, abs=5.2e-4)
    closed = 1 / math.sqrt(math.log1p(mu**2 / (0.01**2 * releases)))
    assert find("gdp_poisson") == pytest.approx(closed, rel=1e-13)
    assert find("gdp_uniform") == pytest.approx(uniform, abs=5.1e-5)
    # and it solves the equation, evaluated with 120 decimal digits
    exact = 0.01 * math.sqrt(releases * _unit(find("gdp_uniform"), "gdp_uniform"))
    assert exact == pytest.approx(mu, rel=1e-12)


@pytest.mark.parametrize("form", SUBSAMPLED)
@pytest.mark.parametrize("z", [0.25, 1.9999, 2.0, 2.0001, 1e9])
def test_increments_do_not_cancel(form: gdp.Form, z: float) -> None:
    p = 1e-4
    assert float(gdp.increments(z, p, form)) == pytest.approx(
        p * p * _unit(z, form), rel=1e-13
    )


def test_a_published_poisson_level() -> None:
    # facts/privacy.md: q = 0.01, sigma = 1.1, T = 10,000: epsilon 5.065 at 1e-5
    mu = level(np.full(10_000, 1.1), 0.01, "gdp_poisson")
    assert gdp.epsilon(mu, 1e-5) == pytest.approx(5.065, abs=5e-4)


@pytest.mark.parametrize("form", FORMS)
def test_full_batches_compose_exactly(form: gdp.Form) -> None:
    z = np.array([2.0, 4.0, 0.5])
    assert level(z, 1.0, form) == math.sqrt(1 / 4 + 1 / 16 + 4)
    assert gdp.noise_multiplier(0.5, 100, 1.0, form) == 20.0


@pytest.mark.parametrize("form", FORMS)
def test_level_inverts_noise_multiplier(form: gdp.Form) -> None:
    levels = (1e-12, 1e-3, 0.5, 2.0, 30.0, 1e6)
    for mu, releases, p in product(levels, (1, 1_000_000), (1e-4, 0.3, 1.0)):
        z = gdp.noise_multiplier(mu, releases, p, form)
        found = math.sqrt(releases) * level(z, p, form)
        assert found == pytest.approx(mu, rel=1e-12), (mu, releases, p)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("p", [0.01, 1.0])
def test_extreme_multipliers_neither_warn_nor_fail(form: gdp.Form, p: float) -> None:
    assert level(0.0, p, form) == math.inf
    assert level([1.0, 1e-200], p, form) == math.inf
    assert level(math.inf, p, form) == 0.0
    assert level(1e170, p, form) == 0.0
    assert level([], p, form) == 0.0
    assert gdp.noise_multiplier(1e-200, 1, p, form) == pytest.approx(p * 1e200)
    assert 0 < gdp.noise_multiplier(1e200, 1, p, form) < 1


@pytest.mark.parametrize("form", SUBSAMPLED)
def test_large_multipliers_follow_the_linear_rule(form: gdp.Form) -> None:
    # the uniform form's next term is 0.8 / z of the first, the Poisson form's 0.5 / z^2
    assert level(1e9, 0.2, form) == pytest.approx(0.2e-9, rel=1e-9)


def test_the_linear_rule_asks_for_the_least_noise() -> None:
    for mu in np.geomspace(1e-3, 1e3, 25):
        linear, poisson, uniform = (
            gdp.noise_multiplier(float(mu), 100, 0.05, form)
            for form in ("gdp_linear", "gdp_poisson", "gdp_uniform")
        )
        whole = gdp.noise_multiplier(float(mu), 100, 1.0, "gdp_uniform")
        assert linear < poisson <= uniform <= whole * (1 + 1e-12)
        # of much noise, where the central limit is below the whole's exact level
        assert poisson < uniform or uniform == pytest.approx(whole, rel=1e-12)


@pytest.mark.parametrize("form", SUBSAMPLED)
def test_no_draw_costs_more_than_all_rows(form: gdp.Form) -> None:
    z = np.geomspace(0.2, 100, 60)
    for p in (1e-4, 0.1, 0.5, 0.97):
        found = gdp.increments(z, p, form)
        central = np.array([p * p * _unit(one, form) for one in z])
        np.testing.assert_allclose(found, np.minimum(central, z**-2.0), rtol=1e-12)
    # the central limit alone asks for more than the root of 25 messages over mu
    assert gdp.noise_multiplier(1.0, 25, 0.9999, form) == 5.0


def test_the_uniform_form_lies_between_once_and_twice_the_poisson_form() -> None:
    # the bracket in which the inverse is searched
    z = np.geomspace(0.04, 1e6, 2_000)
    uniform, poisson = (gdp.increments(z, 0.5, form) for form in SUBSAMPLED)
    assert (uniform >= poisson * (1 - 1e-13)).all()
    assert (uniform <= 2 * poisson * (1 + 1e-13)).all()


@pytest.mark.parametrize(
    ("mu", "delta", "epsilon"),
    [
        # dp_accounting 0.6, get_epsilon_gaussian(1 / mu, delta)
        (0.01, 1e-12, 0.06075221062993648),
        (0.3, 1e-5, 1.1317748966410135),
        (1.0, 0.1, 1.1603338527916227),
        (5.0, 1e-12, 47.04923217270165),
        (200.0, 0.1, 20255.31351156098),
        (1e4, 1e-5, 50042647.90815241),
    ],
)
def test_epsilon_agrees_with_another_implementation(
    mu: float, delta: float, epsilon: float
) -> None:
    assert gdp.epsilon(mu, delta) == pytest.approx(epsilon, rel=1e-10)
    assert gdp.delta_at(mu, gdp.epsilon(mu, delta)) == pytest.approx(delta, rel=1e-6)


def test_epsilon_at_its_ends() -> None:
    assert gdp.epsilon(0.0, 1e-5) == 0.0
    assert gdp.epsilon(math.inf, 1e-5) == math.inf
    assert gdp.epsilon(1e200, 1e-5) == math.inf
    # delta(0) = 2 Phi(mu / 2) - 1 = 0.383 at mu = 1
    assert gdp.epsilon(1.0, 0.39) == 0.0
    assert 0 < gdp.epsilon(1.0, 0.38) < 0.01
    assert gdp.delta_at(1.0, 0.0) == pytest.approx(math.erf(1 / math.sqrt(8)))
    assert gdp.delta_at(0.0, 1.0) == 0.0
    assert gdp.delta_at(math.inf, 1.0) == 1.0


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: level([1.0, -2.0], 0.1, "gdp_linear"), "noise multiplier must"),
        (lambda: level(math.nan, 0.1, "gdp_linear"), "noise multiplier must"),
        (lambda: level(1.0, 0.0, "gdp_linear"), r"sampling ratio must.*got 0\.0"),
        (lambda: level(1.0, 1.5, "gdp_linear"), "sampling ratio must"),
        (lambda: gdp.noise_multiplier(0.0, 1, 1.0, "gdp_linear"), "mu must be > 0"),
        (lambda: gdp.noise_multiplier(1.0, 0, 1.0, "gdp_linear"), "releases must"),
        (lambda: gdp.epsilon(-1.0, 1e-5), "mu must be >= 0"),
        (lambda: gdp.epsilon(1.0, 0.0), "delta must be in"),
    ],
)
def test_mistakes_are_named_in_one_line(
    call: Callable[[], object], message: str
) -> None:
    with pytest.raises(UserError, match=message) as caught:
        call()
    assert "\n" not in str(caught.value)


def test_an_unknown_form_is_refused() -> None:
    # a TypeError where the suite runs under a type checker
    with pytest.raises((UserError, TypeError), match="gdp_uniform"):
        level(1.0, 1.0, UNKNOWN)
