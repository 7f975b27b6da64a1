"""Closed forms that a simulation of asynchronous learning must match.

Ages and staleness are in commits; delays, periods and their laws in seconds.
"""

import math
import warnings
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float
from scipy import integrate, stats

Numbers = int | float | Sequence[int | float] | np.ndarray

TAIL = 1e-17
"""Probability beyond which a law of infinite support on a lattice is cut off."""

MAX_POINTS = 2_000_000
"""Lattice points over which an expectation is summed."""


class Lattice(NamedTuple):
    """A law of values shift + scale * X, where X is a discrete law of SciPy.

    Attributes:
        law: a frozen discrete law.
        scale: seconds of one step, > 0.
        shift: seconds.
    """

    law: Any
    scale: float = 1.0
    shift: float = 0.0

    def cdf(self, x: Numbers) -> Float[np.ndarray, "..."]:
        """Returns the probability of a value of at most x seconds."""
        return self.law.cdf(self._steps(x))

    def sf(self, x: Numbers) -> Float[np.ndarray, "..."]:
        """Returns the probability of a value above x seconds."""
        return self.law.sf(self._steps(x))

    def mean(self) -> float:
        """Returns the mean in seconds."""
        return self.shift + self.scale * float(self.law.mean())

    def points(self) -> Float[np.ndarray, " n"]:
        """Returns the values up to the one that is exceeded with probability `TAIL`."""
        low, high = (float(end) for end in self.law.support())
        if not math.isfinite(high):
            high = low + 1
            while high - low < MAX_POINTS and self.law.sf(high) > TAIL:
                high = low + 2 * (high - low)
        if not high - low < MAX_POINTS:
            raise ValueError(
                f"a lattice law must have fewer than {MAX_POINTS} values, got "
                f"{high - low:g}; its tail is too heavy to be summed"
            )
        return self.shift + self.scale * np.arange(low, high + 1)

    def _steps(self, x: Numbers) -> Float[np.ndarray, "..."]:
        return np.floor((np.asarray(x) - self.shift) / self.scale)


class Throughput(NamedTuple):
    """Block updates per second of a set of clients.

    Attributes:
        synchronous: M over the expected duration of a round.
        asynchronous: the sum of the clients' own rates.
    """

    synchronous: float
    asynchronous: float

    @property
    def ratio(self) -> float:
        """How many times the asynchronous updates are faster."""
        return self.asynchronous / self.synchronous


def activation_from_rates(rates: Numbers) -> Float[np.ndarray, " M"]:
    """Computes q_m of merged Poisson processes from their rates, per second.

    Source: VAFL, Assumption 3; V-01.
    """
    rates = np.asarray(rates, dtype=float)
    return rates / rates.sum()


def activation_from_gaps(gaps: Numbers) -> Float[np.ndarray, " M"]:
    """Computes q_m of merged Poisson processes from their mean gaps, seconds.

    Source: VAFL, section 4 (its lambda read as a mean); V-01.
    """
    return activation_from_rates(1 / np.asarray(gaps, dtype=float))


def embedding_refresh(
    activation: Numbers, batch: int | None = None, num_samples: int | None = None
) -> Float[np.ndarray, " M"]:
    """Computes the probability that a commit refreshes one sample's embedding.

    Args:
        activation: q_m of every client.
        batch: samples of an upload, drawn uniformly; None if all are uploaded.
        num_samples: N; needed with `batch`.

    Source: VAFL, equation 3.
    """
    activation = np.asarray(activation, dtype=float)
    if batch is None:
        return activation
    if num_samples is None or not batch <= num_samples:
        raise ValueError(f"num_samples must be >= {batch}, got {num_samples}")
    return activation * batch / num_samples


def embedding_age_law(refresh: float) -> Any:
    """Returns the law of an embedding's age, in commits, when others use it.

    Geometric from 1: mean 1/r, second moment (2 - r)/r^2. Its owner refreshes it in the
    commit in which it uses it, so that use is of age 0 and not counted. Which client
    uses it does not depend on its age where activations are independent of the past.

    Args:
        refresh: r of `embedding_refresh`, in (0, 1].

    Returns:
        A frozen law of SciPy.

    Source: VAFL, equation 3 and Assumption 5; V-07.
    """
    return stats.geom(refresh)


def mean_staleness_in_flight(num_jobs: int) -> float:
    """Computes the mean staleness with always `num_jobs` jobs in flight.

    For any law of delays: C - 1 commits.

    Source: Little's law over commits (arXiv 2502.08206).
    """
    return num_jobs - 1.0


def exponential_staleness_law(rates: Numbers, client: int) -> Any:
    """Returns the law of a client's staleness where every delay is exponential.

    Geometric from 0 with success probability lambda_i / Lambda: mean
    (Lambda - lambda_i) / lambda_i; with K equal rates, K - 1.

    Args:
        rates: lambda of every client, per second; each restarts at once.
        client: from 0.

    Returns:
        A frozen law of SciPy.
    """
    return stats.geom(activation_from_rates(rates)[client], loc=-1)


def expected_order_statistic(laws: Sequence[Any], t: int) -> float:
    """Computes the expected t-th smallest of independent delays.

    The integral of the probability that fewer than t of them are over: summed where all
    laws are on lattices, by quadrature between quantiles otherwise.

    Args:
        laws: one per client: frozen laws of SciPy or `Lattice`; values >= 0.
        t: 1 is the fastest, the number of laws the slowest.

    Returns:
        Seconds.

    Raises:
        ValueError: t is out of range, a law has negative values, or the expectation is
            not finite.
    """
    if not 1 <= t <= len(laws):
        raise ValueError(f"t must be between 1 and {len(laws)}, got {t}")
    lattices = [_as_lattice(law) for law in laws]
    known = [
        law.ppf([1e-6, 1e-3, 0.01, 0.1, 0.3, 0.5, 0.7, 0.9, 0.99, 0.999, 1 - 1e-6])
        if lattice is None
        else lattice.points()
        for law, lattice in zip(laws, lattices, strict=True)
    ]
    knots = np.unique(np.concatenate([[0.0], *known]))
    lowest = min(
        float(law.support()[0]) if lattice is None else float(lattice.points()[0])
        for law, lattice in zip(laws, lattices, strict=True)
    )
    if lowest < 0:
        raise ValueError(f"delays must be >= 0, got a law that begins at {lowest}")

    def unfinished(x: Float[np.ndarray, " n"]) -> Float[np.ndarray, " n"]:
        delays = [
            law if lattice is None else lattice
            for law, lattice in zip(laws, lattices, strict=True)
        ]
        return _fewer_than([(d.cdf(x), d.sf(x)) for d in delays], t)

    if all(lattice is not None for lattice in lattices):
        middles = (knots[1:] + knots[:-1]) / 2
        return math.fsum(np.diff(knots) * unfinished(middles))
    return _quadrature(unfinished, knots)


def expected_maximum(laws: Sequence[Any]) -> float:
    """Computes the expected largest of independent delays: a synchronous round.

    Args:
        laws: as `expected_order_statistic` takes them.

    Returns:
        Seconds.

    Source: V-29.
    """
    return expected_order_statistic(laws, len(laws))


def throughput(laws: Sequence[Any]) -> Throughput:
    """Computes block updates per second, synchronous and asynchronous.

    Args:
        laws: the clients' delays, as `expected_order_statistic` takes them.

    Source: vafl.md, section 5.4, first table.
    """
    return Throughput(
        synchronous=len(laws) / expected_maximum(laws),
        asynchronous=math.fsum(1 / float(law.mean()) for law in laws),
    )


def t_synchronous_period(laws: Sequence[Any], t: int) -> float:
    """Computes the mean time between commits of a t-synchronous server.

    Known at both ends, and for every t where all delays are exponential from zero: the
    others keep working, which only a law without memory does not notice.

    Args:
        laws: the clients' delays, as `expected_order_statistic` takes them.
        t: contributions per commit.

    Returns:
        Seconds.

    Raises:
        ValueError: there is no closed form.
    """
    if t == 1:
        return 1 / throughput(laws).asynchronous
    if t < len(laws) and not all(_is_exponential(law) for law in laws):
        raise ValueError(
            f"t must be 1 or {len(laws)} for laws with a memory, got {t}; simulate it"
        )
    return expected_order_statistic(laws, t)


def _is_exponential(law: Any) -> bool:
    name = getattr(getattr(law, "dist", None), "name", "")
    return name == "expon" and float(law.support()[0]) == 0


def _as_lattice(law: Any) -> Lattice | None:
    if isinstance(law, Lattice):
        return law
    return Lattice(law) if hasattr(law, "pmf") else None


def _fewer_than(
    chances: list[tuple[Float[np.ndarray, " n"], Float[np.ndarray, " n"]]], t: int
) -> Float[np.ndarray, " n"]:
    """Computes the probability that fewer than t of independent events happened.

    Args:
        chances: of each event, that it happened and that it did not; both, because
            small ones would be lost in one minus the other.
        t: from 1 to the number of events.
    """
    counts = np.zeros((len(chances) + 1, len(chances[0][0])))
    counts[0] = 1.0
    for happened, did_not in chances:
        counts[1:] = counts[1:] * did_not + counts[:-1] * happened
        counts[0] *= did_not
    return counts[:t].sum(axis=0)


def _quadrature(
    f: Callable[[Float[np.ndarray, " n"]], Float[np.ndarray, " n"]],
    knots: Float[np.ndarray, " n"],
) -> float:
    """Integrates f from the first knot to infinity; smooth between knots."""
    coarse, fine = (_gauss(f, knots, order) for order in (16, 32))
    rough = np.abs(fine - coarse) > 1e-13 * fine.sum()
    again = [(knots[i], knots[i + 1]) for i in np.flatnonzero(rough)]
    with warnings.catch_warnings():
        warnings.simplefilter("error", integrate.IntegrationWarning)
        try:
            rest = [
                integrate.quad(
                    lambda x: float(f(np.array([x]))[0]),
                    low,
                    high,
                    epsabs=1e-13,
                    epsrel=1e-10,
                )[0]
                for low, high in [*again, (knots[-1], math.inf)]
            ]
        except integrate.IntegrationWarning as error:
            raise ValueError(
                "the expected delay must be finite and smooth enough to integrate; "
                f"quadrature said: {str(error).splitlines()[0]}"
            ) from error
    return math.fsum([*fine[~rough], *rest])


def _gauss(
    f: Callable[[Float[np.ndarray, " n"]], Float[np.ndarray, " n"]],
    knots: Float[np.ndarray, " n"],
    order: int,
) -> Float[np.ndarray, " pieces"]:
    nodes, weights = np.polynomial.legendre.leggauss(order)
    half = np.diff(knots) / 2
    x = (knots[1:] + knots[:-1])[:, None] / 2 + half[:, None] * nodes
    return f(x.ravel()).reshape(x.shape) @ weights * half
