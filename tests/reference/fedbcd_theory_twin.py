"""Step bounds and schedules of FedBCD: plain NumPy.

Source: sections 3 and 5 of the specification; F-xx are its ambiguities.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np


class Bound(NamedTuple):
    """Largest step sizes of Theorem 2, by three readings (F-07)."""

    printed: float
    safe: float
    exact: float


def theorem2_bound(Q: int, L_k: Sequence[float], L: float) -> Bound:
    """Largest step size that Theorem 2 admits at every party.

    Args:
        Q: local steps a round.
        L_k: Lipschitz constants of the parties' partial gradients.
        L: that of the gradient, > 0.

    Returns:
        With A = max_k (sum_j L_j^2 + 3 L_k^2), printed:
        min(sqrt 2 / (2 Q sqrt A), 1 / L); safe: min(1 / (2 Q sqrt A), 1 / (2 L));
        exact: the positive root of 1 - L eta - 2 eta^2 Q^2 A = 0.
    """
    squares = [value**2 for value in L_k]
    A = max(sum(squares) + 3.0 * square for square in squares)
    root = float(np.sqrt(A))
    curvature = 2.0 * Q**2 * A
    return Bound(
        printed=min(float(np.sqrt(2.0)) / (2.0 * Q * root), 1.0 / L),
        safe=min(1.0 / (2.0 * Q * root), 1.0 / (2.0 * L)),
        exact=float((np.sqrt(L**2 + 4.0 * curvature) - L) / (2.0 * curvature)),
    )


def inverse_sqrt_steps(
    eta0: float, num_rounds: int, Q: int, num_parties: int = 1
) -> np.ndarray:
    """Step sizes [T, Q] of section 7: eta0 / sqrt(t + 1) throughout round t (F-05).

    With K parties the rate is eta0 / sqrt((t + 1) K) (F-18).
    """
    sizes = [eta0 / np.sqrt((t + 1.0) * num_parties) for t in range(num_rounds)]
    return np.repeat(np.array(sizes)[:, None], Q, axis=1)
