"""Running statistics of batches in methods with a server: slow, plain NumPy.

The model normalises its inputs by the batch and has one linear layer, so that neither
mean nor variance depends on weights. With batch means and variances (m, v) of each
input, z = (x - m) / sqrt(v + EPSILON), scores z W + b, softmax cross-entropy. A local
step goes against the gradient of the mean loss in W and b, and makes of the running
statistics r

    r <- MOMENTUM r + (1 - MOMENTUM) (m, v)

A client ends with r_i. Where weights w(s) count contributions at the server, whose own
statistics are r, and n contributions make a commit,

    sgd, fed_buff   r <- mean_i of (1 - w_i) r + w_i r_i
    fed_async       r <- (1 - a) r + a r_i,  a = mixing * w_i

so that with w = 1 statistics are averaged as models are in federated averaging. All
else is as in `federated_twin`.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

MOMENTUM = 0.8
EPSILON = 1e-3


class Model(NamedTuple):
    bias: np.ndarray
    matrix: np.ndarray
    mean: np.ndarray
    variance: np.ndarray


class Contribution(NamedTuple):
    read_version: int
    batches: Sequence[np.ndarray]


class Options(NamedTuple):
    """`exponent` is that of w(s) = (1 + s) ** -exponent."""

    kind: str
    step_size: float
    local_step_size: float
    server_step_size: float = 1.0
    mixing: float = 1.0
    proximal: float = 0.0
    exponent: float = 0.0


def local(
    x: np.ndarray, y: np.ndarray, read: Model, batches: Sequence[np.ndarray],
    step_size: float, proximal: float,
) -> tuple[np.ndarray, np.ndarray, Model]:  # fmt: skip
    """Returns the sums of both gradients, and the client's model at its end."""
    bias, matrix, mean, variance = (np.array(part) for part in read)
    sums = np.zeros_like(bias), np.zeros_like(matrix)
    for batch in batches:
        rows = x[batch]
        m, v = rows.mean(axis=0), rows.var(axis=0)
        z = (rows - m) / np.sqrt(v + EPSILON)
        scores = z @ matrix + bias
        p = np.exp(scores - scores.max(axis=1, keepdims=True))
        p /= p.sum(axis=1, keepdims=True)
        p[np.arange(len(batch)), y[batch]] -= 1
        to_bias = p.mean(axis=0) + proximal * (bias - read.bias)
        to_matrix = z.T @ p / len(batch) + proximal * (matrix - read.matrix)
        sums = sums[0] + to_bias, sums[1] + to_matrix
        bias, matrix = bias - step_size * to_bias, matrix - step_size * to_matrix
        mean = MOMENTUM * mean + (1 - MOMENTUM) * m
        variance = MOMENTUM * variance + (1 - MOMENTUM) * v
    return sums[0], sums[1], Model(bias, matrix, mean, variance)


def blend(one: np.ndarray, other: np.ndarray, share: float) -> np.ndarray:
    return (1 - share) * one + share * other


def run(
    x: np.ndarray, y: np.ndarray, start: Model,
    program: Sequence[tuple[bool, Sequence[Contribution]]], options: Options,
) -> list[Model]:  # fmt: skip
    """Returns all versions; of each row the program says whether it is a commit."""
    versions, gathered = [start], []
    for commits, contributions in program:
        now = versions[-1]
        for one in contributions:
            weight = (1.0 + len(versions) - 1 - one.read_version) ** -options.exponent
            read = versions[one.read_version]
            found = local(
                x, y, read, one.batches, options.local_step_size, options.proximal
            )
            gathered.append((weight, read, *found))
        if not commits:
            continue
        if options.kind == "fed_async":
            ((weight, _, _, _, end),) = gathered
            share = options.mixing * weight
            pairs = zip(now, end, strict=True)
            versions.append(Model(*(blend(a, b, share) for a, b in pairs)))
        else:
            n = len(gathered)
            scale = options.step_size
            if options.kind == "fed_buff":
                scale = options.server_step_size * options.local_step_size
            steps = [
                np.sum([w * each[part] for w, _, *each in gathered], axis=0) / n
                for part in (0, 1)
            ]
            kept = [
                np.sum([blend(mine, end[part], w) for w, *_, end in gathered], axis=0)
                / n
                for part, mine in ((2, now.mean), (3, now.variance))
            ]
            moved = now.bias - scale * steps[0], now.matrix - scale * steps[1]
            versions.append(Model(*moved, *kept))
        gathered = []
    return versions
