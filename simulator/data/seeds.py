"""Random generators of the data sets: one for each seed and stream."""

import numpy as np

DIVISION, ORDER = 0, 1
"""Streams of every data set: its division, and the order of its training rows."""


def generator(seed: int, stream: int) -> np.random.Generator:
    """Returns the generator of a seed and a stream, independent of all others.

    Args:
        seed: Seed of the data set, >= 0.
        stream: Number of the stream. Every module with random data has a number of its
            own, `STREAM`, which never changes, since the data depend on it.
    """
    sequence = np.random.SeedSequence(seed, spawn_key=(stream,))
    return np.random.Generator(np.random.PCG64(sequence))
