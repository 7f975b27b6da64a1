"""Closed forms of clients that share a server, or are servers of one network.

Rates are per second, times in seconds; every departure is a commit.
"""

from typing import NamedTuple

import numpy as np
import scipy  # its parts are imported when they are used
from jaxtyping import Float

from .rounds import Numbers


class Repairman(NamedTuple):
    """A single server that a fixed number of clients visit in turn: M/M/1//K.

    Attributes:
        num_present_law: Probability of 0, 1, ... K clients at the server.
        mean_num_present: Clients that wait or are served.
        throughput: Services per second.
        mean_wait_s: Mean time from arrival to the beginning of service.
        mean_sojourn_s: Mean time from arrival to departure.
    """

    num_present_law: Float[np.ndarray, " K+1"]
    mean_num_present: float
    throughput: float
    mean_wait_s: float
    mean_sojourn_s: float


class ClosedNetwork(NamedTuple):
    """A closed Jackson network of single-server queues.

    Attributes:
        mean_num_present: Jobs that wait or are served at each client.
        throughput: Commits per second: services of all clients together.
        mean_delay: D_i, commits of other jobs during a job's stay at client i.
    """

    mean_num_present: Float[np.ndarray, " K"]
    throughput: float
    mean_delay: Float[np.ndarray, " K"]


def repairman(num_clients: int, request_rate: float, service_rate: float) -> Repairman:
    """Computes the machine repairman M/M/1//K: clients that share one server.

    Each client is away for an exponential time, then requests an exponential service;
    P(n) is proportional to K! / (K - n)! (lambda / mu)^n.

    Args:
        num_clients: K, >= 1.
        request_rate: Rate lambda of requests of one client that is away, per second.
        service_rate: Service rate mu, per second.

    Source: Kleinrock, Queueing Systems, volume 1 (1975), section 3.8.
    """
    present = np.arange(num_clients + 1)
    log_weight = present * np.log(request_rate / service_rate) - scipy.special.gammaln(
        num_clients - present + 1
    )
    weight = np.exp(log_weight - log_weight.max())
    law = weight / weight.sum()
    mean = float(present @ law)
    rate = service_rate * float(law[1:].sum())
    return Repairman(
        num_present_law=law,
        mean_num_present=mean,
        throughput=rate,
        mean_wait_s=mean / rate - 1 / service_rate,
        mean_sojourn_s=mean / rate,
    )


def closed_network(
    num_jobs: int, routing: Numbers, service_rates: Numbers
) -> ClosedNetwork:
    """Computes asynchronous learning with client selection as a closed network.

    A finished job is a commit, and the next goes to client i with probability p_i,
    where it waits its turn, first come first served, for an exponential service. By
    exact mean-value analysis. The mean delay in commits is L_i(m - 1) / p_i, where L is
    the mean number present with one job less, so that sum_i p_i D_i = m - 1.

    Args:
        num_jobs: m, >= 1.
        routing: Probability p of every client, > 0; their sum is 1.
        service_rates: Service rates mu of every client, per second.

    Raises:
        ValueError: The routing is not a law over the clients.

    Source: Reiser and Lavenberg, Mean-value analysis of closed multichain queuing
        networks (1980); delay: Leconte et al., Queuing dynamics of asynchronous
        federated learning (arXiv 2405.00017), and arXiv 2502.08206.
    """
    p = np.asarray(routing, dtype=float)
    service_s = 1 / np.asarray(service_rates, dtype=float)
    if p.shape != service_s.shape or not (p > 0).all() or abs(p.sum() - 1) > 1e-9:
        raise ValueError(
            f"routing must be {service_s.size} positive probabilities of sum 1, got "
            f"{p.tolist()}; leave out clients that are never selected"
        )
    present, fewer, rate = np.zeros(p.shape), np.zeros(p.shape), 0.0
    for jobs in range(1, num_jobs + 1):
        fewer = present
        sojourn_s = (1 + fewer) * service_s
        rate = jobs / float(p @ sojourn_s)
        present = rate * p * sojourn_s
    return ClosedNetwork(present, rate, fewer / p)
