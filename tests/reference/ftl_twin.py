"""Federated transfer learning and FedBCD-p for it: slow, plain NumPy.

Party A has labels y = -1 or 1, party B has none. Each has one layer,
u = act(x @ W + b) with h units. Row i of A's arrays and row i of B's are the same
sample; B's rows outside `overlap` are never read. With Phi = mean over the samples
`labelled` (all of A's, if None) of y_i u^A_i, and phi_i = Phi . u^B_i, the objective is

    alpha * sum_{i in overlap} (ln 2 - y_i phi_i / 2 + phi_i^2 / 8)
        - 1 / h * sum_{i in overlap} u^A_i . u^B_i + l2 / 2 (|theta_A|^2 + |theta_B|^2)

Sums, not means, over the overlapping samples. Where a batch of them is given it takes
the place of `overlap`, without a factor that makes up for its size, and Phi remains the
mean over `labelled`.

An exchange is two messages of three components each. With C overlapping samples:

    A to B  y_i^2 / 4 Phi'Phi [C, h, h], -y_i / 2 Phi [C, h], -u^A_i / h [C, h]
    B to A  u^B_i [C, h], u^B_i'u^B_i [C, h, h], -u^B_i / h [C, h]

From these, each party has its exact gradient in its own u, at any own u:

    B  d / du^B_i = alpha (u^B_i @ first_i + second_i) + third_i
    A  d / dPhi   = alpha sum_i (-y_i / 2 first_i + y_i^2 / 4 Phi @ second_i)
       d / du^A_j = y_j / N_A * d / dPhi [j in labelled] + third_j [j in overlap]

FedBCD-p: in every round one exchange, then Q steps of both side by side. What is
frozen are the components received. A holds B's three (that is, u^B) and recomputes with
its own present u^A: Phi, over all of `labelled`, is computed anew in each step. B holds
A's three (Phi'Phi, y_i Phi and u^A_i, of the exchange) and recomputes with its own
present u^B: phi_i = Phi . u^B_i moves, Phi does not. So both take the true partial
gradient at [own present block, other block as of the exchange], eq. (12), and the
"recompute" of F-01 costs nothing here.

In plain text, the second and third components of B are functions of its first, and the
third but for a factor of the first; they are separate for encryption's sake.

Source: section 7.1 and F-15 of the specification; Taylor loss as in `fedbcd_twin`.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from tests.reference.fedbcd_twin import LN2, Layer, step_table


class Problem(NamedTuple):
    """Data, layers and weights.

    Attributes:
        layer_a: of A.
        layer_b: of B; as many units.
        x_a: [N_A, d_a].
        x_b: [N_B, d_b].
        y: [N_A], -1 and 1.
        overlap: ids of the common samples, distinct.
        alpha: weight of the label loss.
        l2: of either party's parameters, biases too.
        labelled: ids that Phi is the mean over; None for all of A's.
    """

    layer_a: Layer
    layer_b: Layer
    x_a: np.ndarray
    x_b: np.ndarray
    y: np.ndarray
    overlap: np.ndarray
    alpha: float = 100.0
    l2: float = 0.0
    labelled: np.ndarray | None = None


class FromA(NamedTuple):
    """What A sends: [C, h, h], [C, h], [C, h]."""

    quadratic: np.ndarray
    linear: np.ndarray
    alignment: np.ndarray


class FromB(NamedTuple):
    """What B sends: [C, h], [C, h, h], [C, h]."""

    u: np.ndarray
    outer: np.ndarray
    alignment: np.ndarray


class Trace(NamedTuple):
    """What a run leaves.

    Attributes:
        params: per round, (theta_A, theta_B) after it.
        losses: per round, before it, of its batch, without regulariser; computed at A
            from the components.
    """

    params: list[tuple[np.ndarray, np.ndarray]]
    losses: list[float]


def mean_of_signed(
    u_a: np.ndarray, y: np.ndarray, labelled: np.ndarray | None = None
) -> np.ndarray:
    """Phi [h]."""
    ids = np.arange(len(y)) if labelled is None else labelled
    total = np.zeros(u_a.shape[1])
    for j in ids:
        total += y[j] * u_a[j]
    return total / len(ids)


def scores(
    u_a: np.ndarray,
    u_b: np.ndarray,
    y: np.ndarray,
    labelled: np.ndarray | None = None,
) -> np.ndarray:
    """Predicted probability of y = 1 for every row of B."""
    phi = u_b @ mean_of_signed(u_a, y, labelled)
    return np.exp(-np.logaddexp(0.0, -phi))


def ftl_loss_and_gradients(
    u_a: np.ndarray,
    u_b: np.ndarray,
    y: np.ndarray,
    overlap: np.ndarray,
    alpha: float,
    labelled: np.ndarray | None = None,
) -> tuple[float, np.ndarray, np.ndarray]:
    """Label and alignment loss, without regulariser, and gradients in u_a and u_b.

    Args:
        u_a: [N_A, h].
        u_b: [N_B, h].
        y: [N_A], -1 and 1.
        overlap: ids of the samples summed over.
        alpha: weight of the label loss.
        labelled: ids that Phi is the mean over; None for all of A's.

    Returns:
        The loss, and gradients [N_A, h] (through Phi and the alignment) and [N_B, h].
    """
    h = u_a.shape[1]
    mean = mean_of_signed(u_a, y, labelled)
    label_loss = alignment_loss = 0.0
    d_mean = np.zeros(h)
    d_a, d_b = np.zeros_like(u_a), np.zeros_like(u_b)
    for i in overlap:
        phi = mean @ u_b[i]
        label_loss += LN2 - y[i] * phi / 2.0 + phi**2 / 8.0
        alignment_loss -= u_a[i] @ u_b[i] / h
        d_phi = alpha * (-y[i] / 2.0 + phi / 4.0)
        d_mean += d_phi * u_b[i]
        d_b[i] += d_phi * mean - u_a[i] / h
        d_a[i] -= u_b[i] / h
    ids = np.arange(len(y)) if labelled is None else labelled
    for j in ids:
        d_a[j] += y[j] / len(ids) * d_mean
    return float(alpha * label_loss + alignment_loss), d_a, d_b


def components_of_a(
    u_a: np.ndarray,
    y: np.ndarray,
    overlap: np.ndarray,
    labelled: np.ndarray | None = None,
) -> FromA:
    """What A sends about the samples `overlap`."""
    mean = mean_of_signed(u_a, y, labelled)
    square = np.outer(mean, mean)
    return FromA(
        np.array([y[i] ** 2 / 4.0 * square for i in overlap]),
        np.array([-y[i] / 2.0 * mean for i in overlap]),
        np.array([-u_a[i] / len(mean) for i in overlap]),
    )


def components_of_b(u_b: np.ndarray, overlap: np.ndarray) -> FromB:
    """What B sends about the samples `overlap`."""
    return FromB(
        np.array([u_b[i] for i in overlap]),
        np.array([np.outer(u_b[i], u_b[i]) for i in overlap]),
        np.array([-u_b[i] / u_b.shape[1] for i in overlap]),
    )


def gradient_at_b(
    received: FromA, u_b: np.ndarray, overlap: np.ndarray, alpha: float
) -> np.ndarray:
    """Gradient in u_b [N_B, h], from A's components and B's present u_b."""
    gradient = np.zeros_like(u_b)
    for c, i in enumerate(overlap):
        label = u_b[i] @ received.quadratic[c] + received.linear[c]
        gradient[i] = alpha * label + received.alignment[c]
    return gradient


def gradient_at_a(
    received: FromB,
    u_a: np.ndarray,
    y: np.ndarray,
    overlap: np.ndarray,
    alpha: float,
    labelled: np.ndarray | None = None,
) -> np.ndarray:
    """Gradient in u_a [N_A, h], from B's components and A's present u_a."""
    mean = mean_of_signed(u_a, y, labelled)
    d_mean = np.zeros_like(mean)
    gradient = np.zeros_like(u_a)
    for c, i in enumerate(overlap):
        d_mean -= alpha * y[i] / 2.0 * received.u[c]
        d_mean += alpha * y[i] ** 2 / 4.0 * (mean @ received.outer[c])
        gradient[i] += received.alignment[c]
    ids = np.arange(len(y)) if labelled is None else labelled
    for j in ids:
        gradient[j] += y[j] / len(ids) * d_mean
    return gradient


def loss_at_a(
    received: FromB,
    u_a: np.ndarray,
    y: np.ndarray,
    overlap: np.ndarray,
    alpha: float,
    labelled: np.ndarray | None = None,
) -> float:
    """The loss, without regulariser, as A has it from B's components."""
    mean = mean_of_signed(u_a, y, labelled)
    loss = 0.0
    for c, i in enumerate(overlap):
        square = mean @ received.outer[c] @ mean
        loss += alpha * (LN2 - y[i] / 2.0 * (mean @ received.u[c]) + square / 8.0)
        loss += u_a[i] @ received.alignment[c]
    return float(loss)


def ftl_fedbcd_p(
    problem: Problem,
    theta_a: np.ndarray,
    theta_b: np.ndarray,
    batches: Sequence[np.ndarray | None],
    Q: int,
    steps: np.ndarray,
    mu: float = 0.0,
    anchor: str = "sync",
) -> Trace:
    """FedBCD-p, and FedPBCD-p if mu > 0, for transfer learning.

    Args:
        problem: data, layers and weights.
        theta_a: initial parameters of A, W row by row, then b.
        theta_b: the same of B.
        batches: overlapping ids of each round; None for all of them.
        Q: local steps a round; 1 is gradient descent on both blocks together.
        steps: [T] or [T, Q].
        mu: proximal weight.
        anchor: "sync" or "first_step"; the latter's first step has no such term.

    Returns:
        The trace.
    """
    a, b = problem.layer_a, problem.layer_b
    y, alpha, labelled = problem.y, problem.alpha, problem.labelled
    sizes = step_table(steps, Q)
    trace = Trace([], [])
    for t, batch in enumerate(batches):
        ids = problem.overlap if batch is None else batch
        u_a = a.forward(theta_a, problem.x_a)
        u_b = b.forward(theta_b, problem.x_b)
        from_a = components_of_a(u_a, y, ids, labelled)
        from_b = components_of_b(u_b, ids)
        loss = loss_at_a(from_b, u_a, y, ids, alpha, labelled)

        fixed_a, fixed_b = theta_a, theta_b
        for j in range(Q):
            u_a = a.forward(theta_a, problem.x_a)
            d_a = gradient_at_a(from_b, u_a, y, ids, alpha, labelled)
            g_a = a.vjp(theta_a, problem.x_a, d_a) + problem.l2 * theta_a
            theta_a = theta_a - sizes[t, j] * (g_a + mu * (theta_a - fixed_a))

            u_b = b.forward(theta_b, problem.x_b)
            d_b = gradient_at_b(from_a, u_b, ids, alpha)
            g_b = b.vjp(theta_b, problem.x_b, d_b) + problem.l2 * theta_b
            theta_b = theta_b - sizes[t, j] * (g_b + mu * (theta_b - fixed_b))

            if j == 0 and anchor == "first_step":
                fixed_a, fixed_b = theta_a, theta_b

        trace.params.append((theta_a, theta_b))
        trace.losses.append(loss)
    return trace
