"""Closed forms of open queues, shared and lossy links, and the slowest of many delays.

Rates are per second, times in seconds. Arrivals are Poisson; staleness is in commits,
and every departure is a commit.
"""

import math
from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from stalesim.analysis.theory.rounds import Numbers


def exponential_order_statistic(rate: float, num_clients: int, t: int) -> float:
    """Computes the expected t-th smallest of equal exponential delays.

    (H_n - H_{n-t}) / mu, where H_n is the n-th harmonic number; H_n / mu for t = n.

    Args:
        rate: Rate mu, per second.
        num_clients: n.
        t: 1 is the fastest, n the slowest.

    Returns:
        Seconds.

    Source: Renyi, On the theory of order statistics (1953): the gaps between order
        statistics are independent exponentials of rates n mu, (n - 1) mu, ...
    """
    if not 1 <= t <= num_clients:
        raise ValueError(f"t must be between 1 and {num_clients}, got {t}")
    return math.fsum(1 / k for k in range(num_clients - t + 1, num_clients + 1)) / rate


class SingleServer(NamedTuple):
    """An open queue with one server, first come first served.

    Attributes:
        utilisation: Share of time in which the server works.
        mean_wait_s: Mean time from arrival to the beginning of service.
        mean_sojourn_s: Mean time from arrival to departure.
        mean_num_waiting: Jobs that wait.
        mean_num_present: Jobs that wait or are served.
    """

    utilisation: float
    mean_wait_s: float
    mean_sojourn_s: float
    mean_num_waiting: float
    mean_num_present: float


class Delivery(NamedTuple):
    """A message that is sent again until it arrives or is given up.

    Attributes:
        probability: Chance that it arrives.
        mean_num_sends: Sends per message, delivered or not.
        mean_time_s: Mean time from the first send to the arrival, given that it
            arrives.
    """

    probability: float
    mean_num_sends: float
    mean_time_s: float


def single_server(
    arrival_rate: float, mean_service_s: float, variance_service_s2: float
) -> SingleServer:
    """Computes the means of an M/G/1 queue, first come first served.

    The mean wait is lambda E[S^2] / (2 (1 - rho)) with rho = lambda E[S].

    Args:
        arrival_rate: Arrival rate lambda, per second.
        mean_service_s: E[S], seconds.
        variance_service_s2: Var[S], seconds squared.

    Raises:
        ValueError: The server cannot keep up.

    Source: Pollaczek-Khinchine formula (Kleinrock, Queueing Systems, volume 1, 1975,
        section 5.6).
    """
    load = _load(arrival_rate, mean_service_s)
    second_moment = variance_service_s2 + mean_service_s**2
    wait = arrival_rate * second_moment / (2 * (1 - load))
    return SingleServer(
        utilisation=load,
        mean_wait_s=wait,
        mean_sojourn_s=wait + mean_service_s,
        mean_num_waiting=arrival_rate * wait,
        mean_num_present=arrival_rate * wait + load,
    )


def processor_sharing_sojourn(
    size_s: Numbers, arrival_rate: float, mean_service_s: float
) -> Float[np.ndarray, "..."]:
    """Computes the mean sojourn of jobs of given sizes in an M/G/1-PS queue.

    x / (1 - rho) seconds, whatever the law of sizes beyond its mean: a link that all
    transfers under way share equally. At the mean size this is the mean sojourn.

    Args:
        size_s: Time x that the job would take alone, seconds.
        arrival_rate: Arrival rate lambda, per second.
        mean_service_s: Mean size, seconds.

    Raises:
        ValueError: The server cannot keep up.

    Source: Kleinrock, Queueing Systems, volume 2 (1976), section 4.4.
    """
    return np.asarray(size_s, dtype=float) / (1 - _load(arrival_rate, mean_service_s))


def bounded_retries(
    loss: float, max_retries: int, timeout_s: float, mean_trip_s: float
) -> Delivery:
    """Computes the delivery of a message over a link that loses messages.

    A message that is lost is sent again after the timeout, at most r times. Trips are
    shorter than the timeout and acknowledgements are never lost.

    Args:
        loss: p, chance that one send is lost, in [0, 1).
        max_retries: r, sends after the first, >= 0.
        timeout_s: Time from one send to the next, seconds.
        mean_trip_s: Mean time from a send that is not lost to its arrival, seconds.

    Raises:
        ValueError: `loss` is outside [0, 1): nothing would arrive at 1.

    Source: geometric law truncated at r + 1 sends.
    """
    if not 0 <= loss < 1:
        raise ValueError(f"loss must be in [0, 1), got {loss}")
    lost = np.arange(max_retries + 1)
    reaches = loss**lost
    probability = 1 - loss ** (max_retries + 1)
    mean_lost = float(lost @ reaches) * (1 - loss) / probability
    return Delivery(
        probability=probability,
        mean_num_sends=float(reaches.sum()),
        mean_time_s=mean_lost * timeout_s + mean_trip_s,
    )


def _load(arrival_rate: float, mean_service_s: float) -> float:
    load = arrival_rate * mean_service_s
    if not 0 <= load < 1:
        raise ValueError(
            f"arrival_rate * mean_service_s must be in [0, 1), got {load}; the queue "
            "would grow without bound"
        )
    return load
