"""Closed forms of the steady state: activation, ages, staleness, throughput.

Ages and staleness are in commits; delays, periods and their laws in seconds.
"""

import math
from collections.abc import Sequence
from typing import Any, TypeVar

import numpy as np
from jaxtyping import Float

from .rounds import Delay, Lattice, Numbers, expected_order_statistic

Mean = TypeVar("Mean", float, np.ndarray)
"""A number, or an array of one per client."""


def activation_from_rates(rates: Numbers) -> Float[np.ndarray, " M"]:
    """Computes q_m of merged Poisson processes from their rates, per second.

    Source: VAFL, Assumption 3; V-01.
    """
    rates = np.asarray(rates, dtype=float)
    return rates / rates.sum()


def embedding_age_law(refresh: float) -> Any:
    """Returns the law of an embedding's age, in commits, when others use it.

    Geometric from 1: mean 1/r, second moment (2 - r)/r^2. Its owner refreshes it in the
    commit in which it uses it, so that use is of age 0 and not counted. Which client
    uses it does not depend on its age where activations are independent of the past.

    Args:
        refresh: Chance r that a commit refreshes a sample's embedding, in (0, 1]: q_m
            of its owner, times the part of the samples that an upload holds.

    Returns:
        A frozen law of SciPy.

    Source: VAFL, equation 3 and Assumption 5; V-07.
    """
    from scipy import stats  # half a second: only where it is needed

    return stats.geom(refresh)


def mean_staleness_in_flight(num_jobs: int, refill: int = 1) -> float:
    """Computes the mean staleness with `num_jobs` jobs in flight.

    C - 1 commits for any law of delays, where every job is replaced at once by one that
    reads what it committed. Where delays are equal constants every staleness is C - 1
    from the C-th commit on. A commit ages the running jobs: where jobs are replaced h
    at a time these are C - 1 to C - h by turns, and their mean is C - (h + 1) / 2.

    Args:
        num_jobs: C jobs in flight.
        refill: h free places with which all are filled, from 1 to C.

    Source: Little's law over commits (arXiv 2502.08206).
    """
    return num_jobs - (refill + 1) / 2


def mean_staleness_buffered(num_jobs: int, buffer_size: int, refill: int = 1) -> float:
    """Computes the mean staleness where every `buffer_size` contributions are a commit.

    (C - 1) / Z versions for any law of delays: a commit applies Z contributions and
    ages the C - 1 jobs in flight; the job that filled the buffer reads the new version.
    Where jobs are replaced h at a time a commit finds C - g, C - 2 g to C - h of them
    by turns, g the greatest common divisor of h and Z: (C - (h + g) / 2) / Z.

    Args:
        num_jobs: C jobs in flight: all clients, or the limit of jobs if that is less.
        buffer_size: Z contributions per commit, whose staleness is in commits.
        refill: h free places with which all are filled, from 1 to C.

    Source: Little's law over commits (arXiv 2502.08206); Nguyen et al., Federated
        Learning with Buffered Asynchronous Aggregation (2022), algorithm 1.
    """
    step = math.gcd(refill, buffer_size)
    return (num_jobs - (refill + step) / 2) / buffer_size


def mean_staleness_exponential(rates: Numbers) -> Float[np.ndarray, " K"]:
    """Computes each client's mean staleness where every delay is exponential.

    (Lambda - lambda_i) / lambda_i commits: those of the others in a delay of mean
    1 / lambda_i.

    Args:
        rates: Rates lambda of every client, per second; each restarts at once.

    Source: mean of `exponential_staleness_law`.
    """
    rates = np.asarray(rates, dtype=float)
    return rates.sum() / rates - 1


def exponential_staleness_law(rates: Numbers, client: int) -> Any:
    """Returns the law of a client's staleness where every delay is exponential.

    Geometric from 0 with success probability p = lambda_i / Lambda: probability
    p (1 - p)^s of staleness s, mean (1 - p) / p = (Lambda - lambda_i) / lambda_i,
    variance (1 - p) / p^2. With K equal rates p = 1 / K and the mean is K - 1.

    Args:
        rates: Rates lambda of every client, per second; each restarts at once.
        client: Index, from 0.

    Returns:
        A frozen law of SciPy.

    Source: competing exponentials: each commit is the client's with probability p,
        whatever happened before.
    """
    from scipy import stats  # half a second: only where it is needed

    return stats.geom(activation_from_rates(rates)[client], loc=-1)


def asynchronous_throughput(mean_cycles_s: Numbers) -> float:
    """Computes contributions per second of clients that do not wait.

    Args:
        mean_cycles_s: Mean time of every client from one contribution to its next, in
            seconds, > 0.

    Source: elementary renewal theorem, summed over clients.
    """
    return math.fsum(1 / np.atleast_1d(np.asarray(mean_cycles_s, dtype=float)))


def compute_utilisation(
    mean_compute_s: Numbers, mean_cycle_s: Numbers
) -> Float[np.ndarray, "..."]:
    """Computes the share of its time that each client computes.

    Args:
        mean_compute_s: Mean computing time of a cycle, seconds.
        mean_cycle_s: Mean time of a cycle with all its waits, seconds; at least that.

    Raises:
        ValueError: The computing time is outside [0, mean_cycle_s].

    Source: renewal reward theorem.
    """
    busy, cycle = np.broadcast_arrays(
        np.asarray(mean_compute_s, float), np.asarray(mean_cycle_s, float)
    )
    wrong = ~((busy >= 0) & (busy <= cycle))
    if wrong.any():
        raise ValueError(
            f"mean_compute_s must be between 0 and {cycle[wrong][0]:g}, got "
            f"{busy[wrong][0]:g}"
        )
    return busy / cycle


def availability(mean_on_s: Mean, mean_off_s: Mean) -> Mean:
    """Computes the share of its time in which a client is available.

    E[on] / (E[on] + E[off]), for any laws.

    Args:
        mean_on_s: Mean time from a return to the next leave, seconds, > 0.
        mean_off_s: Mean time from a leave to the next return, seconds, >= 0.

    Source: alternating renewal process (Ross, Stochastic Processes, theorem 3.4.4).
    """
    return mean_on_s / (mean_on_s + mean_off_s)


def t_synchronous_period(
    laws: Sequence[Delay], t: int, counts: Sequence[int] | None = None
) -> float:
    """Computes the mean time between commits of a t-synchronous server.

    Known at both ends, and for every t where all delays are exponential from zero: the
    others keep working, which only a law without memory does not notice.

    Args:
        laws: Clients' delays, as `expected_order_statistic` takes them.
        t: Contributions per commit.
        counts: Clients of each law; by default one.

    Returns:
        Seconds.

    Raises:
        ValueError: There is no closed form.
    """
    number = len(laws) if counts is None else sum(counts)
    if t == 1:
        each = np.repeat([float(law.mean()) for law in laws], counts or 1)
        return 1 / asynchronous_throughput(each)
    if t < number and not all(_is_exponential(law) for law in laws):
        raise ValueError(
            f"t must be 1 or {number} for laws with a memory, got {t}; simulate it"
        )
    return expected_order_statistic(laws, t, counts)


def _is_exponential(law: Delay) -> bool:
    if isinstance(law, Lattice):
        return False
    name = getattr(getattr(law, "dist", None), "name", "")
    return name == "expon" and float(law.support()[0]) == 0
