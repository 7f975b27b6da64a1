"""Keyed random generators of the data layer: one per seed and purpose."""

from enum import IntEnum

import numpy as np


class Purpose(IntEnum):
    """What a generator is for; part of every key, so never renumbered."""

    DIVISION = 0
    ORDER = 1
    FASHION_MNIST = 2
    CIFAR10 = 3
    PARKINSON = 4
    SYNTHETIC_LOGISTIC = 5
    MIMIC = 6
    NUS_WIDE = 7
    CREDIT = 8
    SPEECH = 9


def generator(seed: int, purpose: Purpose) -> np.random.Generator:
    """Returns the generator of one seed and purpose, apart from all others.

    Args:
        seed: >= 0.
        purpose: what is drawn.
    """
    sequence = np.random.SeedSequence(seed, spawn_key=(int(purpose),))
    return np.random.Generator(np.random.PCG64(sequence))
