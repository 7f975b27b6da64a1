"""Decentralised learning of K workers: slow, plain NumPy, from the specification.

A(DP)^2SGD and AD-PSGD (sigma = 0), gossip with ages, SYNC, D-PSGD, stochastic gradient
push. Who does what in which order is input, and so are batches (sample ids) and noise
(draws from N(0, I)).

`gradient(w, worker, batch)` is the MEAN over the batch of B samples, and `eta` is a
step on that mean (A-01). Algorithm 1 writes the sum; so its noise of deviation sigma is
sigma / B here (`noise_on="sum"`), and the eta of Theorem 1 is `eta` / B. Nothing is
clipped (A-03). Without `momentum` there is none (A-13); with it worker k keeps a buffer
of its own, v_k <- mu v_k + g, and steps by eta v_k, as PyTorch's SGD (no dampening, no
Nesterov) which the public implementation uses; buffers are never averaged.

`eta(t)` is asked with t mini-batches finished by all workers together: 0, 1, 2, ... at
the updates of `gossip`; 0, K, 2 K, ... in rounds, where the K steps share one size.

Source: Xu, Zhang and Wang, A(DP)^2SGD: Asynchronous Decentralized Parallel Stochastic
Gradient Descent with Differential Privacy. Section numbers, (n) and A-xx are those of
the specification. Other methods cite their own papers.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Literal, NamedTuple

import numpy as np

Gradient = Callable[[np.ndarray, int, np.ndarray], np.ndarray]
Eta = Callable[[int], float]
Noise = np.ndarray | None
Event = (
    tuple[Literal["read"], int]
    | tuple[Literal["average"], int, int]
    | tuple[Literal["average_all"]]
    | tuple[Literal["send"], int, int]
    | tuple[Literal["merge"], int, int]
    | tuple[Literal["update"], int, np.ndarray, Noise]
)
Round = Sequence[tuple[np.ndarray, Noise]]


class Trace(NamedTuple):
    """A run of U updates; everything as it is right after the update.

    Attributes:
        models: [U, K, d].
        staleness: [U], updates of all workers between snapshot and this one.
        consensus: [U], (1/K) sum_k |w_k - theta|^2.
        theta: [U, d], the average model (A-14).
        ages: [U, K], updates in each model, see `by_age`.
    """

    models: np.ndarray
    staleness: np.ndarray
    consensus: np.ndarray
    theta: np.ndarray
    ages: np.ndarray


class Pushed(NamedTuple):
    """After each round: z = x / y [R, K, d], x [R, K, d], y [R, K]."""

    z: np.ndarray
    x: np.ndarray
    y: np.ndarray


class Method(NamedTuple):
    """What a worker does with a batch.

    Attributes:
        gradient: of the mean loss over a batch.
        eta: step size of update t, counted from 0 over all workers.
        sigma: standard deviation of the noise, >= 0.
        noise_on: "sum" or "mean", which gradient carries sigma.
        momentum: mu of each worker's buffer, in [0, 1).
    """

    gradient: Gradient
    eta: Eta
    sigma: float = 0.0
    noise_on: str = "sum"
    momentum: float = 0.0

    def noisy(
        self, w: np.ndarray, worker: int, batch: np.ndarray, noise: Noise
    ) -> np.ndarray:
        """Mean gradient with noise: (B g + sigma n) / B on the sum, or g + sigma n."""
        g = np.asarray(self.gradient(w, worker, batch), dtype=np.float64)
        if self.sigma == 0.0:
            return g
        assert noise is not None
        if self.noise_on == "mean":
            return g + self.sigma * noise
        return (len(batch) * g + self.sigma * noise) / len(batch)


def gossip(
    w0: np.ndarray,
    num_workers: int,
    events: Iterable[Event],
    method: Method,
    *,
    by_age: bool = False,
    replaces: bool = False,
    keeps: bool = False,
) -> Trace:
    """A(DP)^2SGD, sections 2.2 and 2.4; with sigma = 0, AD-PSGD.

    Args:
        w0: [d], where all workers start.
        num_workers: K.
        events: in order (A-10), each one of
            ("read", k): w_hat_k <- w_k;
            ("average", i, j): w_i and w_j <- their mean;
            ("average_all",): all <- the mean of all;
            ("send", k, m): message m <- w_k;
            ("merge", k, m): w_k <- the mean of w_k and message m, which is used up;
            ("update", k, batch, noise): w_k <- w_k - eta(t) (gradient at w_hat_k, with
            noise), which uses the snapshot up. `noise` [d] may be None if sigma = 0.
        method: of all workers.
        by_age: whether a model counts by its age, n_k, 0 at first, which grows by one
            at each update of k. Merging i and j leaves both with (n_i w_i + n_j w_j) /
            (n_i + n_j), or the plain mean if both ages are 0, and with age
            max(n_i, n_j). "average_all" does the same to all K.
        replaces: whether a merging is w_k <- message m: models walk at random.
        keeps: whether worker k keeps message m until the next one of its sender, and
            w_k <- the mean of w_k and all that it keeps.

    Returns:
        The trace, one row per update.

    Source of ages, sending and merging: Ormandi, Hegedus and Jelasity, Gossip learning
    with linear models on fully distributed data (2013), Algorithm 1, and RW and MU of
    Algorithm 2; of MU here w_k is the receiver's model, not the last that it received.
    Hegedus, Danner and Jelasity, Decentralized learning works (2021), where the
    receiver alone merges.
    """
    models = start(w0, num_workers)
    ages = np.zeros(num_workers, dtype=int)
    buffers = np.zeros_like(models)
    snapshots: dict[int, tuple[np.ndarray, int]] = {}  # worker: (w_hat, t of the read)
    messages: dict[int, tuple[np.ndarray, int]] = {}  # message: (model, age)
    senders: dict[int, int] = {}
    kept: list[dict[int, np.ndarray]] = [{} for _ in range(num_workers)]
    rows = []
    t = 0
    for event in events:
        match event:
            case ("read", k):
                snapshots[k] = (models[k].copy(), t)
            case ("average", i, j):
                merge(models, ages, [i, j], by_age)
            case ("average_all",):
                merge(models, ages, list(range(num_workers)), by_age)
            case ("send", k, message):
                messages[message] = (models[k].copy(), int(ages[k]))
                senders[message] = k
            case ("merge", k, message):
                other, age = messages.pop(message)
                if keeps:
                    kept[k][senders[message]] = other
                    models[k] = np.mean([models[k], *kept[k].values()], axis=0)
                    continue
                own, told = (1.0, 1.0)
                if by_age and ages[k] + age > 0:
                    own, told = float(ages[k]), float(age)
                if replaces:
                    own, told = 0.0, 1.0
                models[k] = (own * models[k] + told * other) / (own + told)
                ages[k] = max(ages[k], age)
            case ("update", k, batch, noise):
                w_hat, read_at = snapshots.pop(k)
                g = method.noisy(w_hat, k, batch, noise)
                buffers[k] = method.momentum * buffers[k] + g
                models[k] = models[k] - method.eta(t) * buffers[k]
                ages[k] += 1
                rows.append((models.copy(), t - read_at, ages.copy()))
                t += 1
            case _:
                raise ValueError(f"event must be one of Event, got {event!r}")
    history = np.array([row[0] for row in rows]).reshape(t, num_workers, len(w0))
    theta, consensus = summary(history)
    return Trace(
        history,
        np.array([row[1] for row in rows], dtype=int),
        consensus,
        theta,
        np.array([row[2] for row in rows], dtype=int).reshape(t, num_workers),
    )


def merge(
    models: np.ndarray, ages: np.ndarray, workers: list[int], by_age: bool
) -> None:
    """Gives these workers one model, in place: their mean, plain or by age."""
    weights = np.ones(len(workers))
    if by_age and ages[workers].sum() > 0:
        weights = ages[workers].astype(np.float64)
    models[workers] = (weights @ models[workers]) / weights.sum()
    ages[workers] = ages[workers].max()


def in_rounds(
    w0: np.ndarray,
    mixing: Sequence[np.ndarray],
    rounds: Sequence[Round],
    method: Method,
    *,
    steps_first: bool = True,
) -> Pushed:
    """Rounds of one step of every worker and a mixing of their models.

    `rounds[r][k]` is worker k's (batch, noise) of round r, and `mixing[r][i, j]` what j
    sends to i in it, a share: columns sum to one.

    SYNC (SSGD), section 2.1, is steps with noise at every worker (A-22), then the mean:
    all shares are 1 / K. Stochastic gradient push without delays is push-sum on a
    directed graph, with gradients at z = x / y; where shares are doubly stochastic, y
    stays 1. D-PSGD does not step first: x_i <- sum_j W_ij x_j - eta g_i(x_i), the
    gradient at the old x_i.

    Sources: Assran, Loizou, Ballas and Rabbat, Stochastic gradient push for distributed
    deep learning (2019), Algorithm 1; Lian et al., Can decentralized algorithms
    outperform centralized algorithms? (2017), Algorithm 1.
    """
    K = len(mixing[0])
    x, y = start(w0, K), np.ones(K)
    buffers = np.zeros_like(x)
    zs, xs, ys = [], [], []
    for r, (p, work) in enumerate(zip(mixing, rounds, strict=True)):
        points = x / y[:, None]
        g = [method.noisy(points[k], k, *work[k]) for k in range(K)]
        buffers = method.momentum * buffers + np.array(g)
        step = method.eta(r * K) * buffers
        x = p @ (x - step) if steps_first else p @ x - step
        y = p @ y
        zs.append(x / y[:, None])
        xs.append(x)
        ys.append(y)
    return Pushed(np.array(zs), np.array(xs), np.array(ys))


def start(w0: np.ndarray, num_workers: int) -> np.ndarray:
    """K copies of w0, [K, d]."""
    return np.tile(np.asarray(w0, dtype=np.float64), (num_workers, 1))


def consensus_of(pushed: Pushed) -> np.ndarray:
    """(1/K) sum_k |z_k - theta|^2 [R] from theta, the mean of the numerators x.

    Source: Assran et al. (2019), whose theorems bound it.
    """
    theta = pushed.x.mean(axis=1, keepdims=True)
    return ((pushed.z - theta) ** 2).sum(axis=2).mean(axis=1)


def summary(history: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """theta [U, d] and (1/K) sum_k |w_k - theta|^2 [U] of models [U, K, d]."""
    theta = history.mean(axis=1)
    return theta, ((history - theta[:, None]) ** 2).sum(axis=2).mean(axis=1)
