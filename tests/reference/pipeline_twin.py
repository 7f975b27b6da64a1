"""A slow twin of pipelines with a fixed delay per stage, from methods.md, section 14.

It keeps every version and looks back by number. Nothing is shared with the program.
"""

from collections.abc import Sequence

import numpy as np

from tests.reference.layers_twin import Network


def pipeline(
    network: Network,
    start: np.ndarray,
    delay: Sequence[int],
    batches: Sequence[tuple[np.ndarray, np.ndarray]],
    step: float,
    *,
    power: float = 0.0,
    beta: float = 0.0,
) -> list[np.ndarray]:
    """x_s^{k+1} = y_s^k - step / max(1, d_s)^power * g_s(y^{k - d}), for each batch.

    Layer s of the model at which g is taken is that of version k - d_s, and of version
    0 before. y^k = x^k + beta (x^k - x^{k-1}), the look-ahead; it is x^k with beta 0.

    Returns:
        Models x, the first one included.
    """
    x, y = [start], [start]
    of_weight, entries = network.by_layer(delay).astype(int), np.arange(start.size)
    size = step / np.maximum(1, of_weight) ** power
    for k, (rows, labels) in enumerate(batches):
        read = np.array(y)[np.maximum(k - of_weight, 0), entries]
        x.append(y[-1] - size * network.gradient(read, rows, labels))
        y.append(x[-1] + beta * (x[-1] - x[-2]))
    return x
