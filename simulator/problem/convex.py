"""Constants of the pooled convex problem: its minimum, smoothness and curvature."""

import math

import numpy as np
import scipy  # its parts are imported when they are used
from jaxtyping import Float, Int

from ..parts.base import function_at
from ..parts.metrics import facts


def smoothness(
    x: Float[np.ndarray, "N P"], loss: str, l2: float, *, bias: bool = True
) -> float:
    """Bounds the Lipschitz constant of the regularised objective's gradient.

    The Hessian of the cross-entropy in the logits is at most 1/4 (sigmoid) or 1/2
    (softmax); the Hessian of its second-order Taylor form (taylor) is 1/4.
    """
    return _smoothness(_extended(x, bias=bias), loss, l2)


def _extended(x: Float[np.ndarray, "N P"], *, bias: bool) -> Float[np.ndarray, "N Q"]:
    """Returns features in double precision, with a column of ones for a bias."""
    if not bias:
        return x.astype(np.float64)
    return np.concatenate([x, np.ones((x.shape[0], 1))], axis=1, dtype=np.float64)


def _smoothness(x: Float[np.ndarray, "N P"], loss: str, l2: float) -> float:
    wide = x.astype(np.float64)
    # The smaller of both products has the same largest eigenvalue.
    gram = wide.T @ wide if x.shape[1] <= x.shape[0] else wide @ wide.T
    top = len(gram) - 1
    largest = scipy.linalg.eigh(gram, eigvals_only=True, subset_by_index=(top, top))
    curvature = facts(loss).curvature
    assert curvature is not None
    return curvature * float(largest[0]) / x.shape[0] + l2


def diagonal(
    x: Float[np.ndarray, "N P"], y: Float[np.ndarray, "N P"], l2: float
) -> tuple[float, float, float]:
    """Returns smoothness, strong convexity and minimum of the model `diagonal`.

    Its objective with the loss `squared` is a sum of parabolas, one a weight.
    """
    wide, targets = x.astype(np.float64), y.astype(np.float64)
    curvature = 2 / x.shape[1] * (wide**2).mean(axis=0) + l2
    slope = 2 / x.shape[1] * (wide * targets).mean(axis=0)
    least = (targets**2).mean() - (slope**2 / (2 * curvature)).sum()
    return float(curvature.max()), float(curvature.min()), float(least)


def smoothness_of_parties(
    x: Float[np.ndarray, "N P"],
    columns: list[Int[np.ndarray, " _"]],
    loss: str,
    l2: float,
) -> tuple[float, ...]:
    """Bounds the Lipschitz constant of each party's own block of the gradient, L_k."""
    return tuple(_smoothness(x[:, held], loss, l2) for held in columns)


def largest_step(
    local_steps: int, of_parties: tuple[float, ...], smoothness: float
) -> float:
    """Returns a step size that the proof of Theorem 2 allows (F-07).

    The printed bound is min(1 / (sqrt(2) Q sqrt(A)), 1 / L), at which the proof's
    condition 1 - L eta - 2 (eta Q)^2 A >= 0 does not hold; this one is safe.

    Args:
        local_steps: Local steps of a round, Q.
        of_parties: Smoothness L_k of every party's block.
        smoothness: Smoothness L of the whole gradient.

    Source: FedBCD, Theorem 2, with A the largest of sum_j L_j^2 + 3 L_k^2.
    """
    squares = [one**2 for one in of_parties]
    root = math.sqrt(sum(squares) + 3 * max(squares))
    return min(1 / (2 * smoothness), 1 / (2 * local_steps * root))


def minimum(
    x: Float[np.ndarray, "N P"],
    y: Int[np.ndarray, " N"],
    loss: str,
    num_outputs: int,
    l2: float,
    *,
    bias: bool = True,
) -> float:
    """Returns the least value of the regularised mean cross-entropy.

    Args:
        x: Features of the training rows.
        y: Classes of the training rows, from 0.
        loss: A loss whose record has a `row`, such as `sigmoid` or `softmax`.
        num_outputs: Number of logits of a sample, 1 for `sigmoid`.
        l2: Coefficient of the regulariser of all weights but biases.
        bias: Whether the model has one.
    """
    n, p = x.shape
    ones = _extended(x, bias=bias)
    width = ones.shape[1]
    kept = np.arange(width) < p

    of_rows = function_at(facts(loss).row, f"row of {loss!r}")

    def value_and_gradient(flat: np.ndarray) -> tuple[float, np.ndarray]:
        weights = flat.reshape(num_outputs, width)
        logits = ones @ weights.T
        each, residual = of_rows(logits, y)
        gradient = residual.T @ ones / n + l2 * weights * kept
        value = each.mean() + 0.5 * l2 * np.sum((weights * kept) ** 2)
        return float(value), gradient.ravel()

    # Gaps to the minimum are plotted down to rounding, so it is found to rounding.
    found = scipy.optimize.minimize(
        value_and_gradient,
        np.zeros(num_outputs * width),
        jac=True,
        method="L-BFGS-B",
        options={"maxiter": 20_000, "maxfun": 100_000, "ftol": 1e-15, "gtol": 1e-10},
    )
    return float(found.fun)


def sigmoid(
    logits: Float[np.ndarray, "N 1"], y: Int[np.ndarray, " N"]
) -> tuple[Float[np.ndarray, " N"], Float[np.ndarray, "N 1"]]:
    """Returns the losses of rows, and their derivatives in the logits."""
    z = logits[:, 0]
    return np.logaddexp(0, z) - y * z, (scipy.special.expit(z) - y)[:, None]


def softmax(
    logits: Float[np.ndarray, "N C"], y: Int[np.ndarray, " N"]
) -> tuple[Float[np.ndarray, " N"], Float[np.ndarray, "N C"]]:
    """Returns the losses of rows, and their derivatives in the logits."""
    rows = np.arange(len(y))
    log_sum = np.asarray(scipy.special.logsumexp(logits, axis=1))
    residual = np.exp(logits - log_sum[:, None])
    residual[rows, y] -= 1
    return log_sum - logits[rows, y], residual
