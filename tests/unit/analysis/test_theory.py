import ast
import math
import re
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import special, stats

from stalesim.analysis import theory
from stalesim.analysis.theory import Lattice

M7 = np.arange(1, 8)


def _poisson(num_clients: int) -> list[Lattice]:
    return [
        Lattice(stats.poisson(2 * m), 1 / (2 * num_clients))
        for m in range(1, num_clients + 1)
    ]


def _exponential(rates: list[float]) -> list[Any]:
    return [stats.expon(scale=1 / rate) for rate in rates]


def test_activation_reads_lambda_as_gap_or_rate() -> None:
    np.testing.assert_allclose(
        theory.activation_from_rates(1 / np.arange(1, 5)),
        [0.48, 0.24, 0.16, 0.12],
        rtol=1e-15,
    )
    np.testing.assert_allclose(
        theory.activation_from_rates([1, 2, 3, 4]), [0.1, 0.2, 0.3, 0.4], rtol=1e-15
    )


def test_mean_embedding_ages_of_the_specification() -> None:
    q = theory.activation_from_rates(1 / np.asarray(M7))
    batch = 1 / theory.embedding_refresh(q, batch=10, num_samples=1000)
    every = 1 / theory.embedding_refresh(q)
    assert np.round(batch).tolist() == [259, 519, 778, 1037, 1296, 1556, 1815]
    np.testing.assert_allclose(
        every, [2.59, 5.19, 7.78, 10.4, 13.0, 15.6, 18.2], rtol=4e-3
    )
    with pytest.raises(ValueError, match="num_samples must be >= 10"):
        theory.embedding_refresh(q, batch=10)
    with pytest.raises(ValueError, match="num_samples must be >= 10, got 9"):
        theory.embedding_refresh(q, batch=10, num_samples=9)


def test_embedding_age_law() -> None:
    law = theory.embedding_age_law(0.03)
    assert law.pmf(0) == 0
    np.testing.assert_allclose(law.pmf([1, 2, 3]), 0.03 * 0.97 ** np.arange(3))
    assert law.mean() == pytest.approx(1 / 0.03)
    assert law.moment(2) == pytest.approx(2188.89, abs=0.005)


def test_embedding_ages_of_a_simulated_chain() -> None:
    # independent activations; equation 3; ages seen by the other clients
    generator = np.random.default_rng(3)
    q = theory.activation_from_rates(1 / np.arange(1, 5))
    active = generator.choice(4, size=200_000, p=q)
    refreshed = np.full((4, len(active)), -1)
    for client in range(4):
        at = np.where(active == client, np.arange(len(active)), -1)
        refreshed[client, 1:] = np.maximum.accumulate(at)[:-1]
    for client in range(4):
        used = (active != client) & (refreshed[client] >= 0)
        ages = (np.arange(len(active)) - refreshed[client])[used]
        law = theory.embedding_age_law(q[client])
        # ages of one cycle are dependent: about len * q cycles, each of mean age 1/q,
        # give a relative standard deviation below 3 / sqrt(len * q); four of them
        error = 4 * 3 / math.sqrt(len(active) * q[client])
        assert ages.mean() == pytest.approx(law.mean(), rel=error)
        assert (ages == 1).mean() == pytest.approx(law.pmf(1), rel=error)


# vafl.md 5.4, first table. The M = 7 row prints 1.108 and 6.32; exact are 1.10854 and
# 6.3146: hence 0.55 units of the last printed digit instead of half.
TABLE = [
    (_poisson(3), 1.087, 2.76, 5.50, 1.99),
    (_poisson(7), 1.108, 6.32, 18.15, 2.87),
    (_poisson(8), 1.110, 7.21, 21.74, 3.02),
    (_exponential([1, 1 / 2, 1 / 3, 1 / 4]), 5.727, 0.698, 2.083, 2.98),
    (_exponential([1, 2, 3, 4]), 1.236, 3.236, 10.0, 3.09),
]


@pytest.mark.parametrize(
    ("laws", "longest", "synchronous", "asynchronous", "ratio"), TABLE
)
def test_throughput_table(
    laws: list[Any],
    longest: float,
    synchronous: float,
    asynchronous: float,
    ratio: float,
) -> None:
    found = theory.throughput(laws)
    assert theory.expected_maximum(laws) == pytest.approx(longest, abs=5.5e-4)
    assert found.synchronous == pytest.approx(synchronous, abs=5.5e-3)
    assert found.asynchronous == pytest.approx(asynchronous, abs=5e-3)
    assert found.ratio == pytest.approx(ratio, abs=5e-3)


def test_poisson_maximum_by_a_direct_sum() -> None:
    # P(max <= k) is a product of partial sums of e^-l l^j / j!
    def cdf(k: int, mean: int) -> float:
        return math.fsum(
            math.exp(-mean) * mean**j / math.factorial(j) for j in range(k + 1)
        )

    direct = math.fsum(
        1 - math.prod(cdf(k, 2 * m) for m in range(1, 8)) for k in range(80)
    )
    # 80 differences from one, each rounded at 1e-16
    assert theory.expected_maximum(_poisson(7)) == pytest.approx(direct / 14, rel=1e-13)
    assert theory.expected_maximum(_poisson(7)) == pytest.approx(1.108540538, rel=1e-9)


@pytest.mark.parametrize("t", [1, 3, 5])
def test_exponential_order_statistics(t: int) -> None:
    # first t of n exponentials: (H_n - H_{n-t}) / rate
    harmonic = np.concatenate([[0], np.cumsum(1 / np.arange(1, 6))])
    found = theory.expected_order_statistic(_exponential([2.0] * 5), t)
    assert found == pytest.approx((harmonic[5] - harmonic[5 - t]) / 2, rel=1e-12)


def test_unequal_exponentials_by_inclusion_and_exclusion() -> None:
    rates = [1.0, 2.0, 5.0]
    laws = _exponential(rates)
    pairs = [1 / 3, 1 / 6, 1 / 7]
    singles = math.fsum(1 / rate for rate in rates)
    longest = singles - sum(pairs) + 1 / 8
    middle = sum(pairs) - 2 / 8
    assert theory.expected_maximum(laws) == pytest.approx(longest, rel=1e-12)
    found = theory.expected_order_statistic(laws, 2)
    assert found == pytest.approx(middle, rel=1e-12)


@pytest.mark.parametrize(
    "laws",
    [
        [stats.uniform(0, 1), stats.uniform(0.5, 2), stats.lognorm(1.5)],
        [stats.gamma(0.1), stats.pareto(2.5), Lattice(stats.poisson(3), 0.25, 0.1)],
        [
            Lattice(stats.poisson(1), 0.1),
            Lattice(stats.geom(0.3), 0.3),
            stats.randint(2, 9),
        ],
    ],
    ids=["continuous", "mixed", "lattice"],
)
def test_order_statistics_add_up_to_the_means(laws: list[Any]) -> None:
    total = math.fsum(theory.expected_order_statistic(laws, t) for t in (1, 2, 3))
    means = math.fsum(float(law.mean()) for law in laws)
    assert total == pytest.approx(means, rel=1e-8)


def test_order_statistics_of_other_laws() -> None:
    uniform = [stats.uniform(5, 2)] * 4
    assert theory.expected_order_statistic(uniform, 3) == pytest.approx(5 + 2 * 3 / 5)
    constant = Lattice(stats.randint(0, 1), shift=1.5)
    assert theory.expected_maximum([constant, constant]) == 1.5
    # max(1, exponential) = 1 + e^-1
    one = Lattice(stats.randint(0, 1), shift=1.0)
    found = theory.expected_maximum([one, stats.expon()])
    assert found == pytest.approx(1 + math.exp(-1), rel=1e-12)
    # the fastest of three Pareto(1.5) laws is Pareto(4.5)
    pareto = [stats.pareto(1.5)] * 3
    found = theory.expected_order_statistic(pareto, 1)
    assert found == pytest.approx(4.5 / 3.5, rel=1e-9)
    # two dice
    dice = [stats.randint(1, 7)] * 2
    assert theory.expected_maximum(dice) == pytest.approx(161 / 36, rel=1e-14)


@pytest.mark.parametrize(
    ("laws", "t", "message"),
    [
        ([stats.expon()], 0, "t must be between 1 and 1, got 0"),
        ([stats.expon()], 2, "t must be between 1 and 1, got 2"),
        ([stats.norm()], 1, "delays must be >= 0, got a law that begins at -inf"),
        ([Lattice(stats.poisson(1), 1.0, -1.0)], 1, "delays must be >= 0"),
        ([stats.pareto(0.9)], 1, "expected delay must be finite"),
        ([stats.zipf(1.5)], 1, "fewer than 2000000 values"),
    ],
)
def test_impossible_expectations(laws: list[Any], t: int, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        theory.expected_order_statistic(laws, t)


def test_t_synchronous_periods() -> None:
    poisson = _poisson(7)
    # printed from one simulation: 1 % of it is a generous sampling error
    assert theory.t_synchronous_period(poisson, 1) == pytest.approx(0.055, abs=5e-4)
    assert theory.t_synchronous_period(poisson, 7) == pytest.approx(1.107, rel=0.01)
    with pytest.raises(ValueError, match=r"t must be 1 or 7 .* got 4; simulate it"):
        theory.t_synchronous_period(poisson, 4)
    # without memory every t is exact
    laws = _exponential([1, 1 / 2, 1 / 3, 1 / 4])
    for t, simulated in ((1, 0.479), (2, 1.229), (3, 2.551), (4, 5.694)):
        assert theory.t_synchronous_period(laws, t) == pytest.approx(
            simulated, rel=0.01
        )
    late = [stats.expon(loc=1)] * 3
    with pytest.raises(ValueError, match="laws with a memory"):
        theory.t_synchronous_period(late, 2)


def test_staleness_of_jobs_in_flight() -> None:
    assert theory.mean_staleness_in_flight(20) == 19
    rates = [1.0, 2.0, 5.0]
    for client, rate in enumerate(rates):
        law = theory.exponential_staleness_law(rates, client)
        assert law.mean() == pytest.approx((8 - rate) / rate)
        assert law.pmf(0) == pytest.approx(rate / 8)
    same = theory.exponential_staleness_law(np.ones(20), 7)
    assert same.mean() == pytest.approx(theory.mean_staleness_in_flight(20))
    p = 1 / 20
    assert same.var() == pytest.approx((1 - p) / p**2)
    # weighted by shares of commits, the clients' means are C - 1 again
    shares = theory.activation_from_rates(rates)
    means = [theory.exponential_staleness_law(rates, i).mean() for i in range(3)]
    assert shares @ means == pytest.approx(theory.mean_staleness_in_flight(3))


@pytest.mark.parametrize("exponent", [1.1, 1.5, 2.1])
def test_rounds_of_heavy_tails_of_finite_mean_have_a_length(exponent: float) -> None:
    """n B(n, 1 - 1/b) is the mean largest of n Pareto variables (Malik, 1966)."""
    exact = 10 * special.beta(10, 1 - 1 / exponent)
    found = theory.expected_maximum([stats.pareto(exponent)], [10])
    assert found == pytest.approx(exact, rel=1e-10)
    with pytest.raises(ValueError, match="must be finite"):
        theory.expected_maximum([stats.pareto(0.9)], [10])


def test_a_round_of_unequal_log_normals_has_a_length() -> None:
    laws = [stats.lognorm(1.5, scale=scale) for scale in (1, 10, 100, 1000)]
    at = np.exp(np.linspace(-20, 40, 60_001))
    longer = 1 - np.prod([law.cdf(at) for law in laws], axis=0)
    whole = np.trapezoid(longer * at, np.log(at))
    assert theory.expected_maximum(laws) == pytest.approx(whole, rel=1e-6)


def test_every_closed_form_is_needed_by_the_product() -> None:
    root = Path(theory.__file__).parents[2]
    words = Counter(
        word
        for folder in ("analysis", "simulator")
        for path in (root / folder).rglob("*.py")
        if path.name != "__init__.py"
        for word in re.findall(r"\w+", path.read_text(encoding="utf-8"))
    )
    forms = [
        node.name
        for path in Path(theory.__file__).parent.glob("*.py")
        for node in ast.parse(path.read_text(encoding="utf-8")).body
        if isinstance(node, ast.FunctionDef)
    ]
    assert [name for name in forms if words[name] == 1] == []
