"""CSGD, ASGD, AUDP and MAPA: slow, plain NumPy.

A client reads a version of the server model, takes the mean gradient of its batch
there, clips it, adds noise and sends it. The server applies what arrives, one
contribution a commit, to its newest version:

    x_{t+1} = x_t - step_size_t * (clip(gradient(x_read, batch)) + noise)

The paper counts iterations t = 1, 2, ...; here commit t makes version t from version
t - 1, and version 0 is the paper's x_1. The model is one matrix [P, C], C = 1 for
the logistic loss. There is no bias: the caller appends a constant feature, and says
by `penalised` whether the regulariser counts it.

Source: Li, Yang, Ren and Zhao, Asynchronous Federated Learning with Differential
Privacy for Edge Intelligence. Equations, theorems, tables and algorithm lines in the
comments are that paper's; section and M-xx are those of the specification.
"""

import math
from typing import NamedTuple

import numpy as np

NO_STAGE = 2**31 - 1
"""`stage` of a commit of an algorithm that has none."""


class Constants(NamedTuple):
    """The numbers of the formulas; defaults of sections 6 and 7.

    Attributes:
        batch_size: b.
        sigma: bound on the deviation of a sample's gradient.
        smoothness: L.
        delta: failure probability of Theorem 3, in (0, 1).
        theta: reduction ratio of the sensitivity, in (0, 1).
        radius: R of Theorem 2 and Table II (M-11).
        f_gap: f(x_1) - f(x*) of eq. (15) (M-04).
        max_staleness: tau_max of the formulas, commits; the paper sets it to the
            number of clients (M-08).
        epsilons: privacy level of an iteration, per client; inf for no noise.
    """

    batch_size: int = 12
    sigma: float = 30.0
    smoothness: float = 10.0
    delta: float = 1e-3
    theta: float = 0.5
    radius: float = 1.0
    f_gap: float = 50.0
    max_staleness: int = 5
    epsilons: tuple[float, ...] = (0.1,) * 5


class Options(NamedTuple):
    """The readings; the first word of each is the default of `ambiguities.md`.

    Attributes:
        law: "radial_exp" (B), "gamma" (A) or "iid_laplace" (C), M-01.
        variance_in_analysis: "law" or "paper", M-02.
        clip_mode: "batch" or "sample", M-03.
        clip_bound: G; the initial sensitivity is 2 G / b. None for eq. (12) (M-10).
        audp_rate: "eq10" or "eq11", M-21.
        stage_rule: "theta" or "bound", M-07.
    """

    law: str = "radial_exp"
    variance_in_analysis: str = "law"
    clip_mode: str = "batch"
    clip_bound: float | None = None
    audp_rate: str = "eq10"
    stage_rule: str = "theta"


class Problem(NamedTuple):
    """Data and loss.

    Attributes:
        features: [N, P].
        labels: [N], classes from 0; 0 and 1 for the logistic loss.
        loss: "logistic" or "softmax".
        l2: the regulariser is l2 / 2 * |w|^2.
        penalised: rows of the model that the regulariser counts, bool [P]; None for
            all.
    """

    features: np.ndarray
    labels: np.ndarray
    loss: str
    l2: float = 1e-4
    penalised: np.ndarray | None = None


class Row(NamedTuple):
    """One commit.

    Attributes:
        client: from 0; indexes `epsilons`.
        read_version: version the gradient is taken at, at most the newest.
        sample_ids: b of them, perhaps with repeats.
        noise: [P, C], of scale 1: times sensitivity / epsilon of the client; None where
            there is none.
    """

    client: int
    read_version: int
    sample_ids: np.ndarray
    noise: np.ndarray | None = None


class Stage(NamedTuple):
    """A stage of MAPA.

    Attributes:
        number: s, from 1.
        sensitivity: Delta S of the server.
        variance: Delta_b.
        divisor: P of the step.
        step_size: gamma.
        exact_length: T_s before rounding.
        length: iterations that the stage lasts.
    """

    number: int
    sensitivity: float
    variance: float
    divisor: float
    step_size: float
    exact_length: float
    length: int


class Commit(NamedTuple):
    """What happened at iteration t.

    Attributes:
        stage: of the server; `NO_STAGE` unless the algorithm is MAPA.
        sensitivity: of the server now; NaN without privacy.
        num_clipped: samples, or 0 and 1 if the batch mean is clipped.
        noise_norm: of what was added.
    """

    t: int
    client: int
    stage: int
    step_size: float
    sensitivity: float
    num_clipped: int
    noise_norm: float


class Trace(NamedTuple):
    """What a run leaves; `versions` has one more entry than `commits`."""

    versions: list[np.ndarray]
    commits: list[Commit]
    stages: list[Stage]


# Losses (section 9)


def sample_loss(problem: Problem, w: np.ndarray, sample: int) -> float:
    """Loss of one sample without regulariser."""
    scores = problem.features[sample] @ w
    label = int(problem.labels[sample])
    if problem.loss == "logistic":
        sign = 1.0 if label == 1 else -1.0
        return float(np.logaddexp(0.0, -sign * scores[0]))
    largest = scores.max()
    return float(largest + np.log(np.exp(scores - largest).sum()) - scores[label])


def sample_gradient(problem: Problem, w: np.ndarray, sample: int) -> np.ndarray:
    """Gradient of `sample_loss`, [P, C]."""
    x = problem.features[sample]
    scores = x @ w
    label = int(problem.labels[sample])
    slopes = np.zeros(len(scores))
    if problem.loss == "logistic":
        sign = 1.0 if label == 1 else -1.0
        # d/dz ln(1 + e^{-sz}) = -s / (1 + e^{sz}), written without overflow.
        slopes[0] = -sign * math.exp(-np.logaddexp(0.0, sign * scores[0]))
    else:
        exponentials = np.exp(scores - scores.max())
        slopes += exponentials / exponentials.sum()
        slopes[label] -= 1.0
    return np.outer(x, slopes)


def penalty_gradient(problem: Problem, w: np.ndarray) -> np.ndarray:
    """Gradient of l2 / 2 * |w|^2 over the penalised rows, [P, C]."""
    gradient = problem.l2 * w
    if problem.penalised is not None:
        gradient[~problem.penalised] = 0.0
    return gradient


def objective(problem: Problem, w: np.ndarray, sample_ids: np.ndarray) -> float:
    """Mean loss of the samples, with regulariser (eq. 1)."""
    total = sum(sample_loss(problem, w, int(i)) for i in sample_ids)
    penalised = w if problem.penalised is None else w[problem.penalised]
    return total / len(sample_ids) + problem.l2 / 2.0 * float((penalised**2).sum())


def mean_gradient(
    problem: Problem, w: np.ndarray, sample_ids: np.ndarray
) -> np.ndarray:
    """g_t(B), the gradient of `objective` (section 1), [P, C]."""
    total = np.zeros_like(w)
    for i in sample_ids:
        total += sample_gradient(problem, w, int(i))
    return total / len(sample_ids) + penalty_gradient(problem, w)


# Clipping (Algorithm 1, edge, line 5)


def clip(gradient: np.ndarray, bound: float) -> tuple[np.ndarray, bool]:
    """Divides by max(1, norm / bound)."""
    norm = math.sqrt(float((gradient**2).sum()))
    return gradient / max(1.0, norm / bound), norm > bound


def clipped_gradient(
    problem: Problem,
    w: np.ndarray,
    sample_ids: np.ndarray,
    bound: float,
    options: Options,
) -> tuple[np.ndarray, int]:
    """The mean gradient with line 5 applied to it or to its samples (M-03)."""
    penalty = penalty_gradient(problem, w)
    total, num_clipped = np.zeros_like(w), 0
    for i in sample_ids:
        one = sample_gradient(problem, w, int(i)) + penalty
        if options.clip_mode == "sample":
            one, clipped = clip(one, bound)
            num_clipped += int(clipped)
        total += one
    mean = total / len(sample_ids)
    if options.clip_mode == "batch":
        mean, clipped = clip(mean, bound)
        num_clipped = int(clipped)
    return mean, num_clipped


# Noise (section 3)


def second_moment(law: str, size: int, scale: float) -> float:
    """E |noise|^2: 2 s^2 (B), d (d + 1) s^2 (A), 2 d s^2 (C); section 3, M-02."""
    factor = {"radial_exp": 2, "gamma": size * (size + 1), "iid_laplace": 2 * size}
    return factor[law] * scale**2


# Formulas


def theorem_1_sensitivity(gradient_bound: float, batch_size: int) -> float:
    """Delta S = 2 G / b (Theorem 1)."""
    return 2.0 * gradient_bound / batch_size


def clip_bound_of(sensitivity: float, batch_size: int) -> float:
    """G = b Delta S / 2 (line 5)."""
    return batch_size * sensitivity / 2.0


def initial_sensitivity(c: Constants, options: Options) -> float:
    """Delta S_0 of eq. (12), or 2 G / b of a given clip bound (M-10, M-27)."""
    if options.clip_bound is not None:
        return theorem_1_sensitivity(options.clip_bound, c.batch_size)
    root = math.sqrt(1.0 - math.sqrt(1.0 - c.delta))
    return 2.0 * c.sigma / (c.batch_size * root)


def gradient_variance(
    sensitivity: float, size: int, c: Constants, options: Options
) -> float:
    """Delta_b = sigma^2 / b + Delta_0 (section 1; line 16; M-02, M-17)."""
    scale = sensitivity / min(c.epsilons)
    if options.variance_in_analysis == "paper":
        noise = 2.0 * scale**2  # eq. (8)
    else:
        noise = second_moment(options.law, size, scale)
    return c.sigma**2 / c.batch_size + noise


def csgd_step_size(t: int, c: Constants) -> float:
    """Table II: 1 / (L + sqrt(t + 1) sigma / (R sqrt(b)))."""
    spread = c.sigma / (c.radius * math.sqrt(c.batch_size))
    return 1.0 / (c.smoothness + math.sqrt(t + 1) * spread)


def asgd_step_size(t: int, c: Constants) -> float:
    """Table II: 1 / (L (tau_max + 1)^2 + sqrt(t + 1) sigma / (R sqrt(b)))."""
    spread = c.sigma / (c.radius * math.sqrt(c.batch_size))
    curvature = c.smoothness * (c.max_staleness + 1) ** 2
    return 1.0 / (curvature + math.sqrt(t + 1) * spread)


def audp_step_size(t: int, variance: float, c: Constants, rate: str = "eq10") -> float:
    """Eq. (10), which is Table II, or eq. (11)."""
    curvature = c.smoothness * (c.max_staleness + 1)
    if rate == "eq11":
        curvature = c.smoothness * ((c.max_staleness + 1) ** 2 + 1)
    return 1.0 / (curvature + math.sqrt(variance + 1.0) * math.sqrt(t))


def exact_divisor(sensitivity: float, variance: float, c: Constants) -> float:
    """P of eq. (16) with equality."""
    denominator = (c.max_staleness + 1) * (c.batch_size * sensitivity * c.theta) ** 2
    return 8.0 * variance / denominator


def constant_step_size(divisor: float, c: Constants) -> float:
    """Line 7: 1 / (2 P L (tau_max + 1)); eq. (13) holds if P >= 1."""
    return 1.0 / (2.0 * divisor * c.smoothness * (c.max_staleness + 1))


def exact_stage_length(divisor: float, variance: float, c: Constants) -> float:
    """T_0 of eq. (15)."""
    steps = 4.0 * divisor**2 * c.smoothness * (c.max_staleness + 1) ** 2
    return steps * c.f_gap / variance


def squared_gradient_level(divisor: float, variance: float, c: Constants) -> float:
    """2 Delta_b / (P (tau_max + 1)), reached after T_0 iterations (section 5)."""
    return 2.0 * variance / (divisor * (c.max_staleness + 1))


def next_sensitivity(stage: Stage, c: Constants, options: Options) -> float:
    """Line 15, or 2 sqrt(Delta_s) / b of Table II (M-07)."""
    if options.stage_rule == "theta":
        return c.theta * stage.sensitivity
    level = squared_gradient_level(stage.divisor, stage.variance, c)
    return 2.0 * math.sqrt(level) / c.batch_size


def make_stage(
    number: int, sensitivity: float, size: int, c: Constants, options: Options
) -> Stage:
    """Lines 6 to 8 and 16 of the server."""
    variance = gradient_variance(sensitivity, size, c, options)
    clamped = max(exact_divisor(sensitivity, variance, c), 1.0)  # Table II, M-06
    exact_length = exact_stage_length(clamped, variance, c)
    return Stage(
        number=number,
        sensitivity=sensitivity,
        variance=variance,
        divisor=clamped,
        step_size=constant_step_size(clamped, c),
        exact_length=exact_length,
        length=max(1, math.ceil(exact_length)),
    )


def following_stage(stage: Stage, size: int, c: Constants, options: Options) -> Stage:
    """The stage after `stage`."""
    sensitivity = next_sensitivity(stage, c, options)
    return make_stage(stage.number + 1, sensitivity, size, c, options)


# The algorithms (sections 2, 6 and 7)


def run(
    algorithm: str,
    problem: Problem,
    rows: list[Row],
    weights: np.ndarray,
    c: Constants,
    options: Options = Options(),  # noqa: B008
) -> Trace:
    """Applies the rows in their order.

    Args:
        algorithm: "csgd", "asgd", "audp" or "mapa".
        problem: data and loss.
        rows: the commits.
        weights: version 0, [P, C].
        c: numbers of the formulas.
        options: the readings.

    Returns:
        The trace.
    """
    size = weights.size
    private = algorithm in ("audp", "mapa")
    sensitivity = initial_sensitivity(c, options) if private else math.nan
    # Line 4. AUDP keeps its sensitivity, so that it never leaves what is stage 1 here.
    stage = make_stage(1, sensitivity, size, c, options) if private else None
    stages = [stage] if algorithm == "mapa" else []
    versions, sent = [np.array(weights, dtype=np.float64)], [sensitivity]
    commits, t_s = [], 1

    for t, row in enumerate(rows, start=1):
        if algorithm == "mapa" and t_s > stage.length:  # lines 10, 15, 16, 6 to 9
            stage = following_stage(stage, size, c, options)
            stages.append(stage)
            t_s = 1
        w = versions[row.read_version]

        # Lines 4 to 7 of the edge, with the sensitivity that came with the model.
        gradient = mean_gradient(problem, w, row.sample_ids)
        num_clipped = 0
        noise = np.zeros_like(w)
        if private:
            known = sent[row.read_version]
            scale = known / c.epsilons[row.client]
            bound = clip_bound_of(known, c.batch_size)
            gradient, num_clipped = clipped_gradient(
                problem, w, row.sample_ids, bound, options
            )
            if row.noise is not None:
                noise = scale * row.noise

        gamma = step_size_at(algorithm, t, stage, c, options)
        versions.append(versions[-1] - gamma * (gradient + noise))  # line 11
        commits.append(
            Commit(
                t=t,
                client=row.client,
                stage=stage.number if algorithm == "mapa" else NO_STAGE,
                step_size=gamma,
                sensitivity=stage.sensitivity if private else math.nan,
                num_clipped=num_clipped,
                noise_norm=float(np.linalg.norm(noise)),
            )
        )
        # Line 12 comes before line 15, so that the model that ends a stage carries
        # the sensitivity of that stage.
        reply = stage.sensitivity if private else math.nan
        sent.append(reply)
        t_s += 1  # line 13

    return Trace(versions, commits, stages)


def step_size_at(
    algorithm: str, t: int, stage: Stage | None, c: Constants, options: Options
) -> float:
    """gamma_t of Table II."""
    if algorithm == "csgd":
        return csgd_step_size(t, c)
    if algorithm == "asgd":
        return asgd_step_size(t, c)
    if algorithm == "audp":
        return audp_step_size(t, stage.variance, c, options.audp_rate)
    return stage.step_size
