"""A slow twin of pipelines with a fixed delay per stage, from methods.md, section 14.

It keeps every version as a list of layers and looks back by number. Nothing is shared
with the program.
"""

from collections.abc import Callable, Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

Layer = tuple[NDArray[np.float64], NDArray[np.float64]]
"""Matrix `[outputs, inputs]` and bias of a layer."""
Model = list[Layer]


def layers_of(flat: np.ndarray, sizes: Sequence[int]) -> Model:
    """Cuts a flat vector: of each layer its matrix, row by row, then its bias."""
    found, at = [], 0
    for inputs, outputs in pairwise(sizes):
        matrix = flat[at : at + inputs * outputs].reshape(outputs, inputs)
        at += inputs * outputs
        found.append((matrix.copy(), flat[at : at + outputs].copy()))
        at += outputs
    return found


def gradient(model: Model, x: np.ndarray, y: np.ndarray, l2: float) -> Model:
    """Back-propagation of the mean cross-entropy of tanh layers; l2 of matrices."""
    hidden = [x]
    for matrix, bias in model[:-1]:
        hidden.append(np.tanh(hidden[-1] @ matrix.T + bias))
    logits = hidden[-1] @ model[-1][0].T + model[-1][1]
    share = np.exp(logits - logits.max(axis=1, keepdims=True))
    share /= share.sum(axis=1, keepdims=True)
    share[np.arange(len(y)), y] -= 1
    slope = share / len(y)
    found: Model = []
    for below, (matrix, _) in zip(hidden[::-1], model[::-1], strict=True):
        found.append((slope.T @ below + l2 * matrix, slope.sum(axis=0)))
        slope = (slope @ matrix) * (1 - below**2)
    return found[::-1]


def combined(a: Model, b: Model, factor: Callable[[int], float]) -> Model:
    """a + factor(layer) b."""
    return [
        (a[k][0] + factor(k) * b[k][0], a[k][1] + factor(k) * b[k][1])
        for k in range(len(a))
    ]


def pipeline(
    start: Model,
    delay: Sequence[int],
    batches: Sequence[tuple[np.ndarray, np.ndarray]],
    step: float,
    *,
    l2: float = 0.0,
    power: float = 0.0,
    beta: float = 0.0,
) -> list[Model]:
    """x_s^{k+1} = y_s^k - step / max(1, d_s)^power * g_s(y^{k - d}), for each batch.

    Layer s of the model at which g is taken is that of version k - d_s, and of version
    0 before. y^k = x^k + beta (x^k - x^{k-1}), the look-ahead; it is x^k with beta 0.

    Returns:
        Models x, the first one included.
    """
    x, y = [start], [start]
    for k, (rows, labels) in enumerate(batches):
        read = [y[max(k - d, 0)][s] for s, d in enumerate(delay)]
        g = gradient(read, rows, labels, l2)
        x.append(combined(y[-1], g, lambda s: -step / max(1, delay[s]) ** power))
        moved = combined(x[-1], x[-2], lambda s: -1.0)
        y.append(combined(x[-1], moved, lambda s: beta))
    return x
