"""Federated transfer learning and FedBCD-p for it: slow, plain NumPy.

Party A has labels y = -1 or 1, party B has none. Each has one layer,
u = act(x @ W + b) with h units. Row i of A's arrays and row i of B's are the same
sample; B's rows outside `overlap` are never read. With Phi = mean over A's samples of
y_i u^A_i, and phi_i = Phi . u^B_i, the objective is

    alpha * sum_{i in overlap} (ln 2 - y_i phi_i / 2 + phi_i^2 / 8)
        - 1 / h * sum_{i in overlap} u^A_i . u^B_i + l2 / 2 (|theta_A|^2 + |theta_B|^2)

Sums, not means, over the overlapping samples. Where a batch of them is given it takes
the place of `overlap`, without a factor that makes up for its size, and Phi remains the
mean over all of A's.

FedBCD-p: in every round one exchange, then Q steps of both side by side, each with the
true partial gradient at [own present block, other block as of the exchange], eq. (12).
So A computes Phi anew in each step, of B's u as sent; for B, phi_i = Phi . u^B_i moves
with its own u, and Phi and u^A are those of the exchange. What is exchanged (Phi'Phi,
y Phi, u^A; u^B) suffices for that, and the "recompute" of F-01 costs nothing here.

Source: section 7.1 and F-15 of the specification; Taylor loss as in `fedbcd_twin`.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from tests.reference.fedbcd_twin import LN2, Local
from tests.reference.layers_twin import Layer


class Problem(NamedTuple):
    """Data, layers and weights.

    Attributes:
        layers: of A and of B; as many units.
        x: [N_A, d_a] and [N_B, d_b].
        y: [N_A], -1 and 1.
        overlap: ids of the common samples, distinct.
        alpha: weight of the label loss.
        l2: of either party's parameters, biases too.
    """

    layers: tuple[Layer, Layer]
    x: tuple[np.ndarray, np.ndarray]
    y: np.ndarray
    overlap: np.ndarray
    alpha: float = 100.0
    l2: float = 0.0


Blocks = tuple[np.ndarray, np.ndarray]
"""Of A and of B."""


def loss_and_gradients(
    u_a: np.ndarray, u_b: np.ndarray, y: np.ndarray, ids: np.ndarray, alpha: float
) -> tuple[float, Blocks]:
    """Label and alignment loss, without regulariser, and gradients in u_a and u_b.

    Args:
        u_a: [N_A, h].
        u_b: [N_B, h].
        y: [N_A], -1 and 1.
        ids: of the samples summed over.
        alpha: weight of the label loss.

    Returns:
        The loss, and gradients [N_A, h] (through Phi and the alignment) and [N_B, h].
    """
    h = u_a.shape[1]
    mean = np.mean([y[j] * u_a[j] for j in range(len(y))], axis=0)
    loss, d_mean = 0.0, np.zeros(h)
    d_a, d_b = np.zeros_like(u_a), np.zeros_like(u_b)
    for i in ids:
        phi = mean @ u_b[i]
        loss += alpha * (LN2 - y[i] * phi / 2.0 + phi**2 / 8.0)
        loss -= u_a[i] @ u_b[i] / h
        d_phi = alpha * (-y[i] / 2.0 + phi / 4.0)
        d_mean += d_phi * u_b[i]
        d_b[i] += d_phi * mean - u_a[i] / h
        d_a[i] -= u_b[i] / h
    for j in range(len(y)):
        d_a[j] += y[j] / len(y) * d_mean
    return float(loss), (d_a, d_b)


def fedbcd(
    problem: Problem,
    start: Blocks,
    batches: Sequence[np.ndarray | None],
    step: float,
    local: Local,
) -> tuple[list[list[np.ndarray]], list[float]]:
    """FedBCD-p, and FedPBCD-p if mu > 0, for transfer learning.

    Args:
        problem: data, layers and weights.
        start: initial parameters of A and B, W row by row, then b.
        batches: overlapping ids of each round; None for all of them.
        step: size.
        local: steps a round and the proximal weight; one step is gradient descent on
            both blocks together.

    Returns:
        Parameters of A and B after each round, and the loss of its batch before it,
        without regulariser.
    """
    theta, history, losses = list(start), [], []
    for batch in batches:
        ids = problem.overlap if batch is None else batch
        sent = [
            layer.forward(own, x)
            for layer, own, x in zip(problem.layers, theta, problem.x, strict=True)
        ]
        loss, _ = loss_and_gradients(*sent, problem.y, ids, problem.alpha)
        for k, (layer, x) in enumerate(zip(problem.layers, problem.x, strict=True)):
            anchor = theta[k]
            for _ in range(local.Q):
                u = [*sent]
                u[k] = layer.forward(theta[k], x)
                _, d = loss_and_gradients(*u, problem.y, ids, problem.alpha)
                gradient = layer.vjp(theta[k], x, d[k])[0] + problem.l2 * theta[k]
                pull = local.mu * (theta[k] - anchor)
                theta[k] = theta[k] - step * (gradient + pull)
        history.append([*theta])
        losses.append(loss)
    return history, losses
