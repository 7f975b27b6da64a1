"""Constants of the pooled convex problem: its minimum, smoothness and curvature."""

import numpy as np
import scipy.optimize
import scipy.special
from jaxtyping import Float, Int


def smoothness(x: Float[np.ndarray, "N P"], loss: str, l2: float) -> float:
    """Bounds the Lipschitz constant of the regularised objective's gradient.

    The Hessian of the cross-entropy in the logits is at most 1/4 (sigmoid) or 1/2
    (softmax).
    """
    ones = np.concatenate([x, np.ones((x.shape[0], 1))], axis=1, dtype=np.float64)
    largest = float(np.linalg.norm(ones, ord=2) ** 2) / x.shape[0]
    curvature = 0.25 if loss == "sigmoid" else 0.5
    return curvature * largest + l2


def minimum(
    x: Float[np.ndarray, "N P"],
    y: Int[np.ndarray, " N"],
    loss: str,
    num_outputs: int,
    l2: float,
) -> float:
    """Returns the least value of the regularised mean cross-entropy with a bias."""
    n, p = x.shape
    ones = np.concatenate([x, np.ones((n, 1))], axis=1, dtype=np.float64)
    kept = np.ones(p + 1)
    kept[-1] = 0

    def value_and_gradient(flat: np.ndarray) -> tuple[float, np.ndarray]:
        weights = flat.reshape(num_outputs, p + 1)
        logits = ones @ weights.T
        if loss == "sigmoid":
            each = np.logaddexp(0, logits[:, 0]) - y * logits[:, 0]
            residual = (scipy.special.expit(logits[:, 0]) - y)[:, None]
        else:
            log_sum = np.asarray(scipy.special.logsumexp(logits, axis=1))
            each = log_sum - logits[np.arange(n), y]
            residual = np.exp(logits - log_sum[:, None])
            residual[np.arange(n), y] -= 1
        gradient = residual.T @ ones / n + l2 * weights * kept
        value = each.mean() + 0.5 * l2 * np.sum((weights * kept) ** 2)
        return float(value), gradient.ravel()

    found = scipy.optimize.minimize(
        value_and_gradient,
        np.zeros(num_outputs * (p + 1)),
        jac=True,
        method="L-BFGS-B",
        options={"maxiter": 20_000, "maxfun": 100_000, "ftol": 1e-15, "gtol": 1e-10},
    )
    return float(found.fun)
