"""Keyed randomness of the world: a draw depends on what it is for, never on call order.

Everything is drawn in blocks of one fixed size keyed by (seed, purpose, client, block),
so that changing the algorithm, adding a client or enlarging the population changes
nobody else's draws. One counter-based generator serves all clients: its counter is set
to the key, which costs 2 microseconds and no memory per client.
"""

from enum import IntEnum

import numpy as np

BLOCK = 32
"""Draws in a block."""


class Purpose(IntEnum):
    """What a stream of draws is for; part of every key."""

    IDLE = 0
    COMPUTE = 1
    REFRESH = 2
    STEP = 3
    SAMPLES = 4
    PARTITION = 5


class Streams:
    """Random generators keyed by purpose, client and block.

    Args:
        seed: of the run, >= 0.
    """

    def __init__(self, seed: int) -> None:
        key = np.random.SeedSequence(seed).generate_state(2, np.uint64)
        self._bits = np.random.Philox(key=key)
        self._generator = np.random.Generator(self._bits)
        self._state = self._bits.state

    def at(self, purpose: Purpose, client: int, block: int) -> np.random.Generator:
        """Returns the generator of one block; valid until the next call."""
        state = self._state
        state["state"]["counter"][:] = (0, block, client, purpose)
        state["buffer_pos"] = 4
        state["has_uint32"] = 0
        state["uinteger"] = 0
        self._bits.state = state
        return self._generator
