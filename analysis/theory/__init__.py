"""Closed forms that a simulation must match. They run nothing.

`steady_state` has ages, staleness and throughput, `rounds` the durations of rounds;
both are re-exported here. `queues` has servers, `gossip` averaging over graphs.
"""

from typing import TYPE_CHECKING

from ...simulator.parts.lazy import attach

if TYPE_CHECKING:
    from .rounds import Delay, Lattice, expected_maximum, expected_order_statistic
    from .steady_state import (
        activation_from_rates,
        asynchronous_throughput,
        availability,
        compute_utilisation,
        embedding_age_law,
        exponential_staleness_law,
        mean_staleness_buffered,
        mean_staleness_exponential,
        mean_staleness_in_flight,
        t_synchronous_period,
    )

__getattr__, __dir__, __all__ = attach(__name__, __file__)
