"""The pooled problem of a run in NumPy, for constants and bounds of theorems."""

from typing import Any, NamedTuple

import numpy as np
import scipy.optimize
from scipy.special import expit


class Pooled(NamedTuple):
    """Logistic regression of all rows.

    Attributes:
        x: [N, d], with a column of ones where there is a bias.
        y: [N], 0 and 1.
        l2: of each weight, [d] or one number.
    """

    x: np.ndarray
    y: np.ndarray
    l2: np.ndarray | float

    def gradients(self, weights: np.ndarray) -> np.ndarray:
        """Returns those of single samples, [N, d]."""
        residual = expit(self.x @ weights) - self.y
        return residual[:, None] * self.x + self.l2 * weights

    def gradient(self, weights: np.ndarray) -> np.ndarray:
        return self.gradients(weights).mean(axis=0)

    def objective(self, weights: np.ndarray) -> float:
        logits = self.x @ weights
        loss = np.logaddexp(0, logits) - self.y * logits
        return float(loss.mean() + 0.5 * np.sum(self.l2 * weights**2))

    def variance(self, weights: np.ndarray) -> float:
        """Returns E |g_i - mean|^2 of the gradient of a single sample."""
        return float(self.gradients(weights).var(axis=0).sum())

    def smoothness(self) -> float:
        """Returns L of the Hessian's bound x^T x / 4 N."""
        of_data = np.linalg.norm(self.x, 2) ** 2 / (4 * len(self.y))
        return float(of_data + np.max(self.l2))

    def minimiser(self) -> np.ndarray:
        start, options = np.zeros(self.x.shape[1]), {"gtol": 1e-8}
        return scipy.optimize.minimize(
            self.objective, start, jac=self.gradient, method="BFGS", options=options
        ).x


def of_parties(problem: Any, l2: float) -> tuple[Pooled, list[np.ndarray]]:
    """Returns the pooled problem of linear parties, and the columns of each."""
    widths = problem.num_features
    held = zip(np.asarray(problem.x, float), widths, strict=True)
    x = np.concatenate([part[:, :p] for part, p in held], axis=1)
    columns = np.split(np.arange(x.shape[1]), np.cumsum(widths)[:-1])
    return Pooled(x, np.asarray(problem.y, float), l2), columns
