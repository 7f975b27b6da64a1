"""m-synchronous SGD against Rennala: 100 clients, exponential times, tuned m and S.

methods.md, section 12, has from a toy that with stops the best m costs 0.74 to 1.27 of
Rennala, and without stops 2.7 to 24 times as much; a round costs its mean time, and it
takes 1 + noise / batch of them, noise being sigma^2 / epsilon. The twelve worlds of the
toy are not told. What holds in all worlds is derived here. With rates r_i = 1 / tau_i
and R their sum, fresh jobs end at the rate R as long as all clients have one:

- Rennala with stops: S ends take S / R, so it costs (S + noise) / R, least at S = 1.
- The m fastest with stops: the rate only falls as clients are done, so a round takes
  m / R or more, with equality at m = 1. Both are best at batches of one, where they are
  the same rounds: **the ratio is exactly 1**, in every such world, at any noise.
- The m fastest without stops, all alike: exponential times have no memory, so when a
  round begins m clients have a fresh job, and each other one an old job to end before
  it has one. A round is the m-th least of m times Exp(1) and n - m sums of two of them.
"""

from collections.abc import Iterable

import numpy as np
import pytest

from stalesim.simulator.catalogue.protocols.collect.collect import Collect
from stalesim.simulator.files.timeline import Kind
from stalesim.simulator.world.clients import Clients
from stalesim.simulator.world.laws.distributions import Scipy
from tests.support import everything, played

N, ROUNDS = 100, 100
SCALES = {"1": np.ones(N), "m": np.arange(1.0, N + 1)}
"""Expressions of the clients' mean times, and their values."""
NOISES = 2.0 ** np.arange(-2, 11)
T = np.geomspace(1e-5, 1e5, 4001)
"""Moments of integrals; the rule's relative error is of the order of 1e-5."""


def mean_rounds(chances: Iterable[np.ndarray], most: int = N) -> np.ndarray:
    """Returns the mean time of the m-th of all ends, by m - 1.

    Args:
        chances: Chance of each client to have ended at the moments `T`.
        most: Largest m.
    """
    fewer = np.zeros((most, T.size))  # chances that so many have ended
    fewer[0] = 1
    for ended in chances:
        fewer[1:] = fewer[1:] * (1 - ended) + fewer[:-1] * ended
        fewer[0] *= 1 - ended
    return np.trapezoid(np.cumsum(fewer, axis=0), T, axis=1) + T[0]


def took(scale: str, rounds: int = ROUNDS, **options) -> np.ndarray:
    """Returns how long rounds take."""
    clients = Clients(compute=Scipy(law="expon", scale=scale))
    rows, *_ = everything(played(Collect(**options), clients, N, rounds=rounds))
    return np.diff(rows.time[rows.kind == Kind.COMMIT], prepend=0)


@pytest.mark.parametrize("scale", SCALES)
def test_with_stops_the_best_rounds_of_both_are_the_first_arrival(scale: str) -> None:
    """The same to the bit for a batch of one, and no larger batch costs less.

    Means are those of the simulation too, here of ten: Rennala's are Erlang, with mean
    S / R and variance S / R^2. Within 4 errors of a mean.
    """
    tau, m = SCALES[scale], np.arange(1, N + 1)
    rate = (1 / tau).sum()
    fastest = took(scale, count=1, repeats=False, late="stop")
    np.testing.assert_array_equal(fastest, took(scale, count=1, late="stop"))
    means = mean_rounds(1 - np.exp(-T / one) for one in tau)
    assert (means * rate / m >= 1 - 1e-4).all()
    for noise in NOISES:
        least = (means * (1 + noise / m)).min()
        assert least * rate / (1 + noise) == pytest.approx(1, abs=1e-4)
    rennala = took(scale, count=10, late="stop")
    assert abs(rennala.mean() - 10 / rate) < 4 * (10 / ROUNDS) ** 0.5 / rate
    fastest = took(scale, count=10, repeats=False, late="stop")
    error = fastest.std(ddof=1) / ROUNDS**0.5
    assert abs(fastest.mean() - means[9]) < 4 * error


def without_stops(m: int) -> float:
    """Returns the mean round of m of alike clients whose late jobs run to their end."""
    fresh, old = 1 - np.exp(-T), 1 - (1 + T) * np.exp(-T)
    return float(mean_rounds([fresh] * m + [old] * (N - m), m)[-1])


@pytest.mark.parametrize("m", [1, 10, 50])
def test_without_stops_rounds_wait_for_jobs_that_do_not_count(m: int) -> None:
    """Rounds after the first are independent and alike; within 4 errors of a mean."""
    found = took("1", ROUNDS + 1, count=m, repeats=False)[1:]
    assert abs(found.mean() - without_stops(m)) < 4 * found.std(ddof=1) / ROUNDS**0.5


def test_without_stops_the_best_m_costs_2_to_13_times_as_much() -> None:
    """Of alike clients, at every noise; 2.7, the toy's least, is that at noise 256.

    At batches of one a round takes int (1 + t)^(n - 1) e^(-n t) dt, n times of which is
    Ramanujan's Q(n) = sqrt(pi n / 2) - 1 / 3 + O(1 / sqrt(n)).
    """
    sizes = np.array([1, 3, 10, 20, 40, 50, 60, 70])
    means = np.array([without_stops(m) for m in sizes])
    ratios = [(means * (1 + x / sizes)).min() * N / (1 + x) for x in NOISES]
    ramanujan = (np.pi * N / 2) ** 0.5 - 1 / 3
    assert ratios[0] == pytest.approx(ramanujan, abs=1 / N**0.5)
    assert (np.diff(ratios) <= 1e-9).all()
    assert ratios[list(NOISES).index(256)] == pytest.approx(2.7, abs=0.05)
    assert ratios[-1] > 2.2
