"""Counts, step bounds, schedules and the secret rotation of FedBCD: plain NumPy.

Source: sections 3, 5 and 6 of the specification; F-xx are its ambiguities.
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
    eta0: float,
    num_rounds: int,
    Q: int,
    index: str = "outer",
    num_parties: int = 1,
) -> np.ndarray:
    """Step sizes [T, Q] of section 7.

    Args:
        eta0: initial step size.
        num_rounds: T.
        Q: local steps a round.
        index: "outer" for eta0 / sqrt(t + 1) throughout round t; "local" for
            eta0 / sqrt(r + 1) with r = t Q + j (F-05).
        num_parties: K where the rate is eta0 / sqrt((t + 1) K) (F-18), else 1.
    """
    sizes = np.zeros((num_rounds, Q))
    for t in range(num_rounds):
        for j in range(Q):
            count = t if index == "outer" else t * Q + j
            sizes[t, j] = eta0 / np.sqrt((count + 1.0) * num_parties)
    return sizes


def secret_rotation(theta: np.ndarray, V: np.ndarray) -> np.ndarray:
    """Orthogonal U = P diag(1, V) P with U theta = theta (section 6).

    P is the Householder reflection that maps theta / |theta| to e_1; I where they are
    equal, or where theta is zero, which every U fixes. x @ U in place of x then gives
    the same messages, with parameters U' theta.

    Args:
        theta: initial parameters of a linear party, [d].
        V: orthogonal, [d - 1, d - 1]; not I, or U is I.
    """
    d = len(theta)
    first = np.eye(d)[0]
    length = np.linalg.norm(theta)
    v = theta / length - first if length > 0.0 else np.zeros(d)
    P = np.eye(d)
    if v @ v > 0.0:
        P = P - 2.0 * np.outer(v, v) / (v @ v)
    middle = np.eye(d)
    middle[1:, 1:] = V
    return P @ middle @ P
