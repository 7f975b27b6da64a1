"""Closed forms of open queues, shared and lossy links, and the slowest of many delays.

Rates are per second, times in seconds. Arrivals are Poisson.
"""

import math
from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from stalesim.analysis.theory.rounds import Numbers


def exponential_order_statistic(rate: float, num_clients: int, t: int) -> float:
    """Computes the expected t-th smallest of equal exponential delays, in seconds.

    (H_n - H_{n-t}) / mu, where H_n is the n-th harmonic number; H_n / mu for t = n.

    Source: Renyi, On the theory of order statistics (1953): the gaps between order
        statistics are independent exponentials of rates n mu, (n - 1) mu, ...
    """
    return math.fsum(1 / k for k in range(num_clients - t + 1, num_clients + 1)) / rate


class SingleServer(NamedTuple):
    """An open queue with one server, first come first served.

    Attributes:
        mean_wait_s: Mean time from arrival to the beginning of service.
        mean_num_present: Jobs that wait or are served.
    """

    mean_wait_s: float
    mean_num_present: float


def single_server(
    arrival_rate: float, mean_service_s: float, variance_service_s2: float
) -> SingleServer:
    """Computes the means of an M/G/1 queue, first come first served.

    The mean wait is lambda E[S^2] / (2 (1 - rho)) with rho = lambda E[S] < 1.

    Source: Pollaczek-Khinchine formula (Kleinrock, Queueing Systems, volume 1, 1975,
        section 5.6).
    """
    load = arrival_rate * mean_service_s
    second_moment = variance_service_s2 + mean_service_s**2
    wait = arrival_rate * second_moment / (2 * (1 - load))
    return SingleServer(wait, arrival_rate * wait + load)


def processor_sharing_sojourn(
    size_s: Numbers, arrival_rate: float, mean_service_s: float
) -> Float[np.ndarray, "..."]:
    """Computes the mean sojourn of jobs of given sizes in an M/G/1-PS queue.

    x / (1 - rho) seconds, whatever the law of sizes beyond its mean: a link that all
    transfers under way share equally. At the mean size this is the mean sojourn.

    Source: Kleinrock, Queueing Systems, volume 2 (1976), section 4.4.
    """
    return np.asarray(size_s, dtype=float) / (1 - arrival_rate * mean_service_s)


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


def bounded_retries(
    loss: float, max_retries: int, timeout_s: float, mean_trip_s: float
) -> Delivery:
    """Computes the delivery over a link that loses a message with a chance, < 1.

    A message that is lost is sent again after the timeout, at most r times. Trips are
    shorter than the timeout and acknowledgements are never lost.

    Source: geometric law truncated at r + 1 sends.
    """
    lost = np.arange(max_retries + 1)
    reaches = loss**lost
    probability = 1 - loss ** (max_retries + 1)
    mean_lost = float(lost @ reaches) * (1 - loss) / probability
    return Delivery(
        probability=probability,
        mean_num_sends=float(reaches.sum()),
        mean_time_s=mean_lost * timeout_s + mean_trip_s,
    )
