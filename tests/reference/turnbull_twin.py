"""The nonparametric estimate from numbers that lie in intervals: slow, plain NumPy.

Number i is known to lie in (l_i, u_i], u_i perhaps infinite. Between the sorted ends
c_0 < c_1 < ... let p_j be the chance of (c_{j-1}, c_j], and a_ij whether that piece is
in (l_i, u_i]. The estimate that makes what was seen most likely is a fixed point of

    p_j <- 1/n sum_i a_ij p_j / sum_k a_ik p_k

Source: Turnbull, The empirical distribution function with arbitrarily grouped,
censored and truncated data (Journal of the Royal Statistical Society B 1976).
"""

import numpy as np

ROUNDS = 2_000


def estimate(low: np.ndarray, high: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Returns upper ends of the pieces, and the chance of each."""
    ends = np.unique(np.concatenate([low, high]))
    before, after = ends[:-1], ends[1:]
    inside = (before >= low[:, None]) & (after <= high[:, None])
    chance = np.full(after.size, 1 / after.size)
    for _ in range(ROUNDS):
        mine = inside * chance
        chance = (mine / mine.sum(axis=1, keepdims=True)).mean(axis=0)
    return after, chance


def median(low: np.ndarray, high: np.ndarray) -> float:
    """Returns the upper end of the piece in which half of the chance is reached."""
    after, chance = estimate(low, high)
    return float(after[np.flatnonzero(np.cumsum(chance) >= 0.5 - 1e-9)[0]])
