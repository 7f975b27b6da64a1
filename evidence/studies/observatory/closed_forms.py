"""Closed forms of methods with proved times: rounds, spans, delays, and whole runs.

`tau` are the seconds that each client takes for a gradient, all constant unless a
function says otherwise; links are free. Whole times are in units of L Delta / epsilon,
up to constants; `noise` is sigma squared over epsilon.

Source: Tyurin and Richtarik (2023); Maranjyan, Tyurin and Richtarik, Ringmaster ASGD
    (2025); Maranjyan and Richtarik, Ringleader ASGD (2025); Maranjyan, Omar and
    Richtarik, MindFlayer SGD (2025); restated in methods.md, sections 0 to 9.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Float

Seconds = Float[np.ndarray, " K"]


def harmonic_of_fastest(tau: Seconds) -> Float[np.ndarray, " K"]:
    """Returns A_m, the harmonic mean of the m fastest clients' seconds, by m."""
    fast = np.sort(tau)
    return np.arange(1, fast.size + 1) / np.cumsum(1 / fast)


def rennala_round(tau: Seconds, count: int) -> float:
    """Returns what a round of `count` gradients takes at most, and at least half of.

    With stops, min_m (sum of the m largest rates)^-1 (count + m).
    """
    m = np.arange(1, tau.size + 1)
    return float((harmonic_of_fastest(tau) / m * (count + m)).min())


def malenia_round(tau: Seconds, mean: float) -> float:
    """Returns the bound on a round with stops: tau_n + mean(tau) times the mean count.

    Args:
        tau: Seconds of each client.
        mean: Harmonic mean of the counts that ends a round, S / n.
    """
    return float(tau.max() + tau.mean() * mean)


def ringmaster_span(tau: Seconds, commits: int) -> float:
    """Returns t(R) = 2 min_m A_m (1 + R / m), which R consecutive commits take at most.

    Args:
        tau: Seconds of each client.
        commits: R.
    """
    m = np.arange(1, tau.size + 1)
    return float(2 * (harmonic_of_fastest(tau) * (1 + commits / m)).min())


def ringleader_round(tau: Seconds) -> float:
    """Returns the bound on a round of both phases, 2 tau_n."""
    return float(2 * tau.max())


def ringleader_batch(tau: Seconds) -> float:
    """Returns the least harmonic mean of the clients' counts, tau_n / (2 mean(tau))."""
    return float(tau.max() / (2 * tau.mean()))


def mindflayer_round(
    trials: Sequence[int] | np.ndarray, allotted: Sequence[float] | np.ndarray
) -> float:
    """Returns the bound on a round: the longest time of all of a client's trials.

    Args:
        trials: B_i.
        allotted: Seconds after which a trial is given up, h_i + t_i.
    """
    return float((np.asarray(trials) * np.asarray(allotted)).max())


class RoutedTasks(NamedTuple):
    """The steady state of tasks that wait in their clients' queues.

    Attributes:
        throughput: Commits a second.
        delays: Mean commits between routing and applying, of each client's tasks.
    """

    throughput: float
    delays: Float[np.ndarray, " K"]


def routed_tasks(rates: Seconds, shares: Seconds, tasks: int) -> RoutedTasks:
    """Returns throughput and delays of a closed network, by mean value analysis.

    Args:
        rates: Tasks a second of each client; exponential services.
        shares: Chance p_i that a task goes to each client.
        tasks: m, tasks in flight.

    Source: Leconte et al., Queueing Dynamics of Asynchronous Federated Learning (2024);
        Reiser and Lavenberg (1980) for the recursion; methods.md, section 9.
    """
    queued = before = np.zeros(rates.size)
    throughput = 0.0
    for k in range(1, tasks + 1):
        wait = (1 + queued) / rates
        throughput = k / float(shares @ wait)
        before, queued = queued, throughput * shares * wait
    return RoutedTasks(throughput, before / shares)


Finish = Callable[[int, float, float], float]
"""The moment at which a client's integral of power from a moment on reaches some work:
of client, moment and work."""


def enough(
    finish: Finish, num_clients: int, start: float, count: int, wasted: int
) -> float:
    """Returns when clients have done a number of jobs, of which each wastes some.

    The universal computation model: the least T with sum_i max(0, N_i(start, T) -
    wasted) >= count, N_i being the whole jobs that client i's power from `start` on
    does. With stops and no waste it is the end of Rennala's round. With one wasted job
    a client it bounds `count` consecutive commits of Ringmaster, and a round without
    stops: a client's job that was under way is of no use at worst, and all that it
    begins afterwards is.

    Source: Tyurin (2024), section 4; the waste is derived here.
    """
    made = [wasted] * num_clients
    ends = [finish(client, start, wasted + 1) for client in range(num_clients)]
    latest = start
    for _ in range(count):
        client = int(np.argmin(ends))
        latest = ends[client]
        made[client] += 1
        ends[client] = finish(client, start, made[client] + 1)
    return latest


def everyone_and_mean(
    finish: Finish, num_clients: int, start: float, mean: float
) -> float:
    """Returns when the harmonic mean of whole jobs from `start` on reaches `mean`.

    The end of Malenia's round with stops, under the universal computation model.
    """
    counts = np.zeros(num_clients)
    ends = [finish(client, start, 1) for client in range(num_clients)]
    latest = start
    while (counts == 0).any() or num_clients / (1 / counts).sum() < mean * (1 - 1e-12):
        client = int(np.argmin(ends))
        latest = ends[client]
        counts[client] += 1
        ends[client] = finish(client, start, counts[client] + 1)
    return latest
