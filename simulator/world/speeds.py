"""How long clients compute, by their laws and without playing the world."""

import numpy as np
from jaxtyping import Float

from .clients import Clients
from .laws.base import Draws, Population
from .streams import Streams

TRIALS = 101
"""Draws of a client, at evenly spread numbers in (0, 1); of a recording its first."""
BLOCK = 4096
"""Clients that are measured at once."""
GOLDEN = (5**0.5 - 1) / 2
"""Its multiples modulo 1 are evenly spread, in an order that no memory follows."""


def median_seconds(
    clients: Clients, num_clients: int, seed: int
) -> Float[np.ndarray, " K"]:
    """Returns the median of each client's draws of `compute`, in virtual seconds.

    Times permanent slowdowns. A draw is for the unit of `compute_per`.

    Args:
        clients: Clients of the scenario.
        num_clients: Number of clients, K.
        seed: Seed of the run, by which clients' parameters may be drawn.
    """
    everyone = Population(num_clients, Streams(seed), stage="clients.compute")
    uniform = np.arange(1, TRIALS + 1) * GOLDEN % 1
    found = np.empty(num_clients)
    for first, size, behaviour in clients.behaviours(num_clients):
        assert behaviour.compute is not None
        law = behaviour.compute.make(everyone._replace(size=size, first=first))
        for start in range(0, size, BLOCK):
            own = np.arange(start, min(start + BLOCK, size))
            draws = Draws(
                np.tile(uniform, own.size),
                np.repeat(own, TRIALS),
                np.tile(np.arange(TRIALS), own.size),
            )
            drawn = np.reshape(law.draw(draws, None), (own.size, TRIALS))
            found[first + own] = np.median(drawn, axis=1)
    for slowdown in clients.slowdowns:
        found *= slowdown.lasting(num_clients)
    return found
