"""Closed forms of FedBCD: the steps that its convergence theorem allows, and its bound.

Source: Liu, Kang, Zhang, Li, Cheng, Chen, Hong and Yang, A Communication-Efficient
    Collaborative Learning Framework for Distributed Features; decisions (F-)
    are in evidence/pages/decisions.md.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple


class LargestSteps(NamedTuple):
    """Largest step sizes by three readings of Theorem 2 (F-07).

    Attributes:
        printed: min(sqrt(2) / (2 Q sqrt(A)), 1 / L), always above `exact`.
        safe: min(1 / (2 Q sqrt(A)), 1 / (2 L)), never above `exact`.
        exact: Positive root of the proof's condition.
    """

    printed: float
    safe: float
    exact: float


def largest_steps(
    local_steps: int, of_parties: Sequence[float], smoothness: float
) -> LargestSteps:
    """Computes the largest step sizes of FedBCD-p.

    The proof needs 1 - L eta - 2 (eta Q)^2 A >= 0, with A the largest of
    sum_j L_j^2 + 3 L_k^2. At the printed bound the left side is -L eta, or where 1 / L
    is the smaller -2 (eta Q)^2 A.

    Args:
        local_steps: Q.
        of_parties: L_k, Lipschitz constants of the parties' blocks of the gradient.
        smoothness: L, of the whole gradient.

    Source: FedBCD, Theorem 2. `simulator.learning.convex.largest_step` is `safe`.
    """
    L = smoothness
    squares = [one**2 for one in of_parties]
    reach = local_steps * math.sqrt(sum(squares) + 3 * max(squares))
    return LargestSteps(
        printed=min(1 / (math.sqrt(2) * reach), 1 / L),
        safe=min(1 / (2 * reach), 1 / (2 * L)),
        # (sqrt(L^2 + 8 q) - L) / (4 q) for q = reach^2, without its cancellation.
        exact=2 / (math.sqrt(L**2 + 8 * reach**2) + L),
    )


def theorem2(
    iterations: int,
    *,
    local_steps: int,
    step_size: float,
    of_parties: Sequence[float],
    gap: float,
    variance: float,
) -> float:
    """Bounds the mean of E |grad L(Theta^r)|^2 over T local iterations of FedBCD-p.

    2 gap / (eta T) + (2 eta^2 (K + 3) Q^2 sum_k L_k^2 + 2 K) sigma^2 / S.

    Args:
        iterations: T, local iterations r = 0 ... T - 1 of all parties; exchanges are
            T / Q.
        local_steps: Q.
        step_size: Step size eta, at most `largest_steps(...).exact`.
        of_parties: L_k, whose number is K.
        gap: L(Theta^0) - L(Theta*).
        variance: Variance sigma^2 / S of a minibatch's gradient.

    Source: FedBCD, Theorem 2, equation 14.
    """
    K = len(of_parties)
    squares = sum(one**2 for one in of_parties)
    drift = 2 * (step_size * local_steps) ** 2 * (K + 3) * squares
    return 2 * gap / (step_size * iterations) + (drift + 2 * K) * variance
