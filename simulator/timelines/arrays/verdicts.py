"""What becomes of arrivals, and the rows that they make."""

from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Int, Shaped


class Verdict(NamedTuple):
    """What becomes of arrivals.

    Attributes:
        accepted: Whether each event is an arrival that is applied, or put in the
            buffer.
        commits: Whether each event makes a version.
        windows: Times at which the buffer is applied without an arrival.
        version: Version after each event.
    """

    accepted: Bool[np.ndarray, " E"]
    commits: Bool[np.ndarray, " E"]
    windows: list[float]
    version: Int[np.ndarray, " E"]


class Made(NamedTuple):
    """The rows of a block, in order.

    Attributes:
        at: Twice the place of the event that each comes after, plus 1.
        time: Times in the clock's unit.
        end: Number of the arrival that each applies, among the jobs that end; or -1.
        commits: Whether each makes a version.
        version: Version after each.
    """

    at: Int[np.ndarray, " T"]
    time: Shaped[np.ndarray, " T"]
    end: Int[np.ndarray, " T"]
    commits: Bool[np.ndarray, " T"]
    version: Int[np.ndarray, " T"]
