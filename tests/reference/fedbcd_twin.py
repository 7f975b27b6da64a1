"""FedSGD, FedBCD-p, FedBCD-s and FedPBCD-p: slow, plain NumPy, from the specification.

K parties hold features of the same N samples; party K - 1, the last, holds the labels
(party K of the paper). Their outputs H^k [S, 1] meet in a sum, eq. (2):

    loss = mean over the batch of f(sum_k H^k, y) + sum_k l2 / 2 |theta_k|^2

A party's parameters are one flat vector, laid out as its model's class says. Nothing
is added to the features: a bias is the caller's column of ones. In every round t a
batch is given, and each party makes Q steps on it, of size `steps[t]`; batch and the
others' sum H_{-k} stay as they are meanwhile:

    theta <- theta - step * (vjp_k(theta, slope) / S + l2 theta + mu (theta - anchor))

The anchor is theta at the exchange (F-14). FedSGD, Algorithm 1, has Q = 1. `slope` is
f' of the scores, and `local_gradient` says of which ones (F-01):

    recompute  H_{-k} + H^k(theta), at every party (eq. 12);
    frozen     those of the exchange, at the parties without labels; the last party
               recomputes. For a linear model the data gradient is then constant; a
               network pulls the constant slope through its present Jacobian.

Source: Liu et al., A Communication-Efficient Collaborative Learning Framework for
Distributed Features, eqs (1) to (15), Algorithms 1 to 4. Section numbers and F-xx are
those of the specification.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from tests.reference.layers_twin import Model

LN2 = float(np.log(2.0))
Params = list[np.ndarray]


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


class Local(NamedTuple):
    """What a party does between two exchanges.

    Attributes:
        Q: steps.
        local_gradient: see the module.
        mu: proximal weight, eq. (15).
    """

    Q: int = 1
    local_gradient: str = "recompute"
    mu: float = 0.0


def slopes(loss: str, scores: np.ndarray, y: np.ndarray) -> np.ndarray:
    """g = df / dH of each sample, [S, 1]; not divided by the batch size.

    Of ln(1 + exp(-y H)); of ln 2 - y H / 2 + H^2 / 8, "taylor2".
    """
    sign = y[:, None]
    if loss == "logistic":  # -y / (1 + e^{y H}), without overflow
        return -sign * np.exp(-np.logaddexp(0.0, sign * scores))
    return -sign / 2.0 + scores / 4.0


def outputs(problem: Problem, params: Params, ids: np.ndarray) -> np.ndarray:
    """H^k of every party, [K, S, 1]."""
    triples = zip(problem.models, params, problem.x, strict=True)
    return np.array([model.forward(theta, x[ids]) for model, theta, x in triples])


def local_steps(
    problem: Problem,
    k: int,
    theta: np.ndarray,
    ids: np.ndarray,
    parts: np.ndarray,
    size: float,
    local: Local,
) -> np.ndarray:
    """One party's theta after its steps, given all outputs [K, S, 1] as exchanged."""
    model, x, y = problem.models[k], problem.x[k][ids], problem.y[ids]
    has_labels = k == len(problem.models) - 1
    anchor, others = theta, parts.sum(axis=0) - parts[k]
    for _ in range(local.Q):
        frozen = local.local_gradient == "frozen" and not has_labels
        own = parts[k] if frozen else model.forward(theta, x)
        g = slopes(problem.loss, others + own, y)
        gradient = model.vjp(theta, x, g / len(ids))[0] + problem.l2 * theta
        theta = theta - size * (gradient + local.mu * (theta - anchor))
    return theta


def fedbcd(
    problem: Problem,
    params: Params,
    batches: Sequence[np.ndarray],
    steps: Sequence[float],
    local: Local,
    *,
    sequential: bool = False,
) -> list[Params]:
    """Algorithm 2: an Exchange(all), then Q steps of all parties side by side.

    In sequence, Algorithm 3: Q steps of one party after the other, on one batch a
    round. All have the outputs of all others for this batch (F-02), and are told again
    what earlier parties made of theirs ("the updated contribution", section 4.3).

    Args:
        problem: data, models and loss.
        params: initial, flat, per party.
        batches: sample ids of each round, the same at all parties (F-25).
        steps: size in each round.
        local: what parties do.
        sequential: whether they take turns.

    Returns:
        The parties' parameters after each round.
    """
    params, history = list(params), []
    for ids, size in zip(batches, steps, strict=True):
        parts = outputs(problem, params, ids)
        for k, theta in enumerate(params):
            if sequential:
                parts = outputs(problem, params, ids)
            params[k] = local_steps(problem, k, theta, ids, parts, size, local)
        history.append(list(params))
    return history


def asynchronous(
    problem: Problem,
    params: Params,
    turns: Sequence[tuple[int, np.ndarray]],
    steps: Sequence[float],
    local: Local,
) -> list[Params]:
    """Asynchronous FedBCD, an extension that is not in the paper.

    The server is where the labels are, and it keeps `store[k]` [N, 1]: for every sample
    the newest H^k_i that party k uploaded, at first at the initial parameters. This
    holds for the last party (with the labels) too: its entries are as old as its own
    last upload, although it could compute them when they are wanted.

    In its turn party k uploads H^k of its batch at its present theta_k, and store[k]
    takes it. It reads the others' entries, and makes its steps with these held. Nothing
    is uploaded after them: an update becomes visible to others at the party's next
    turn, so that turns in strict alternation are not FedBCD-s.

    Args:
        problem: data, models and loss.
        params: initial, flat, per party.
        turns: party and its batch.
        steps: size in each turn.
        local: what a party does.

    Returns:
        The parties' parameters after each turn.
    """
    params, history = list(params), []
    store = outputs(problem, params, np.arange(len(problem.y)))
    for (k, ids), size in zip(turns, steps, strict=True):
        store[k, ids] = problem.models[k].forward(params[k], problem.x[k][ids])
        parts = store[:, ids]
        params[k] = local_steps(problem, k, params[k], ids, parts, size, local)
        history.append(list(params))
    return history
