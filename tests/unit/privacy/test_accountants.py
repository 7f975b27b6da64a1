"""Accountants: reference values, closed forms, and the traps of composition."""

import functools
import itertools
import json
import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest

from stalesim.simulator.parts.errors import UserError
from stalesim.simulator.privacy import composition, gdp
from stalesim.simulator.privacy.accountants import (
    Accountant,
    Advanced,
    Basic,
    Gdp,
    Optimal,
    Pld,
    Rdp,
    Theorem2,
)
from stalesim.simulator.privacy.budgets import (
    calibrate,
    calibrated,
    history,
    opinions,
    releases_within,
)
from stalesim.simulator.privacy.parts import AccountantPart, known, make
from stalesim.simulator.privacy.releases import Gaussian, Laplace, Pure, Release

DELTA = 1e-5
OF_PURE = (Basic, Advanced, Optimal, Rdp, Pld)
OF_GAUSSIAN = (Rdp, Pld, Gdp)
of_pure = pytest.mark.parametrize("kind", OF_PURE, ids=lambda kind: kind.NAME)
of_gaussian = pytest.mark.parametrize("kind", OF_GAUSSIAN, ids=lambda kind: kind.NAME)


def _epsilon(
    kind: type[Accountant], *releases: tuple[int, Release], delta: float = DELTA
) -> float:
    accountant = kind()
    for count, event in releases:
        accountant.release(count, event)
    return accountant.epsilon(delta)


def _on_lattice(value: float, epsilon: float, count: int) -> float:
    """Returns the smallest epsilon * (count - 2 i) that is not below a value."""
    return epsilon * (count - 2 * math.floor((count - value / epsilon) / 2))


# facts/privacy.md; half a unit of the last printed digit


SAMPLED = 10_000, Gaussian(1.1, 0.01, "poisson")


@pytest.mark.parametrize(
    ("kind", "releases", "reference", "error"),
    [
        (Basic, (100, Laplace(0.1)), 10, 5e-4),
        (Advanced, (100, Laplace(0.1)), 5.850, 5e-4),
        (Rdp, (100, Laplace(0.1)), 4.533, 5e-4),
        (Pld, (100, Laplace(0.1)), 4.220, 5e-4),
        (Rdp, SAMPLED, 5.632, 5e-4),
        (Pld, SAMPLED, 5.193, 5e-4),
        (Gdp, SAMPLED, 5.065, 5e-4),
        # mapa.md, section 6: T = 15,000 at epsilon 0.1
        (Basic, (15_000, Pure(0.1)), 1500, 1e-6),
        (Advanced, (15_000, Pure(0.1)), 216.5, 0.05),
    ],
)
def test_references(
    kind: type[Accountant], releases: Any, reference: float, error: float
) -> None:
    assert _epsilon(kind, releases) == pytest.approx(reference, abs=error)


def test_reference_of_kairouz_oh_and_viswanath() -> None:
    assert composition.kairouz([0.1], [100], DELTA) == pytest.approx(5.298, abs=5e-4)
    # the library's direct sum overflows at these two
    for count, reference in ((100, 4.4), (1_000, 17.8), (5_000, 54.4)):
        found = _epsilon(Optimal, (count, Pure(0.1)))
        assert _on_lattice(found, 0.1, count) == pytest.approx(reference, rel=1e-12)


# closed forms


def _delta_by_sets(epsilons: list[Fraction], target: Fraction) -> Fraction:
    """Murtagh and Vadhan's sum over all sets, of odds e^epsilon that are rational."""
    total = Fraction(0)
    for signs in itertools.product((True, False), repeat=len(epsilons)):
        inside = math.prod(o for o, s in zip(epsilons, signs, strict=True) if s)
        outside = math.prod(o for o, s in zip(epsilons, signs, strict=True) if not s)
        total += max(Fraction(0), inside - target * outside)
    return total / math.prod(1 + o for o in epsilons)


@pytest.mark.parametrize("count", [1, 2, 3, 8])
@pytest.mark.parametrize("odds", [Fraction(11, 10), Fraction(3, 2), Fraction(20)])
def test_optimal_inverts_the_exact_sum(count: int, odds: Fraction) -> None:
    for target in (Fraction(101, 100), odds**count * 3 / 4, odds**count * 99 / 100):
        delta = float(_delta_by_sets([odds] * count, target))
        if target > 1:  # below, epsilon is zero
            found = composition.optimal(math.log(odds), count, delta)
            # the last digit of a delta near 1 is worth as much
            assert found == pytest.approx(math.log(target), rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("epsilon", [1e-3, 1.0, 10.0])
@pytest.mark.parametrize("count", [1, 1_000])
@pytest.mark.parametrize("delta", [1e-12, 0.3])
def test_bounds_are_ordered(epsilon: float, count: int, delta: float) -> None:
    best = composition.optimal(epsilon, count, delta)
    closed = composition.kairouz([epsilon], [count], delta)
    assert 0 <= best <= closed * (1 + 1e-12)
    assert closed <= composition.advanced([epsilon], [count], delta) * (1 + 1e-12)
    assert closed <= epsilon * count * (1 + 1e-12)


def test_one_pure_release_has_its_closed_form() -> None:
    # delta = (e^eps - e^x) / (1 + e^eps) of randomised response
    x = math.log(math.exp(1) - 0.2 * (1 + math.exp(1)))
    assert composition.optimal(1.0, 1, 0.2) == pytest.approx(x, rel=1e-12)
    assert composition.optimal(1.0, 0, 0.2) == 0
    assert composition.optimal(1e-6, 10, 0.5) == 0


def test_optimal_neither_overflows_nor_jumps() -> None:
    values = [composition.optimal(0.1, 10**k, DELTA) for k in range(9)]
    assert np.isfinite(values).all()
    # k eps tanh(eps / 2) + eps sqrt(k) z: the central limit; z lies in (4, 4.5)
    drift, spread = 10**8 * 0.1 * math.tanh(0.05), 0.1 * 10**4
    assert drift + 4 * spread < values[-1] < drift + 4.5 * spread
    assert composition.optimal(500.0, 4, DELTA) == pytest.approx(2000)


@of_gaussian
@pytest.mark.parametrize("multiplier", [0.8, 5.0, 40.0])
def test_gaussian_releases_are_one_of_root_sum_of_squares(
    kind: type[Accountant], multiplier: float
) -> None:
    exact = gdp.epsilon(math.sqrt(50 / multiplier**2 + 10 / 4), DELTA)
    found = _epsilon(kind, (50, Gaussian(multiplier)), (10, Gaussian(2.0)))
    assert found >= exact * (1 - 1e-9)
    # PLD's grid costs 1e-4 of a loss; RDP's conversion is some 10 % loose
    assert found <= exact * (1.2 if kind is Rdp else 1.001) + 1e-3


def test_unequal_pure_releases() -> None:
    releases = (60, Pure(0.1)), (20, Pure(0.3)), (1, Pure(1.0))
    bound, optimum = _epsilon(Optimal, *releases), _epsilon(Pld, *releases)
    assert optimum < bound < 13.0
    assert _epsilon(Basic, *releases) == pytest.approx(13.0)
    assert bound == composition.kairouz([0.1, 0.3, 1.0], [60, 20, 1], DELTA)
    # nearly equal ones cost hardly more than equal ones
    nearly = _epsilon(Optimal, (99, Pure(0.1)), (1, Pure(0.0999)))
    assert nearly == composition.optimal(0.1, 100, DELTA)


def test_loss_distributions_find_the_optimum_of_pure_releases() -> None:
    exact = composition.optimal(0.1, 100, DELTA)
    assert exact <= _epsilon(Pld, (100, Pure(0.1))) <= exact + 1e-6


def test_unequal_optimum_against_the_sum_over_sets() -> None:
    odds = [Fraction(5, 4)] * 3 + [Fraction(2)] * 4
    for target in (Fraction(2), Fraction(10)):
        delta = float(_delta_by_sets(odds, target))
        releases = (3, Pure(math.log(5 / 4))), (4, Pure(math.log(2)))
        exact = math.log(target)
        # seven losses rounded up to a grid of 1e-4
        assert exact <= _epsilon(Pld, *releases, delta=delta) <= exact + 1e-3
        assert exact <= _epsilon(Optimal, *releases, delta=delta)


def test_one_coordinate_is_the_worst_case_of_laplace_noise() -> None:
    for delta in (1e-6, 1e-3, 0.1, 0.3):
        whole = _epsilon(Pld, (1, Laplace(1.0)), delta=delta)
        split = _epsilon(Pld, (1, Laplace(0.3)), (1, Laplace(0.7)), delta=delta)
        assert split <= whole + 1e-9
        closed = 1 + 2 * math.log1p(-delta)  # delta = 1 - e^((x - eps) / 2)
        assert whole == pytest.approx(max(0, closed), abs=1e-3)


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 5.0])
def test_laplace_costs_no_more_than_any_pure_mechanism(epsilon: float) -> None:
    for kind in (Rdp, Pld):
        laplace = _epsilon(kind, (10, Laplace(epsilon)))
        # the worst case's losses are rounded up: 1e-4 a release
        assert laplace <= _epsilon(kind, (10, Pure(epsilon))) + 1e-9


# traps


@of_pure
def test_pure_epsilons_are_summed_at_delta_zero_and_at_most(
    kind: type[Accountant],
) -> None:
    found = _epsilon(kind, (30, Laplace(0.1)), (5, Pure(0.4)), delta=0.0)
    assert found == pytest.approx(5.0)
    assert _epsilon(kind, (2, Pure(3.0)), delta=1e-9) <= 6.0
    assert _epsilon(kind, (1, Laplace(3.0)), delta=1e-9) <= 3.0


@of_gaussian
def test_at_delta_zero_gaussian_noise_gives_nothing(kind: type[Accountant]) -> None:
    assert _epsilon(kind, (1, Gaussian(5.0)), delta=0.0) == math.inf


def test_a_multiplier_is_over_the_sensitivity_that_is_claimed() -> None:
    # dp-accounting's replace-one adjacency would double it in PLD and not in RDP
    exact = gdp.epsilon(math.sqrt(100) / 20, DELTA)
    assert _epsilon(Pld, (100, Gaussian(20.0))) == pytest.approx(exact, abs=2e-3)
    whole = Gaussian(20.0, 1 - 1e-12, "uniform")
    assert _epsilon(Rdp, (100, whole)) == pytest.approx(
        _epsilon(Rdp, (100, Gaussian(20.0))), rel=0.02
    )


def _of_all_rows(multiplier: float, count: int) -> float:
    """Plain Gaussian noise by Mironov's alpha / (2 z^2), and CKS's conversion."""
    orders = np.concatenate(
        [np.arange(11, 110) / 10, np.arange(11, 64), 2.0 ** np.arange(6, 11)]
    )
    found = count * orders / (2 * multiplier**2) + np.log1p(-1 / orders)
    return float((found - np.log(DELTA * orders) / (orders - 1)).min())


@pytest.mark.parametrize(
    ("multiplier", "count"),
    [(3.0, 25), pytest.param(6.0, 1_000, marks=pytest.mark.slow)],
)
def test_no_share_costs_more_than_all_rows(multiplier: float, count: int) -> None:
    import dp_accounting as dpa

    whole = _of_all_rows(multiplier, count)
    # orders other than the library's may find a little less or more
    assert _epsilon(Rdp, (count, Gaussian(multiplier))) == pytest.approx(
        whole, rel=5e-3
    )
    shares = (4, 10, 22, 35, 36)
    found = [_epsilon(Rdp, (count, Gaussian(multiplier, rows / 36))) for rows in shares]
    assert found == sorted(found)
    assert max(found) == found[-2] == found[-1] <= whole * 1.005
    for rows, epsilon in zip(shares[:2], found[:2], strict=True):
        event = dpa.SampledWithoutReplacementDpEvent(
            36, rows, dpa.GaussianDpEvent(multiplier)
        )
        theirs = dpa.rdp.RdpAccountant(
            neighboring_relation=dpa.NeighboringRelation.REPLACE_ONE
        ).compose(event, count)
        assert epsilon == pytest.approx(theirs.get_epsilon(DELTA), rel=1e-9)


@pytest.mark.parametrize("kind", [Rdp, Pld, Gdp], ids=lambda kind: kind.NAME)
@pytest.mark.parametrize("sampling", ["uniform", "poisson"])
@pytest.mark.parametrize("share", [0.05, 0.6, 0.97])
def test_a_draw_never_costs_more_than_none(
    kind: type[Accountant], sampling: Any, share: float
) -> None:
    if kind is Pld and sampling == "uniform":
        return  # it has no distribution
    for multiplier, count in ((0.7, 1), (3.0, 25)):
        whole = _epsilon(kind, (count, Gaussian(multiplier)))
        drawn = _epsilon(kind, (count, Gaussian(multiplier, share, sampling)))
        assert drawn <= whole + 1e-9


@of_pure
@pytest.mark.parametrize("share", [0.05, 0.999])
def test_a_draw_of_laplace_noise_costs_no_more_than_none(
    kind: type[Accountant], share: float
) -> None:
    whole = _epsilon(kind, (50, Laplace(0.3)))
    drawn = _epsilon(kind, (50, Laplace(0.3, share)))
    assert drawn <= whole + 1e-9
    both = _epsilon(kind, (25, Laplace(0.3, share)), (25, Laplace(0.3, share / 2)))
    assert both <= drawn + 1e-9


@pytest.mark.slow
def test_noise_and_budgets_of_nearly_all_rows_are_those_of_all() -> None:
    # 35 of 36 rows, 25 messages: the draw alone asks for 5.888
    drawn = functools.partial(Gaussian, sampling_ratio=35 / 36)
    found = calibrate(8.0, DELTA, 25, Rdp(), drawn)
    assert found == pytest.approx(calibrate(8.0, DELTA, 25, Rdp()), rel=2e-6)
    assert _of_all_rows(found, 25) == pytest.approx(8, rel=5e-3)
    budgets = [
        releases_within(8.0, DELTA, Gaussian(3.0, rows / 36), Rdp())
        for rows in (30, 35, 36)
    ]
    assert budgets == [22, 22, 22]
    assert _of_all_rows(3.0, 22) <= 8.0 < _of_all_rows(3.0, 23)


def test_a_pure_release_is_amplified_by_the_clients_own_draw() -> None:
    # Balle, Barthe and Gaboardi: log(1 + q (e^eps - 1))
    event = Laplace(1.0, sampling_ratio=0.1)
    assert event.pure_epsilon == math.log(1 + 0.1 * (math.e - 1))
    assert _epsilon(Basic, (10, event)) == pytest.approx(10 * event.pure_epsilon)
    for kind in (Rdp, Pld):
        assert _epsilon(kind, (10, event)) == _epsilon(
            kind, (10, Pure(event.pure_epsilon))
        )
    assert Pure(800.0, 0.5).pure_epsilon == 800.0


@pytest.mark.parametrize("part", known(), ids=lambda part: part.name)
def test_asking_changes_nothing_and_order_does_not_matter(
    part: AccountantPart,
) -> None:
    one: Release = Pure(0.1) if part.pure else Gaussian(9.0)
    two: Release = Pure(0.2) if part.pure else Gaussian(7.0)
    first, second = part.make(), part.make()
    assert first.epsilon(DELTA) == first.epsilon(0) == 0
    for _ in range(3):
        first.release(1, one)
        value = first.epsilon(DELTA)
        assert first.epsilon(DELTA) == value
    first.release(2, two)
    second.release(2, two)
    second.release(0, one)
    second.release(3, one)
    assert first.releases == second.releases == 5
    assert second.epsilon(DELTA) == pytest.approx(first.epsilon(DELTA), rel=1e-12)
    assert first.epsilon(DELTA) > value
    assert first.after(1, two).epsilon(DELTA) > first.epsilon(DELTA)
    assert first.releases == 5
    assert first.formal == (part.name not in ("theorem2", "secret_poisson"))


@pytest.mark.parametrize("part", known(), ids=lambda part: part.name)
def test_a_record_says_what_its_accountant_can_account_for(
    part: AccountantPart,
) -> None:
    laws: dict[str, Release] = {"gaussian": Gaussian(9.0), "laplace": Laplace(0.1)}
    for law, release in laws.items():
        if part.accounts_for(law):
            part.make().release(1, release)
        else:
            with pytest.raises(UserError, match="accounts for"):
                part.make().release(1, release)
    assert part.name == make(part.name).NAME


@pytest.mark.parametrize("event", [Gaussian(0.0), Pure(math.inf), Laplace(math.inf)])
def test_an_unprotected_release_gives_everything_away(event: Release) -> None:
    for kind in (Rdp, Pld):
        assert _epsilon(kind, (5, Pure(0.1)), (1, event)) == math.inf


def test_mixed_mechanisms_compose() -> None:
    # a Gaussian and a pure release: between either alone and the sum of both
    for kind in (Rdp, Pld):
        parts = [(20, Gaussian(10.0)), (20, Laplace(0.05))]
        both = _epsilon(kind, *parts)
        alone = [_epsilon(kind, part, delta=DELTA / 2) for part in parts]
        assert max(_epsilon(kind, part) for part in parts) < both < sum(alone)


# budgets

MAKERS: list[tuple[type[Accountant], Callable[[float], Release]]] = [
    *((kind, Laplace.of_multiplier) for kind in OF_PURE),
    *((kind, Gaussian) for kind in OF_GAUSSIAN),
    (Rdp, functools.partial(Gaussian, sampling_ratio=0.05, sampling="poisson")),
    (Gdp, functools.partial(Gaussian, sampling_ratio=0.05)),
    (Optimal, functools.partial(Pure.of_multiplier, sampling_ratio=0.05)),
]


@pytest.mark.parametrize(("kind", "event"), MAKERS)
def test_calibration_meets_the_budget_and_no_more(
    kind: type[Accountant], event: Callable[[float], Release]
) -> None:
    multiplier = calibrate(1.5, DELTA, 40, kind(), event)
    assert _epsilon(kind, (40, event(multiplier))) <= 1.5
    assert _epsilon(kind, (40, event(multiplier * (1 - 1e-4)))) > 1.5
    assert releases_within(1.5, DELTA, event(multiplier), kind()) == 40


@pytest.mark.parametrize(("name", "expected"), [("rdp", 2.387196), ("pld", 2.204919)])
def test_poisson_batches_need_the_noise_of_dp_accounting(
    name: str, expected: float
) -> None:
    # dpa.calibrate_dp_mechanism, 25 x PoissonSampledDpEvent(0.2, GaussianDpEvent(z))
    found, _ = calibrated(2.16, DELTA, 25, "gaussian", 0.2, name, "poisson")
    assert found == pytest.approx(expected, rel=3e-6)
    with pytest.raises(UserError, match="must be one of gaussian with poisson"):
        calibrated(2.16, DELTA, 25, "laplace", 0.2, name, "poisson")


def test_a_history_of_opacus_has_the_epsilons_of_dp_accounting(tmp_path: Path) -> None:
    file, entries = tmp_path / "history.json", [[1.0, 0.02, 500], [1.5, 0.01, 1000]]
    found = []
    for tree in (entries, {"history": entries, "mechanism": "rdp"}):
        file.write_text(json.dumps(tree))
        found.append(history(file))
    assert found[0] == found[1]
    said = {name: (e, formal) for name, e, formal in opinions(found[0], DELTA, "rdp")}
    # RdpAccountant and PLDAccountant, add or remove one
    assert said["rdp"] == (pytest.approx(3.312904, abs=1e-6), True)
    assert said["pld"] == (pytest.approx(2.942814, abs=1e-5), True)
    assert not said["gdp"][1]
    # Integer orders of Mironov, Talwar and Zhang (2019), section 3.3, by hand.
    orders = [_by_hand(entries, order) for order in range(2, 30)]
    assert min(orders) == pytest.approx(3.3182, abs=1e-4)
    assert min(orders) > 3.312904  # which has fractional orders as well


def _by_hand(entries: list[list[float]], order: int) -> float:
    k = np.arange(order + 1)
    choose = np.array([math.comb(order, int(each)) for each in k], float)
    total = 0.0
    for z, q, steps in entries:
        moment = choose * q**k * (1 - q) ** (order - k) * np.exp((k * k - k) / 2 / z**2)
        total += steps * math.log(moment.sum()) / (order - 1)
    rest = math.log(DELTA * order) / (order - 1)
    return total + math.log1p(-1 / order) - rest


@pytest.mark.parametrize(
    "text",
    [
        *("hm", "[]", "3", '{"a": 1}', "[[1, 0.1]]", '[["a", 0.1, 5]]', ""),
        *("[[1, 0.1, 5.5]]", "[[1, 2, 5]]", "[[-1, 0.1, 5]]", "[[NaN, 0.1, 5]]"),
        "[[1, 0.1, 0]]",
    ],
)
def test_nonsense_is_no_history(text: str, tmp_path: Path) -> None:
    (tmp_path / "h.json").write_text(text)
    with pytest.raises(UserError, match=r"^h.json must be a JSON list of .*, got: .*$"):
        history(tmp_path / "h.json")


def test_calibration_in_closed_form() -> None:
    found = calibrate(1.5, 0.0, 40, Basic(), Laplace.of_multiplier)
    assert found == pytest.approx(40 / 1.5, rel=2e-6)
    found = calibrate(2.0, DELTA, 100, Gdp())
    mu = math.sqrt(100) / found
    assert gdp.epsilon(mu, DELTA) == pytest.approx(2, rel=1e-5)


@pytest.mark.parametrize("kind", [Rdp, Gdp])
def test_calibration_counts_what_was_spent(kind: type[Accountant]) -> None:
    spent = kind()
    spent.release(10, Gaussian(10.0))
    multiplier = calibrate(3.0, DELTA, 10, spent)
    assert multiplier > calibrate(3.0, DELTA, 10, kind())
    assert spent.after(10, Gaussian(multiplier)).epsilon(DELTA) <= 3.0
    assert spent.releases == 10


def test_releases_within_a_budget() -> None:
    basic = functools.partial(releases_within, delta=0.0, accountant=Basic())
    assert basic(1.0, event=Pure(0.25)) == 4
    assert basic(1.0, event=Pure(0.26)) == 3
    assert basic(1.0, event=Pure(1.5)) == 0
    assert basic(1.0, event=Pure(1e-12)) == 10**9
    # the budget was exceeded before
    assert releases_within(1.0, 0.0, Pure(0.1), Basic().after(3, Pure(0.5))) == 0
    # 0.75 is left
    assert releases_within(1.0, 0.0, Pure(0.1), Basic().after(1, Pure(0.25))) == 7
    counts = [releases_within(2.0, DELTA, Laplace(0.05), kind()) for kind in OF_PURE]
    assert counts[0] == 40
    assert counts[0] < counts[1] < counts[2] <= counts[4]


@pytest.mark.parametrize(
    ("call", "given", "message"),
    [
        (Gaussian, (-1.0,), "noise multiplier must be >= 0.*got -1.0"),
        (Gaussian, (math.nan,), "noise multiplier must be >= 0"),
        (Gaussian, (math.inf,), "finite, got inf"),
        (Gaussian, (1.0, 0.0), r"sampling ratio must be in.*got 0\.0"),
        (Pure, (0.0,), "epsilon of a release must be > 0"),
        (Laplace, (1.0, 2.0), "sampling ratio must be"),
        (Basic().release, (-1, Pure(0.1)), "count must be >= 0, got -1"),
        (Optimal().release, (1, Gaussian(1.0)), "optimal accounts for pure"),
        (Gdp().release, (1, Pure(1.0)), "gdp accounts for Gaussian"),
        (Pld().release, (1, Gaussian(1.0, 0.1)), "uniformly sampled.*use rdp"),
        (
            *(Theorem2().release, (1, Gaussian(2.0, 0.01, "poisson"))),
            "theorem2 accounts for Gaussian noise on distinct samples, got .*; use rdp",
        ),
        (Basic().epsilon, (1.0,), r"delta must be in \[0, 1\), got 1.0"),
        (make, ("moments",), "accountant must be one of basic, .*'moments'"),
        (calibrate, (0.0, DELTA, 1, Rdp()), "target epsilon must be > 0"),
        (calibrate, (1.0, -1.0, 1, Rdp()), "delta must be in"),
        (calibrate, (1.0, DELTA, 0, Rdp()), "must be from 1 to 100,000,000 by rdp"),
        (calibrate, (1.0, 0.0, 1, Rdp()), "must be reachable, got 1.0"),
        (releases_within, (0.0, 0.0, Pure(1.0), Rdp()), "target epsilon must"),
        (releases_within, (1.0, 1.0, Pure(1.0), Rdp()), "delta must be in"),
    ],
)
def test_mistakes_are_named_in_one_line(
    call: Callable[..., object], given: tuple, message: str
) -> None:
    with pytest.raises(UserError, match=message) as caught:
        call(*given)
    assert "\n" not in str(caught.value)


def test_two_ways_of_sampling_do_not_mix() -> None:
    accountant = Rdp()
    accountant.release(1, Gaussian(1.0, 0.1, "uniform"))
    accountant.release(1, Gaussian(1.0))
    with pytest.raises(UserError, match="sampled in one way"):
        accountant.release(1, Gaussian(1.0, 0.1, "poisson"))
    assert accountant.releases == 2


@dataclass(frozen=True)
class Twice(Release):
    """Two numbers, each with normal noise: one that no accountant knows by name."""

    multiplier: float
    sampling_ratio: float = 1.0
    is_pure: ClassVar[bool] = False
    pure_epsilon: ClassVar[float] = math.inf  # pyright: ignore[reportIncompatibleMethodOverride]
    protects: ClassVar[bool] = True  # pyright: ignore[reportIncompatibleMethodOverride]

    @property
    def noise(self) -> float:
        return self.multiplier / math.sqrt(2)

    def event(self) -> Any:
        return Gaussian(self.noise).event()

    def losses(self, interval: float) -> Any:
        return Gaussian(self.noise).losses(interval)


@of_gaussian
def test_a_release_of_ones_own_is_accounted_for(kind: type[Accountant]) -> None:
    expected = _epsilon(kind, (3, Gaussian(4.0)))
    assert _epsilon(kind, (3, Twice(4 * math.sqrt(2)))) == pytest.approx(
        expected, rel=1e-9
    )
    with pytest.raises(UserError, match="accounts for pure epsilons"):
        Basic().release(1, Twice(4.0))
