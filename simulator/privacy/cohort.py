"""Losses of a client in rounds of m of n clients that the server draws in secret.

The server adds normal noise of z C to the sum of their messages, each of norm at most
C. Adjacent data sets differ in one client, whose messages are zeros. Where it is not
drawn, another one is: given all the rest, with q = m / n and in units of C,

    P = (1 - q) N(a, z^2) + q N(x, z^2),  Q = (1 - q) N(a, z^2) + q N(0, z^2),

where a and x, the messages of the other one and of the client, have norms of at most 1.
(If each client is drawn by itself, a is 0: that loses less, and is no bound here.) By
Neyman and Pearson, a test that accepts one mean with chance Phi(s) accepts another one,
d away, with at least Phi(s - d / z). So at factors >= 1, in every dimension, P diverges
most from Q at a = -x, and Q from P at a = x, of norm 1. Divergences are jointly convex:
the mixture over all the rest diverges no more.

Source: derived here, as Zhu, Dong and Wang (2022) do for replaced samples; that a fixed
size can cost more: Lebeda, Regehr, Kamath and Steinke (2024).
"""

from functools import lru_cache, reduce
from typing import TYPE_CHECKING

import numpy as np
import scipy  # its parts are imported when they are used
from jaxtyping import Float

from .releases import library

if TYPE_CHECKING:
    from dp_accounting.pld.privacy_loss_distribution import PrivacyLossDistribution

    from .accountants import Counts

INTERVAL = 1e-3
"""Between losses on the grid; a tenth of it changes the sixth digit."""
_TAIL = 1e-18
"""Divergence at the largest loss, from where on losses count as infinite."""

Numbers = Float[np.ndarray, " N"]


def of_client(loss: Numbers, z: float, q: float) -> Numbers:
    """Returns how far P is from Q at factors e^loss >= 1.

    It is the largest over s of q Phi(s) - (e^loss - 1) (1 - q) Phi(s - 2 / z)
    - e^loss q Phi(s - 1 / z), where e^(s / z) is the root of a quadratic.
    """
    with np.errstate(divide="ignore"):
        other = np.log(np.expm1(loss)) + np.log1p(-q)
    own = loss + np.log(q)
    a, b = other - np.log(q) - 2 / z**2, loss - 1 / (2 * z**2)
    s = z * (np.log(2) - np.logaddexp(b, np.logaddexp(2 * b, np.log(4) + a) / 2))
    lost = np.exp(other + scipy.special.log_ndtr(s - 2 / z))
    lost += np.exp(own + scipy.special.log_ndtr(s - 1 / z))
    return np.maximum(0, q * scipy.special.ndtr(s) - lost)


def of_zeros(loss: Numbers, z: float, q: float) -> Numbers:
    """Returns how far Q is from P at factors e^loss >= 1: q times a Gaussian's."""
    one = np.log1p(np.expm1(loss) / q)
    s = 1 / (2 * z) - one * z
    lost = np.exp(one + scipy.special.log_ndtr(s - 1 / z))
    return np.maximum(0, q * (scipy.special.ndtr(s) - lost))


@lru_cache(maxsize=64)
def losses(z: float, q: float) -> "PrivacyLossDistribution":
    """Returns the losses of a round, discretised so that they can only overstate."""
    found, both = [], (of_client, of_zeros)
    ends = [1.0, 1.0]
    for place, divergence in enumerate(both):
        while divergence(np.array([ends[place]]), z, q)[0] > _TAIL:
            ends[place] *= 1.25
    up, down = (int(end / INTERVAL) for end in ends)
    for one, other in (both, both[::-1]):
        places = np.arange(-down, up + 1)
        loss = places * INTERVAL
        below = 1 + np.exp(loss[:down]) * (other(-loss[:down], z, q) - 1)
        deltas = np.clip(np.concatenate([below, one(loss[down:], z, q)]), 0, 1)
        connect = library("pld.pld_pmf").create_pmf_pessimistic_connect_dots
        found.append(connect(INTERVAL, places, deltas))
        up, down = down, up
    return library("pld.privacy_loss_distribution").PrivacyLossDistribution(*found)


@lru_cache(maxsize=65536)
def epsilon(counts: "Counts", delta: float) -> float:
    """Returns the epsilon of rounds, of which each kind has m / n as its ratio."""
    each = []
    for event, rounds in counts:
        z, q = event.noise, event.sampling_ratio
        one = losses(z, q) if q < 1 else event.losses(INTERVAL)
        each.append(one.self_compose(rounds))
    total = reduce(lambda one, other: one.compose(other), each)
    return float(total.get_epsilon_for_delta(delta))
