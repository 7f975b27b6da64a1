"""The wait of rollouts for training, where they come and go as a steady flow."""

import numpy as np


def fluid_in_queue(capacity: float, rho: float) -> float:
    """Returns the versions in the queue if groups come and go as a steady flow.

    A batch that is taken from a full queue came between q and q - 1 batches before, and
    every step that ended since counts as a whole; the published form takes half a
    version for that rounding. They agree where that is right on average, as for q = 2
    and rho = 1.5, and differ by up to a half: for q = 1 all of a batch came during one
    step, so that it waits exactly one version, whatever `rho` > 1 is.

    Args:
        capacity: q, batches that the queue holds, >= 1.
        rho: > 0.
    """
    if rho < 1:
        return rho
    low, high = (capacity - 1) / rho, capacity / rho
    return 1 + (_floors(high) - _floors(low)) / (high - low)


def _floors(end: float) -> float:
    """Returns the integral of the integer part from 0."""
    whole = np.floor(end)
    return float(whole * (whole - 1) / 2 + whole * (end - whole))
