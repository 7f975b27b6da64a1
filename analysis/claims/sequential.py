"""Looks at claims while replicates are added: what a p-value is worth at each of them.

A study that is looked at again and again, and stopped at will, is wrong more often than
once in twenty. A plan of looks spends the five percent over them, little at first:
O'Brien and Fleming's way, so that the last look is hardly worse than a single one.

A p-value of a t-test at some look is compared with the nominal level of that look, as
though it came from a normal test (the significance level approach). Turned round: it
is worth as much as the error of a whole plan in which its look has that very level.
These values are then corrected for the number of claims like those of a fixed plan.

The levels are found by integrating over the statistic's normal increments, by Gauss
and Legendre's rule. SciPy's multivariate normal probabilities, which the tests compare
them with, are randomised, with errors above a first look's level of 0.00001.

Source: Lan and DeMets, Discrete sequential boundaries for clinical trials (Biometrika
1983); Jennison and Turnbull, Group Sequential Methods (2000), chapters 7, 11 and 19;
Liu and Anderson, On adaptive extensions of group sequential trials (JASA 2008);
Maurer and Bretz, Multiple testing in group sequential trials using graphical
approaches (Statistics in Biopharmaceutical Research 2013).
"""

from functools import cache
from typing import Any

import numpy as np
from jaxtyping import Float
from scipy.interpolate import PchipInterpolator
from scipy.optimize import brentq
from scipy.special import ndtr, ndtri

NODES = 96
"""Points of Gauss and Legendre's rule, between the borders of a look."""
LEAST_ERROR = 1e-14
"""Least error of a whole plan that is told from none."""
FAR = 40.0
"""Standard deviations beyond which a normal probability is zero."""


def overall(chance: float, replicates: int, looks: tuple[int, ...]) -> float:
    """Returns what a p-value at some look is worth over the whole plan.

    It is the two-sided error of a plan whose nominal level at this look is the p-value,
    so that deciding where it is at most 0.05 decides wrongly at any look with a chance
    of at most 0.05.

    Args:
        chance: Two-sided p-value.
        replicates: Replicates that there are now. A look that was not planned is one
            more; with more than planned, the plan is judged as though it ended here.
        looks: Replicates at each look of the plan; none if there was none.
    """
    if not looks or np.isnan(chance):
        return chance
    fractions = information(replicates, looks)
    x = _two_sided(chance)
    known, worth = _scale(fractions)
    if x <= known[0]:
        return 1.0
    if x >= known[-1]:
        return LEAST_ERROR
    return min(1.0, 2 * float(ndtr(-PchipInterpolator(known, worth)(x))))


def information(replicates: int, looks: tuple[int, ...]) -> tuple[float, ...]:
    """Returns the fraction of the plan's replicates at each look until this one."""
    whole = max(replicates, looks[-1])
    return tuple(n / whole for n in (*(n for n in looks if n < replicates), replicates))


def nominal(error: float, fractions: tuple[float, ...]) -> list[float]:
    """Returns the two-sided level of each look of a plan.

    Args:
        error: Error of all looks together, two-sided, in (0, 1).
        fractions: Fractions of the plan's replicates at each look, rising, at most 1.
    """
    return [2 * float(ndtr(-border)) for border in borders(error, fractions)]


def borders(error: float, fractions: tuple[float, ...]) -> list[float]:
    """Returns by how many standard errors a claim is decided at each look.

    Args:
        error: Error of all looks together, as in `nominal`.
        fractions: Fractions at each look, as in `nominal`.
    """
    found: list[float] = []
    nodes, parts = _rule()
    at, weights = np.zeros(1), np.ones(1)  # of the score that went on, and its density
    before = 0.0
    for fraction in fractions:
        spread = np.sqrt(fraction - before)
        to_spend = spent(error, fraction) - (spent(error, before) if before else 0.0)
        known = (to_spend, fraction, at / spread, weights, spread)
        border: Any = brentq(_missing, 0.0, FAR, args=known)
        found.append(float(border))
        half = found[-1] * np.sqrt(fraction)
        steps = (half * nodes[:, None] - at) / spread
        density = np.exp(-(steps**2) / 2) @ weights / (spread * np.sqrt(2 * np.pi))
        at, weights, before = half * nodes, half * parts * density, fraction
    return found


def _missing(
    border: float,
    to_spend: float,
    fraction: float,
    at: Float[np.ndarray, " n"],
    weights: Float[np.ndarray, " n"],
    spread: float,
) -> float:
    """Returns by how much more than is to be spent a border is crossed, either side."""
    far = border * np.sqrt(fraction) / spread
    return float(weights @ (ndtr(at - far) + ndtr(-far - at))) - to_spend


def spent(error: float, fraction: float) -> float:
    """Returns how much of a plan's error is spent by a fraction of its replicates.

    Source: Lan and DeMets (1983), the function like O'Brien and Fleming's, either side.
    """
    return min(error, 4 * float(ndtr(ndtri(error / 4) / np.sqrt(fraction))))


def _two_sided(chance: float) -> float:
    """Returns by how many standard errors a normal test has a two-sided p-value."""
    return -float(ndtri(chance / 2))


@cache
def _rule() -> tuple[np.ndarray, np.ndarray]:
    return np.polynomial.legendre.leggauss(NODES)


@cache
def _scale(fractions: tuple[float, ...]) -> tuple[np.ndarray, np.ndarray]:
    """Returns borders of the last look, rising, and those of a single look as good."""
    single = np.linspace(_two_sided(0.9999), _two_sided(LEAST_ERROR), 60)
    last = [borders(2 * float(ndtr(-z)), fractions)[-1] for z in single]
    return np.array(last), single
