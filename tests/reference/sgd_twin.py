"""Asynchronous SGD on horizontally split data: slow, plain NumPy.

A client reads a version of the server model, computes one gradient on its batch and
sends it. The server applies the mean of the contributions of a commit to its newest
version, however old the versions read were:

    w^{k+1} = w^k - step_size(k) * mean_i gradient(w^{read_version_i}, batch_i)

The model is one matrix [P + 1, num_outputs] whose last row is the bias. The gradient of
a contribution includes that of the regulariser, l2 / 2 * |w|^2 without the bias, at the
version read, once whatever the reduction.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np


class Commit(NamedTuple):
    """Contributions that are applied together; a new version.

    Attributes:
        clients: one per contribution; the data are addressed by sample id, so that
            the client only names the contribution.
        batches: sample ids of each contribution's batch, perhaps with repeats.
        read_versions: version each gradient is taken at, at most the newest. Version
            0 is the initial model, commit k makes version k + 1.
    """

    clients: tuple[int, ...]
    batches: tuple[np.ndarray, ...]
    read_versions: tuple[int, ...]


class Trace(NamedTuple):
    """What a run leaves.

    Attributes:
        weights: the newest version, [P + 1, num_outputs].
        versions: all versions, one more than commits; the last is `weights`.
        losses: per commit, the mean over contributions of the reduced loss of its
            batch at the version read, without regulariser.
    """

    weights: np.ndarray
    versions: list[np.ndarray]
    losses: list[float]


def run(
    features: np.ndarray,
    labels: np.ndarray,
    num_outputs: int,
    rows: list[Commit],
    loss: str,
    reduction: str,
    l2: float,
    step_size: Callable[[int], float],
    weights: np.ndarray | None = None,
) -> Trace:
    """Applies the commits in their order.

    Args:
        features: [N, P].
        labels: [N], classes from 0.
        num_outputs: columns of the model; 1 for sigmoid.
        rows: the commits.
        loss: "softmax", or "sigmoid" with one output and labels 0 and 1.
        reduction: "mean" or "sum" over the batch.
        l2: the regulariser is l2 / 2 * |w|^2 over all rows but the bias.
        step_size: of commit k = 0, 1, ...
        weights: initial model, [P + 1, num_outputs]; zeros if None.

    Returns:
        The trace.
    """
    ones = np.ones((len(features), 1))
    inputs = np.hstack([np.array(features, dtype=np.float64), ones])
    if weights is None:
        weights = np.zeros((inputs.shape[1], num_outputs))
    versions = [np.array(weights, dtype=np.float64)]
    losses = []

    for k, row in enumerate(rows):
        contributions = []
        batch_losses = []
        for batch, read in zip(row.batches, row.read_versions, strict=True):
            x, y, w = inputs[batch], np.array(labels)[batch].astype(int), versions[read]
            value, gradient = loss_and_gradient(w, x, y, loss)
            scale = 1.0 / len(batch) if reduction == "mean" else 1.0
            regulariser = l2 * w
            regulariser[-1] = 0.0
            batch_losses.append(scale * value)
            contributions.append(scale * gradient + regulariser)
        losses.append(float(np.mean(batch_losses)))
        versions.append(versions[-1] - step_size(k) * np.mean(contributions, axis=0))

    return Trace(versions[-1], versions, losses)


def loss_and_gradient(
    weights: np.ndarray, inputs: np.ndarray, labels: np.ndarray, loss: str
) -> tuple[float, np.ndarray]:
    """Cross-entropy summed over the samples, and its gradient [P + 1, num_outputs]."""
    value = 0.0
    gradient = np.zeros_like(weights)
    for x, label in zip(inputs, labels, strict=True):
        scores = x @ weights
        if loss == "sigmoid":
            # Two classes with scores 0 and z are a sigmoid of z.
            scores = np.array([0.0, scores[0]])
        largest = scores.max()
        exponentials = np.exp(scores - largest)
        value += largest + np.log(exponentials.sum()) - scores[label]
        difference = exponentials / exponentials.sum()
        difference[label] -= 1.0
        gradient += np.outer(x, difference[1:] if loss == "sigmoid" else difference)
    return float(value), gradient
