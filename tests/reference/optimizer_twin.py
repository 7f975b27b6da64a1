"""Optimisers in slow NumPy, from their papers and without sight of optax.

Sgd       v <- mu v + g;                        w <- w - eta v
          Polyak (1964); Sutskever, Martens, Dahl and Hinton (2013), section 2, with
          the step size outside of the velocity.
Adam      m <- b1 m + (1 - b1) g;  v <- b2 v + (1 - b2) g^2
          w <- w - eta (m / (1 - b1^t)) / (sqrt(v / (1 - b2^t)) + eps)
          Kingma and Ba (2015), Algorithm 1.
AdamW     the same, and w <- w - eta lambda w of the weights before the step:
          Loshchilov and Hutter (2019), Algorithm 2, with alpha = 1 and the step
          size as the multiplier eta_t.
clipped   g min(1, c / |g|): Pascanu, Mikolov and Bengio (2013), Algorithm 1.
"""

from collections.abc import Callable
from typing import Protocol

import numpy as np

Rate = Callable[[int], float]
"""Learning rate, by the number of updates that were made."""


class Optimizer(Protocol):
    """An optimiser with its state."""

    def step(self, w: np.ndarray, g: np.ndarray, eta: float) -> np.ndarray:
        """Returns the weights after a step along a gradient."""
        ...


class Sgd:
    """Gradient descent with momentum."""

    def __init__(self, mu: float = 0.0) -> None:
        self.mu = mu
        self.v: np.ndarray | float = 0.0

    def step(self, w: np.ndarray, g: np.ndarray, eta: float) -> np.ndarray:
        self.v = self.mu * self.v + g
        return w - eta * self.v


class Adam:
    """Adam, and AdamW with a decay."""

    def __init__(
        self,
        b1: float = 0.9,
        b2: float = 0.999,
        eps: float = 1e-8,
        decay: float = 0.0,
    ) -> None:
        self.b1, self.b2, self.eps, self.decay = b1, b2, eps, decay
        self.m: np.ndarray | float = 0.0
        self.v: np.ndarray | float = 0.0
        self.t = 0

    def step(self, w: np.ndarray, g: np.ndarray, eta: float) -> np.ndarray:
        self.t += 1
        self.m = self.b1 * self.m + (1 - self.b1) * g
        self.v = self.b2 * self.v + (1 - self.b2) * g * g
        mean = self.m / (1 - self.b1**self.t)
        root = np.sqrt(self.v / (1 - self.b2**self.t))
        return w - eta * mean / (root + self.eps) - eta * self.decay * w


def clipped(g: np.ndarray, bound: float) -> np.ndarray:
    """Returns a gradient of at most some norm."""
    norm = float(np.sqrt((g * g).sum()))
    return g if norm <= bound else g * (bound / norm)


def cosine(start: float, length: int) -> Rate:
    """Returns half a period of a cosine, from a start down to zero.

    Source: Loshchilov and Hutter, SGDR (2017), equation 5, without restarts.
    """
    return lambda t: 0.5 * start * (1 + np.cos(np.pi * min(t, length) / length))
