"""Closed forms that a simulation must match. They run nothing.

`steady_state` has ages, staleness and throughput, `rounds` the durations of rounds;
both are re-exported here. `queues` has servers, `gossip` averaging over graphs.
"""

from .rounds import (
    Lattice,
    expected_maximum,
    expected_order_statistic,
)
from .steady_state import (
    Throughput,
    activation_from_rates,
    asynchronous_throughput,
    availability,
    compute_utilisation,
    embedding_age_law,
    embedding_refresh,
    exponential_staleness_law,
    mean_staleness_buffered,
    mean_staleness_exponential,
    mean_staleness_in_flight,
    t_synchronous_period,
    throughput,
)

__all__ = [
    "Lattice",
    "Throughput",
    "activation_from_rates",
    "asynchronous_throughput",
    "availability",
    "compute_utilisation",
    "embedding_age_law",
    "embedding_refresh",
    "expected_maximum",
    "expected_order_statistic",
    "exponential_staleness_law",
    "mean_staleness_buffered",
    "mean_staleness_exponential",
    "mean_staleness_in_flight",
    "t_synchronous_period",
    "throughput",
]
