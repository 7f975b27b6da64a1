"""Asynchronous SGD, FedAsync and FedBuff: slow, plain NumPy.

The order of events is given: a *program* of rows. Every commit makes a version;
version 0 is the start. A contribution reads `versions[read_version]`, makes Q local
steps there, each on its own batch, and is the sum of the gradients of these steps:

    y_0 = read,  y_q = y_{q-1} - local_step_size * g_q(y_{q-1}),  total = sum_q g_q

It is clipped and noised where there is a mechanism. Then, x the newest version, s the
commits made since the read, and w(s) the staleness weight:

    sgd        x <- x - step_size * optimizer(mean_i w(s_i) compensated(total_i))
    fed_async  x <- (1 - a) x + a (read - step_size * total),  a = mixing * w(s)
    fed_buff   buffer <- buffer + w(s) * step_size * total;  at a commit
               x <- x - server_step_size * optimizer(buffer / count), buffer <- 0

An optimizer that is not linear gets the mean over the mean weight, by which the step is
multiplied in turn.

The model is one matrix [C, P + 1]; the last column is the bias, for which the features
have a column of ones. Step sizes may be functions of k, the commits made before the
row, and are taken at the row in which a contribution arrives.

Source: Agarwal and Duchi (2011) and Stich (2019), sgd; Xie, Koyejo and Gupta (2019),
fed_async; Nguyen et al. (2022), fed_buff; Zheng et al. (2017), compensation; Reddi et
al. (2021), optimizers, in the forms of optax 0.2.8.
"""

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

MEAN_SQUARE_SMALL = 1e-7
"""epsilon of eq. 14 of Zheng et al. (2017)."""

StepSize = float | Callable[[int], float]


class Problem(NamedTuple):
    """Data and loss.

    Attributes:
        features: [N, P + 1], ones in the last column.
        labels: [N], classes from 0; 0 and 1 for one output.
        loss: "softmax", "sigmoid" (one output) or "hinge", which has one output for two
            classes and else one per class.
        l2: the regulariser is l2 / 2 * |w|^2 without the bias column.
    """

    features: np.ndarray
    labels: np.ndarray
    loss: str
    l2: float = 0.0


class Contribution(NamedTuple):
    """What one client computes.

    Attributes:
        client: only a name; the data are addressed by sample id.
        read_version: at most the newest.
        batches: sample ids of each of the Q local steps, perhaps with repeats.
        noise: [C, P + 1], of scale 1; None where none is added.
    """

    client: int
    read_version: int
    batches: Sequence[np.ndarray]
    noise: np.ndarray | None = None


class Row(NamedTuple):
    """Contributions that arrive together; `kind` is "commit" or "contribute"."""

    kind: str
    contributions: Sequence[Contribution] = ()


class Weight(NamedTuple):
    """A staleness weight; of the numbers, each kind uses its own."""

    kind: str = "constant"
    exponent: float = 0.5
    slope: float = 10.0
    late: float = 4.0
    concurrency: int = 0
    smoothness: float = 1.0


class Compensation(NamedTuple):
    """Delay compensation: lambda_0, whether DC-ASGD-a, and its m."""

    strength: float
    adaptive: bool = False
    decay: float = 0.95


class Optimizer(NamedTuple):
    """The server's optimizer.

    Attributes:
        kind: "momentum", "adam", "yogi", "adagrad" or "rmsprop".
        decay: of the momentum, or of the first moment.
        second_decay: of the second moment (adam, yogi, rmsprop).
        small: next to the second moment (not momentum).
            Inside the root for adagrad and rmsprop, as in optax's `scale_by_rss` and
            `scale_by_rms`; beside it for adam and yogi.
        yogi_start: what both moments of yogi start at; optax's default.
    """

    kind: str
    decay: float = 0.9
    second_decay: float = 0.99
    small: float = 1e-3
    yogi_start: float = 1e-6


class Mechanism(NamedTuple):
    """Clipping to `clip_bound`, and noise of multiplier times sensitivity."""

    clip_bound: float
    clip: str = "sample"
    multiplier: float = 0.0


class Options(NamedTuple):
    """The configuration.

    Attributes:
        step_size: of the server for sgd, of the clients for fed_async and fed_buff.
        local_step_size: of the clients for sgd; None for `step_size`.
        server_step_size: of fed_buff.
        mixing: of fed_async.
        proximal: of fed_async.
        weight: None for constant in sgd and (1 + s)^-1/2 in the others.
        compensation: of sgd only.
        optimizer: of sgd and fed_buff.
        mechanism: None for neither clipping nor noise.
    """

    step_size: StepSize
    local_step_size: StepSize | None = None
    server_step_size: StepSize = 1.0
    mixing: float = 0.6
    proximal: float = 0.005
    weight: Weight | None = None
    compensation: Compensation | None = None
    optimizer: Optimizer | None = None
    mechanism: Mechanism | None = None


class RowTrace(NamedTuple):
    """What happened at a row.

    Attributes:
        kind: that of the row.
        step_size: `options.step_size` at this row.
        stalenesses: of each contribution, commits.
        weights: of each contribution, w(s); fed_async mixes with `mixing` times it.
        clipped: mean over contributions of the share of samples that were scaled, or
            the share of contributions; NaN without mechanism or contribution.
        loss: mean over local batches, then over contributions, without regulariser,
            at the models where gradients were taken; NaN without contribution.
    """

    kind: str
    step_size: float
    stalenesses: tuple[int, ...]
    weights: tuple[float, ...]
    clipped: float
    loss: float


class Result(NamedTuple):
    """What a run leaves; `versions` has one more entry than there are commits."""

    versions: list[np.ndarray]
    rows: list[RowTrace]


# Losses


def sample_loss(problem: Problem, w: np.ndarray, sample: int) -> float:
    """Loss of one sample without regulariser."""
    scores = w @ problem.features[sample]
    label = int(problem.labels[sample])
    if problem.loss == "softmax":
        largest = scores.max()
        return float(largest + np.log(np.exp(scores - largest).sum()) - scores[label])
    signs = signs_of(label, len(scores))
    if problem.loss == "sigmoid":
        return float(np.logaddexp(0.0, -signs[0] * scores[0]))
    total = 0.0
    for sign, score in zip(signs, scores, strict=True):
        total += max(0.0, 1.0 - sign * float(score))
    return total


def sample_gradient(problem: Problem, w: np.ndarray, sample: int) -> np.ndarray:
    """A (sub)gradient of `sample_loss`, [C, P + 1]; 0 at the kinks."""
    x = problem.features[sample]
    scores = w @ x
    label = int(problem.labels[sample])
    slopes = np.zeros(len(scores))
    if problem.loss == "softmax":
        exponentials = np.exp(scores - scores.max())
        slopes += exponentials / exponentials.sum()
        slopes[label] -= 1.0
        return np.outer(slopes, x)
    for c, sign in enumerate(signs_of(label, len(scores))):
        if problem.loss == "sigmoid":
            # d/dz ln(1 + e^{-sz}) = -s / (1 + e^{sz}), written without overflow.
            slopes[c] = -sign * math.exp(-np.logaddexp(0.0, sign * scores[c]))
        elif 1.0 - sign * scores[c] > 0.0:
            slopes[c] = -sign
    return np.outer(slopes, x)


def signs_of(label: int, num_outputs: int) -> list[float]:
    """+1 for the own class and else -1; one output stands for class 1."""
    if num_outputs == 1:
        return [1.0 if label == 1 else -1.0]
    return [1.0 if c == label else -1.0 for c in range(num_outputs)]


def penalty_gradient(problem: Problem, w: np.ndarray) -> np.ndarray:
    """Gradient of l2 / 2 * |w|^2 without the bias column, [C, P + 1]."""
    gradient = problem.l2 * w
    gradient[:, -1] = 0.0
    return gradient


def batch_loss(problem: Problem, w: np.ndarray, batch: np.ndarray) -> float:
    """Mean loss of the samples, without regulariser."""
    return sum(sample_loss(problem, w, int(i)) for i in batch) / len(batch)


# Clipping


def clip(gradient: np.ndarray, bound: float) -> tuple[np.ndarray, bool]:
    """Scaled to a norm of at most `bound`, and whether that changed it."""
    norm = math.sqrt(float((gradient**2).sum()))
    return gradient / max(1.0, norm / bound), norm > bound


def mean_gradient(
    problem: Problem, w: np.ndarray, batch: np.ndarray, clip_bound: float | None = None
) -> tuple[np.ndarray, float]:
    """Mean gradient with that of the regulariser, and the share of clipped samples.

    With a `clip_bound`, the gradient of each sample (with that of the regulariser) is
    clipped before the mean.
    """
    total, num_clipped = np.zeros_like(w), 0
    for i in batch:
        one = sample_gradient(problem, w, int(i)) + penalty_gradient(problem, w)
        if clip_bound is not None:
            one, clipped = clip(one, clip_bound)
            num_clipped += int(clipped)
        total += one
    return total / len(batch), num_clipped / len(batch)


# What a client sends


def local_total(
    problem: Problem,
    read: np.ndarray,
    batches: Sequence[np.ndarray],
    local_step_size: float,
    proximal: float = 0.0,
    clip_bound: float | None = None,
) -> tuple[np.ndarray, float, float]:
    """Sum of the gradients of the local steps, mean loss and clipped share.

    `proximal` times the distance to what was read is added to every gradient;
    `clip_bound` is that of the samples.
    """
    y = read.copy()
    total = np.zeros_like(read)
    losses, shares = [], []
    for batch in batches:
        losses.append(batch_loss(problem, y, batch))
        gradient, share = mean_gradient(problem, y, batch, clip_bound)
        gradient = gradient + proximal * (y - read)
        shares.append(share)
        total = total + gradient
        y = y - local_step_size * gradient
    return total, sum(losses) / len(losses), sum(shares) / len(shares)


def send(
    problem: Problem,
    read: np.ndarray,
    contribution: Contribution,
    local_step_size: float,
    proximal: float,
    mechanism: Mechanism | None,
) -> tuple[np.ndarray, float, float]:
    """`local_total`, clipped and noised by the mechanism."""
    batches, noise = contribution.batches, contribution.noise
    if mechanism is None:
        total, loss, _ = local_total(problem, read, batches, local_step_size, proximal)
        return total, loss, math.nan
    bound = mechanism.clip_bound
    if mechanism.clip == "sample":
        total, loss, share = local_total(
            problem, read, batches, local_step_size, proximal, bound
        )
        sensitivity = 2.0 * bound / len(batches[0])
    else:
        total, loss, _ = local_total(problem, read, batches, local_step_size, proximal)
        total, clipped = clip(total, bound)
        share = float(clipped)
        sensitivity = 2.0 * bound
    if noise is not None:
        total = total + mechanism.multiplier * sensitivity * noise
    return total, loss, share


# What the server makes of it


def staleness_weight(weight: Weight, staleness: int, step_size: float) -> float:
    """w(s); `step_size` matters to delay_adaptive only."""
    s = staleness
    if weight.kind == "polynomial":
        return (1.0 + s) ** -weight.exponent
    if weight.kind == "hinge":
        late = s - weight.late
        return 1.0 if late <= 0.0 else 1.0 / (weight.slope * late + 1.0)
    if weight.kind == "inverse":
        return 1.0 / max(1, s)
    if weight.kind == "delay_adaptive":
        curvature = 4.0 * weight.smoothness * s * step_size
        if s <= weight.concurrency or curvature == 0.0:
            return 1.0
        return min(1.0, 1.0 / curvature)
    return 1.0


class Compensator:
    """g + lambda * g * g * (now - read), elementwise.

    Adaptive: lambda = lambda_0 / sqrt(MeanSquare + 1e-7) of the MeanSquare that
    already has this g; several contributions of a commit enter it in their order.

    Source: Zheng et al. (2017), eq. 10 and 14.
    """

    def __init__(self, configuration: Compensation | None):
        self.configuration = configuration
        self.mean_square: np.ndarray | float = 0.0

    def __call__(self, g: np.ndarray, now: np.ndarray, read: np.ndarray) -> np.ndarray:
        c = self.configuration
        if c is None:
            return g
        strength: np.ndarray | float = c.strength
        if c.adaptive:
            self.mean_square = c.decay * self.mean_square + (1.0 - c.decay) * g * g
            strength = c.strength / np.sqrt(self.mean_square + MEAN_SQUARE_SMALL)
        return g + strength * g * g * (now - read)


class ServerOptimizer:
    """The direction that optax's transformation of the same kind makes of another.

    Source: `trace`, `scale_by_adam`, `scale_by_yogi`, `scale_by_rss` (sum from 0) and
    `scale_by_rms` of optax 0.2.8.
    """

    def __init__(self, configuration: Optimizer | None, shape: tuple[int, ...]):
        self.configuration = configuration
        yogi = configuration is not None and configuration.kind == "yogi"
        begin = configuration.yogi_start if configuration and yogi else 0.0
        self.first = np.full(shape, begin)
        self.second = np.full(shape, begin)
        self.count = 0

    def step(self, d: np.ndarray, weights: list[float]) -> np.ndarray:
        """The direction of a mean of contributions that have these weights."""
        c, mean = self.configuration, sum(weights) / len(weights)
        if c is None or c.kind == "momentum" or not mean:
            return self(d)
        return mean * self(d / mean)

    def __call__(self, d: np.ndarray) -> np.ndarray:
        c = self.configuration
        if c is None:
            return d
        self.count += 1
        if c.kind == "momentum":
            self.first = c.decay * self.first + d
            return self.first
        if c.kind == "adagrad":
            self.second = self.second + d * d
            return d / np.sqrt(self.second + c.small)
        if c.kind == "rmsprop":
            self.second = c.second_decay * self.second + (1 - c.second_decay) * d * d
            return d / np.sqrt(self.second + c.small)
        self.first = c.decay * self.first + (1 - c.decay) * d
        if c.kind == "adam":
            self.second = c.second_decay * self.second + (1 - c.second_decay) * d * d
        else:
            sign = np.sign(self.second - d * d)
            self.second = self.second - (1 - c.second_decay) * sign * d * d
        first = self.first / (1.0 - c.decay**self.count)
        second = self.second / (1.0 - c.second_decay**self.count)
        return first / (np.sqrt(second) + c.small)


class Arrival(NamedTuple):
    """A contribution as the server has it."""

    total: np.ndarray
    read: np.ndarray
    staleness: int
    weight: float
    clipped: float
    loss: float


def at(step_size: StepSize, num_commits: int) -> float:
    """The step size after so many commits."""
    return step_size(num_commits) if callable(step_size) else float(step_size)


def receive(
    kind: str,
    problem: Problem,
    contribution: Contribution,
    versions: list[np.ndarray],
    options: Options,
) -> Arrival:
    """Computes a contribution at the version that it read."""
    k = len(versions) - 1
    read = versions[contribution.read_version]
    step_size = at(options.step_size, k)
    local = step_size
    if kind == "sgd" and options.local_step_size is not None:
        local = at(options.local_step_size, k)
    proximal = options.proximal if kind == "fed_async" else 0.0
    total, loss, clipped = send(
        problem, read, contribution, local, proximal, options.mechanism
    )
    weight = options.weight
    if weight is None:
        weight = Weight("constant" if kind == "sgd" else "polynomial")
    staleness = k - contribution.read_version
    factor = staleness_weight(weight, staleness, step_size)
    return Arrival(total, read, staleness, factor, clipped, loss)


def trace_of(row: Row, step_size: float, arrivals: list[Arrival]) -> RowTrace:
    """The trace of a row."""
    n = len(arrivals)
    return RowTrace(
        kind=row.kind,
        step_size=step_size,
        stalenesses=tuple(one.staleness for one in arrivals),
        weights=tuple(one.weight for one in arrivals),
        clipped=sum(one.clipped for one in arrivals) / n if n else math.nan,
        loss=sum(one.loss for one in arrivals) / n if n else math.nan,
    )


def run(
    kind: str,
    problem: Problem,
    program: Sequence[Row],
    start: np.ndarray,
    options: Options,
) -> Result:
    """Executes the rows in their order.

    Args:
        kind: "sgd", "fed_async" or "fed_buff".
        problem: data and loss.
        program: the rows. "contribute" is for fed_buff, of which a commit may have no
            contribution of its own; fed_async has one a commit, sgd one or more.
        start: version 0, [C, P + 1].
        options: the configuration.

    Returns:
        All versions, and what happened at each row.
    """
    versions = [np.array(start, dtype=np.float64)]
    compensate = Compensator(options.compensation)
    optimize = ServerOptimizer(options.optimizer, versions[0].shape)
    buffer, gathered = np.zeros_like(versions[0]), []
    rows = []
    for row in program:
        k = len(versions) - 1
        x, step_size = versions[-1], at(options.step_size, k)
        arrivals = [
            receive(kind, problem, one, versions, options) for one in row.contributions
        ]
        rows.append(trace_of(row, step_size, arrivals))
        if kind == "sgd":
            direction = np.zeros_like(x)
            for one in arrivals:
                direction += one.weight * compensate(one.total, x, one.read)
            weights = [one.weight for one in arrivals]
            way = optimize.step(direction / len(arrivals), weights)
            versions.append(x - step_size * way)
        elif kind == "fed_async":
            (one,) = arrivals
            a = options.mixing * one.weight
            x_client = one.read - step_size * one.total
            versions.append((1.0 - a) * x + a * x_client)
        else:
            for one in arrivals:
                buffer = buffer + one.weight * step_size * one.total
                gathered.append(one.weight)
            if row.kind == "commit":
                server = at(options.server_step_size, k)
                way = optimize.step(buffer / len(gathered), gathered)
                versions.append(x - server * way)
                buffer, gathered = np.zeros_like(x), []
    return Result(versions, rows)
