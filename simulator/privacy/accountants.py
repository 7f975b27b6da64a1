"""Accountants: the sum of one client's releases, at a delta.

==========  ============================================  ==================  =========
name        composition                                   releases            formal
==========  ============================================  ==================  =========
basic       sum of epsilons                               pure                always
advanced    Dwork, Rothblum and Vadhan                    pure                always
optimal     Kairouz, Oh and Viswanath; Murtagh, Vadhan    pure                always
rdp         Renyi divergences, by dp-accounting           all                 always
pld         privacy loss distributions, by dp-accounting  all but uniformly   always
                                                          sampled Gaussian
gdp         mu of Gaussian differential privacy           Gaussian            ratio 1
lemma2      Lemmas 2 to 4 of A(DP)2SGD, in closed form    Gaussian, distinct  always
                                                          samples
theorem2    the same of all clients' releases, as if      as lemma2           never
            whose turn it is were a draw (A-05)
secret_...  rounds of cohorts that the server draws in    Gaussian, of the    cohort
            secret: as they are, or as Poisson's          server
==========  ============================================  ==================  =========

One accountant serves one client (M-16): each counts its own releases, sent or lost
on the way; nothing is claimed for the chance that it releases at all. Results depend
on how often each kind of release occurred, not on their order, and are cached by that,
so that clients with equal counts share the work. One new result costs microseconds in
closed form; 0.4 ms by RDP, after 0.1 s for each kind of Poisson-sampled and 0.5 s for
each kind of uniformly sampled release; 10 ms to 1 s by PLD, more beyond 100,000.
"""

import abc
import copy
import math
from dataclasses import replace
from functools import lru_cache
from typing import Any, ClassVar, cast, final

from ..parts.errors import UserError
from . import cohort, composition, gdp, numerical
from .adp2sgd import LEAST_VARIANCE, to_epsilon
from .releases import Release

Counts = tuple[tuple[Release, int], ...]
"""Kinds of release and how often each occurred."""


class Accountant(abc.ABC):
    """Adds up the releases of one client."""

    NAME: ClassVar[str]

    def __init__(self) -> None:
        self._counts: dict[Release, int] = {}

    @property
    def formal(self) -> bool:
        """Whether `epsilon` is a proven bound, given the sensitivities."""
        return True

    @property
    def releases(self) -> int:
        """Number of releases so far."""
        return sum(self._counts.values())

    def release(self, count: int, event: Release) -> None:
        """Accounts for `count` equal releases.

        Args:
            count: >= 0.
            event: One of them.

        Raises:
            UserError: the count is negative, this accountant cannot account for such a
                release, or one client's releases mix the two ways of sampling (which
                belong to different adjacencies).
        """
        if count < 0:
            raise UserError(
                f"count must be >= 0, got {count}; a release is never taken back"
            )
        self.check(event)
        drawn = (other.drawn for other in (*self._counts, event))
        ways = {way for way in drawn if way is not None}
        if len(ways) > 1:
            raise UserError(
                f"a client's releases must be sampled in one way, got {sorted(ways)}; "
                "uniform means replace-one adjacency and poisson add-or-remove"
            )
        if count:
            self._counts[event] = self._counts.get(event, 0) + count

    def epsilon(self, delta: float) -> float:
        """Computes epsilon so far: the releases together are (epsilon, delta)-DP.

        Args:
            delta: Failure probability, in [0, 1). At 0 every accountant sums pure
                epsilons; at any delta the result is at most that sum.

        Returns:
            epsilon >= 0; zero before any release, inf without a bound.

        Raises:
            UserError: `delta` is not within [0, 1).
        """
        check_delta(delta)
        counts = tuple(self._counts.items())
        if not all(event.protects for event, _ in counts):
            return math.inf
        total = math.fsum(count * event.pure_epsilon for event, count in counts)
        if delta == 0 or not counts:
            return total
        return min(total, self.compose(counts, delta))

    def after(self, count: int, event: Release) -> "Accountant":
        """Returns a copy that has accounted for `count` more releases."""
        other = copy.copy(self)
        other._counts = dict(self._counts)
        other.release(count, event)
        return other

    @abc.abstractmethod
    def compose(self, counts: Counts, delta: float) -> float:
        """Computes epsilon at delta > 0 of at least one release, all protected."""

    @abc.abstractmethod
    def check(self, event: Release) -> None:
        """Refuses releases that this accountant cannot account for."""


class _OfPure(Accountant):
    def check(self, event: Release) -> None:
        if not event.is_pure:
            raise UserError(
                f"{self.NAME} accounts for pure epsilons, got {event}; "
                "use rdp, pld or gdp for Gaussian noise"
            )


@final
class Basic(_OfPure):
    """Sums epsilons; holds at every delta.

    Source: Dwork, McSherry, Nissim and Smith (2006).
    """

    NAME = "basic"

    def compose(self, counts: Counts, delta: float) -> float:
        return composition.basic(*_epsilons(counts))


@final
class Advanced(_OfPure):
    """Advanced composition, or the sum where that is smaller.

    Source: Dwork, Rothblum and Vadhan (2010), Theorem III.3.
    """

    NAME = "advanced"

    def compose(self, counts: Counts, delta: float) -> float:
        return composition.advanced(*_epsilons(counts), delta)


@final
class Optimal(_OfPure):
    """Optimal composition of equal epsilons.

    For unequal ones (exact composition is #P-hard) it is the smaller of a closed bound
    and the optimum at the largest epsilon: a bound, of which `Pld` may find less.

    Source: Kairouz, Oh and Viswanath (2015), Theorems 3.3 and 3.5; Murtagh and Vadhan
    (2016), Theorem 1.5.
    """

    NAME = "optimal"

    def compose(self, counts: Counts, delta: float) -> float:
        epsilons, numbers = _epsilons(counts)
        best = composition.optimal(max(epsilons), sum(numbers), delta)
        if len(epsilons) == 1:
            return best
        return min(best, composition.kairouz(epsilons, numbers, delta))


@final
class Rdp(Accountant):
    """Renyi differential privacy, at dp-accounting's default orders.

    At each order a drawn release costs at most what all samples cost.

    Source: Mironov (2017); for `Pure`, the divergence of randomised response (Table
    II); sampled Gaussians by Mironov, Talwar and Zhang (2019, Poisson) and Wang, Balle
    and Kasiviswanathan (2019, uniform); to epsilon by Canonne, Kamath and Steinke
    (2020), Proposition 12.
    """

    NAME = "rdp"

    def compose(self, counts: Counts, delta: float) -> float:
        return numerical.renyi_epsilon(frozenset(counts), delta)

    def check(self, event: Release) -> None:
        """Accounts for all releases."""


@final
class Pld(Accountant):
    """Privacy loss distributions, discretised so that they can only overstate.

    Args:
        interval: Distance between losses on the grid, > 0; the error grows as the
            interval times the number of releases, or its root.

    Raises:
        UserError: the release is a uniformly sampled Gaussian, which has none.

    Source: Koskela, Jalko and Honkela (2020); Doroshenko, Ghazi, Kamath, Kumar and
    Manurangsi, Connect the Dots (2022).
    """

    NAME = "pld"

    def __init__(self, interval: float = 1e-4) -> None:
        super().__init__()
        self._interval = interval

    def compose(self, counts: Counts, delta: float) -> float:
        return numerical.loss_epsilon(frozenset(counts), delta, self._interval)

    def check(self, event: Release) -> None:
        if event.drawn == "uniform":
            raise UserError(
                f"pld has no distribution for uniformly sampled noise, got {event}; "
                "use rdp, or gdp for an approximation"
            )


@final
class Gdp(Accountant):
    """Gaussian differential privacy, of which `gdp` holds the formulas.

    Exact at sampling ratio 1. Below it is a central-limit value that can be below the
    true epsilon, as `formal` shows; or the value at ratio 1 where that is smaller.

    Source: Dong, Roth and Su (2019), Corollaries 2.13, 3.3 and 5.4.
    """

    NAME = "gdp"

    @property
    def formal(self) -> bool:
        return all(event.drawn is None for event in self._counts)

    def compose(self, counts: Counts, delta: float) -> float:
        squares = math.fsum(count * _increment(event) for event, count in counts)
        return gdp.epsilon(math.sqrt(squares), delta)

    def check(self, event: Release) -> None:
        if event.is_pure:
            raise UserError(
                f"gdp accounts for Gaussian noise, got {event}; "
                "use optimal, rdp or pld for pure epsilons"
            )


class Lemma2(Accountant):
    """Renyi divergences by the closed form of A(DP)2SGD; inf where it may not be used.

    Source: A(DP)2SGD, Lemmas 2 to 4.
    """

    NAME: ClassVar[str] = "lemma2"

    def compose(self, counts: Counts, delta: float) -> float:
        slope, largest = 0.0, math.inf
        for event, count in counts:
            ratio, variance = event.sampling_ratio, event.noise**2
            if ratio == 1:
                slope += count / (2 * variance)
                continue
            if variance < LEAST_VARIANCE:
                return math.inf
            slope += count * 5 * ratio**2 / variance
            largest = min(largest, -math.log(ratio * (1 + variance)))
        order = min(1 + math.sqrt(-math.log(delta) / slope), largest)
        if order <= 1:
            return math.inf
        return to_epsilon(slope * order, order, delta)

    def check(self, event: Release) -> None:
        if event.is_pure or event.drawn == "poisson":
            raise UserError(
                f"{self.NAME} accounts for Gaussian noise on distinct samples, got "
                f"{event}; use rdp or pld"
            )


class Theorem2(Lemma2):
    """Lemma 2 of all clients' releases, each as if drawn from the data of all.

    The ledger counts them so.

    Source: A(DP)2SGD, Theorem 2; A-05.
    """

    NAME: ClassVar[str] = "theorem2"

    @property
    def formal(self) -> bool:
        return False


class SecretCohort(Accountant):
    """Rounds of m of n clients, drawn by the server, as releases of the ratio m / n.

    The ledger counts every round of every client. The epsilon holds against attackers
    without knowledge of the draws, for a client whose messages are zeros instead.
    """

    NAME: ClassVar[str] = "secret_cohort"

    def compose(self, counts: Counts, delta: float) -> float:
        return cohort.epsilon(counts, delta)

    def check(self, event: Release) -> None:
        if event.is_pure or event.drawn == "poisson":
            raise UserError(
                f"{self.NAME} accounts for a server's noise; use rdp or pld"
            )


class SecretPoisson(SecretCohort):
    """The same as if every client were drawn by itself: no bound for a fixed size.

    Source: the convention since McMahan, Ramage, Talwar and Zhang (2018).
    """

    NAME: ClassVar[str] = "secret_poisson"

    @property
    def formal(self) -> bool:
        return False

    def compose(self, counts: Counts, delta: float) -> float:
        each = ((replace(cast("Any", one), sampling="poisson"), n) for one, n in counts)
        return numerical.loss_epsilon(frozenset(each), delta, 1e-4)


def _epsilons(counts: Counts) -> tuple[list[float], list[int]]:
    merged: dict[float, int] = {}
    for event, count in counts:
        merged[event.pure_epsilon] = merged.get(event.pure_epsilon, 0) + count
    return list(merged), list(merged.values())


@lru_cache(maxsize=4096)
def _increment(event: Release) -> float:
    form: gdp.Form = "gdp_uniform" if event.drawn != "poisson" else "gdp_poisson"
    return float(gdp.increments(event.noise, event.sampling_ratio, form))


def check_delta(delta: float) -> None:
    """Raises UserError where `delta` is not within [0, 1)."""
    if not 0 <= delta < 1:
        raise UserError(f"delta must be in [0, 1), got {delta}; try 1e-5")
