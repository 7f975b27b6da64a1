"""FedSGD, FedBCD-p, FedBCD-s and FedPBCD-p: slow, plain NumPy, from the specification.

K parties hold features of the same N samples; party K - 1, the last, holds the labels
(party K of the paper). Their outputs H^k [S, 1] meet in a sum, eq. (2):

    loss = mean over the batch of f(sum_k H^k, y) + sum_k l2 / 2 |theta_k|^2

A party's parameters are one flat vector, laid out as its model's class says. Nothing
is added to the features: a bias is the caller's column of ones. In every round t a
batch is given, and each party makes Q steps on it, of sizes `steps[t]` or
`steps[t, j]`; batch and the others' sum H_{-k} stay as they are meanwhile:

    theta <- theta - step * (vjp_k(theta, slope) / S + l2 theta + mu (theta - anchor))

`slope` is f' of the scores, and `local_gradient` says of which ones (F-01):

    recompute  H_{-k} + H^k(theta), at every party (eq. 12);
    frozen     those of the exchange, at the parties without labels; the last party
               recomputes. For a linear model the data gradient is then constant; a
               network pulls the constant slope through its present Jacobian;
    taylor     recompute, with the Taylor loss everywhere whatever `Problem.loss` says.

Source: Liu et al., A Communication-Efficient Collaborative Learning Framework for
Distributed Features, eqs (1) to (15), Algorithms 1 to 4. Section numbers and F-xx are
those of the specification.
"""

from collections.abc import Sequence
from typing import NamedTuple, Protocol

import numpy as np

LN2 = float(np.log(2.0))


class Model(Protocol):
    """A local model: outputs, and the gradient of <d_output, outputs>."""

    def forward(self, theta: np.ndarray, x: np.ndarray) -> np.ndarray: ...

    def vjp(
        self, theta: np.ndarray, x: np.ndarray, d_output: np.ndarray
    ) -> np.ndarray: ...


class Linear:
    """x @ W; theta is W [d, p], row by row."""

    def __init__(self, num_features: int, num_outputs: int = 1):
        self.shape = (num_features, num_outputs)
        self.size = num_features * num_outputs

    def forward(self, theta: np.ndarray, x: np.ndarray) -> np.ndarray:
        return x @ theta.reshape(self.shape)

    def vjp(self, theta: np.ndarray, x: np.ndarray, d_output: np.ndarray) -> np.ndarray:
        return (x.T @ d_output).ravel()


class Layer:
    """act(x @ W + b); theta is W [d, h], row by row, then b [h]; relu'(0) = 0."""

    def __init__(self, num_features: int, num_hidden: int, activation: str):
        self.shape = (num_features, num_hidden)
        self.size = (num_features + 1) * num_hidden
        self.activation = activation

    def inputs(self, theta: np.ndarray, x: np.ndarray) -> np.ndarray:
        """[S, h] before the activation."""
        d, h = self.shape
        return x @ theta[: d * h].reshape(d, h) + theta[d * h :].reshape(1, h)

    def forward(self, theta: np.ndarray, x: np.ndarray) -> np.ndarray:
        z = self.inputs(theta, x)
        return np.tanh(z) if self.activation == "tanh" else np.maximum(z, 0.0)

    def vjp(self, theta: np.ndarray, x: np.ndarray, d_output: np.ndarray) -> np.ndarray:
        z = self.inputs(theta, x)
        slope = 1.0 - np.tanh(z) ** 2 if self.activation == "tanh" else (z > 0.0) * 1.0
        d_z = d_output * slope
        return np.concatenate([(x.T @ d_z).ravel(), d_z.sum(axis=0)])


class Mlp:
    """act(x @ W1 + b1) @ w2, no bias at the end; theta is W1, b1, then w2 [h, p]."""

    def __init__(
        self,
        num_features: int,
        num_hidden: int,
        activation: str = "relu",
        num_outputs: int = 1,
    ):
        self.layer = Layer(num_features, num_hidden, activation)
        self.top = Linear(num_hidden, num_outputs)
        self.size = self.layer.size + self.top.size

    def forward(self, theta: np.ndarray, x: np.ndarray) -> np.ndarray:
        first, second = theta[: self.layer.size], theta[self.layer.size :]
        return self.top.forward(second, self.layer.forward(first, x))

    def vjp(self, theta: np.ndarray, x: np.ndarray, d_output: np.ndarray) -> np.ndarray:
        first, second = theta[: self.layer.size], theta[self.layer.size :]
        hidden = self.layer.forward(first, x)
        d_hidden = d_output @ second.reshape(self.top.shape).T
        return np.concatenate(
            [
                self.layer.vjp(first, x, d_hidden),
                self.top.vjp(second, hidden, d_output),
            ]
        )


class Problem(NamedTuple):
    """Data, models and loss.

    Attributes:
        models: one per party.
        x: per party [N, d_k].
        y: [N], -1 and 1.
        loss: "logistic" or "taylor2".
        l2: lambda; gamma = |theta|^2 / 2, all of a party's parameters (F-20).
    """

    models: Sequence[Model]
    x: Sequence[np.ndarray]
    y: np.ndarray
    loss: str = "logistic"
    l2: float = 0.0


class Trace(NamedTuple):
    """The parties' parameters after each round."""

    params: list[list[np.ndarray]]


Params = list[np.ndarray]


def sample_losses(loss: str, scores: np.ndarray, y: np.ndarray) -> np.ndarray:
    """f of each sample, [S]; scores [S, 1].

    logistic: ln(1 + exp(-y H)); taylor2: ln 2 - y H / 2 + H^2 / 8.
    """
    if loss == "logistic":
        return np.logaddexp(0.0, -y * scores[:, 0])
    return LN2 - y * scores[:, 0] / 2.0 + scores[:, 0] ** 2 / 8.0


def slopes(loss: str, scores: np.ndarray, y: np.ndarray) -> np.ndarray:
    """g = df / dH of each sample, [S, 1]; not divided by the batch size."""
    sign = y[:, None]
    if loss == "logistic":  # -y / (1 + e^{y H}), without overflow
        return -sign * np.exp(-np.logaddexp(0.0, sign * scores))
    return -sign / 2.0 + scores / 4.0


def outputs(problem: Problem, params: Params, ids: np.ndarray) -> list[np.ndarray]:
    """H^k [S, 1] of every party."""
    return [
        model.forward(theta, x[ids])
        for model, theta, x in zip(problem.models, params, problem.x, strict=True)
    ]


def objective(problem: Problem, params: Params, ids: np.ndarray) -> float:
    """Eq. (1) over the samples `ids`."""
    scores = add_up(outputs(problem, params, ids), len(ids))
    data = sample_losses(problem.loss, scores, problem.y[ids]).mean()
    return float(data + problem.l2 * sum((theta @ theta) / 2.0 for theta in params))


def partial_gradient(
    problem: Problem, k: int, theta: np.ndarray, ids: np.ndarray, g: np.ndarray
) -> np.ndarray:
    """Eq. (3) with (4): gradient of party k at `theta`, given the slopes g [S, 1]."""
    data = problem.models[k].vjp(theta, problem.x[k][ids], g / len(ids))
    return data + problem.l2 * theta


def local_steps(
    problem: Problem,
    k: int,
    theta: np.ndarray,
    ids: np.ndarray,
    others: np.ndarray,
    told: np.ndarray,
    sizes: np.ndarray,
    local_gradient: str,
    mu: float = 0.0,
    anchor: str = "sync",
) -> np.ndarray:
    """One party's steps between two exchanges.

    Args:
        problem: with the Taylor loss already in it if `local_gradient` is "taylor".
        k: the party.
        theta: at the beginning.
        ids: the batch.
        others: H_{-k} [S, 1].
        told: slopes of the exchange [S, 1]; read only by "frozen", for k < K - 1.
        sizes: of the Q steps.
        local_gradient: see the module.
        mu: proximal weight.
        anchor: "sync" for `theta` at the beginning; "first_step" for theta after the
            first step, which itself is made without the proximal term (F-14).

    Returns:
        theta at the end.
    """
    has_labels = k == len(problem.models) - 1
    fixed = theta
    for j, size in enumerate(sizes):
        g = told
        if local_gradient != "frozen" or has_labels:
            scores = others + problem.models[k].forward(theta, problem.x[k][ids])
            g = slopes(problem.loss, scores, problem.y[ids])
        gradient = partial_gradient(problem, k, theta, ids, g)
        gradient = gradient + mu * (theta - fixed)  # zero at j = 0
        theta = theta - size * gradient
        if j == 0 and anchor == "first_step":
            fixed = theta
    return theta


def fedsgd(
    problem: Problem, params: Params, batches: Sequence[np.ndarray], steps: np.ndarray
) -> Trace:
    """Algorithm 1: an Exchange(all) and one step of every party per round."""
    trace = Trace([])
    sizes = step_table(steps, 1)
    for t, ids in enumerate(batches):
        parts = outputs(problem, params, ids)
        g = slopes(problem.loss, add_up(parts, len(ids)), problem.y[ids])
        params = [
            theta - sizes[t, 0] * partial_gradient(problem, k, theta, ids, g)
            for k, theta in enumerate(params)
        ]
        trace.params.append(list(params))
    return trace


def fedbcd_p(
    problem: Problem,
    params: Params,
    batches: Sequence[np.ndarray],
    Q: int,
    steps: np.ndarray,
    local_gradient: str = "recompute",
) -> Trace:
    """Algorithm 2: an Exchange(all), then Q steps of all parties side by side."""
    return fedpbcd_p(problem, params, batches, Q, steps, 0.0, "sync", local_gradient)


def fedpbcd_p(
    problem: Problem,
    params: Params,
    batches: Sequence[np.ndarray],
    Q: int,
    steps: np.ndarray,
    mu: float = 0.1,
    anchor: str = "sync",
    local_gradient: str = "recompute",
) -> Trace:
    """Eq. (15): FedBCD-p with mu (theta - anchor) in the local gradient.

    Args:
        problem: data, models and loss.
        params: initial, flat, per party.
        batches: sample ids of each round, the same at all parties (F-25).
        Q: local steps a round, >= 1.
        steps: [T], or [T, Q] where it changes within a round (F-05).
        mu: proximal weight, >= 0.
        anchor: "sync" or "first_step", see `local_steps` (F-14).
        local_gradient: see the module (F-01).

    Returns:
        The trace.
    """
    problem = with_loss_of(problem, local_gradient)
    sizes = step_table(steps, Q)
    trace = Trace([])
    for t, ids in enumerate(batches):
        parts = outputs(problem, params, ids)
        g = slopes(problem.loss, add_up(parts, len(ids)), problem.y[ids])
        moved = []
        for k, theta in enumerate(params):
            others = add_up(parts[:k] + parts[k + 1 :], len(ids))
            moved.append(
                local_steps(
                    problem,
                    k,
                    theta,
                    ids,
                    others,
                    g,
                    sizes[t],
                    local_gradient,
                    mu,
                    anchor,
                )
            )
        params = moved
        trace.params.append(list(params))
    return trace


def fedbcd_s(
    problem: Problem,
    params: Params,
    batches: Sequence[np.ndarray],
    Q: int,
    steps: np.ndarray,
    local_gradient: str = "recompute",
) -> Trace:
    """Algorithm 3: Q steps of one party after the other, on one batch a round.

    All have the outputs of all others for this batch (F-02), and are told again what
    earlier parties made of theirs ("the updated contribution", section 4.3).
    """
    problem = with_loss_of(problem, local_gradient)
    sizes = step_table(steps, Q)
    trace = Trace([])
    params = list(params)
    for t, ids in enumerate(batches):
        for k, theta in enumerate(params):
            parts = outputs(problem, params, ids)
            g = slopes(problem.loss, add_up(parts, len(ids)), problem.y[ids])
            others = add_up(parts[:k] + parts[k + 1 :], len(ids))
            params[k] = local_steps(
                problem, k, theta, ids, others, g, sizes[t], local_gradient
            )
        trace.params.append(list(params))
    return trace


def add_up(parts: Sequence[np.ndarray], num_samples: int) -> np.ndarray:
    """Sum in the order of the parties, [S, 1]; zeros if there is none."""
    total = np.zeros((num_samples, 1))
    for part in parts:
        total = total + part
    return total


def with_loss_of(problem: Problem, local_gradient: str) -> Problem:
    """The problem, with the Taylor loss if `local_gradient` asks for it."""
    return problem._replace(loss="taylor2") if local_gradient == "taylor" else problem


def step_table(steps: np.ndarray, Q: int) -> np.ndarray:
    """Step sizes [T, Q] from [T] or [T, Q]."""
    sizes = np.asarray(steps, dtype=np.float64)
    if sizes.ndim == 1:
        sizes = np.repeat(sizes[:, None], Q, axis=1)
    return sizes
