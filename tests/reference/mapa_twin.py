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
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

ALGORITHMS = ("csgd", "asgd", "audp", "mapa")
LOSSES = ("logistic", "softmax", "ovr_hinge", "crammer_singer")
LAWS = ("radial_exp", "gamma", "iid_laplace")
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
        noise_unit: of the noise in the rows: "absolute", or "scale" if it is to be
            multiplied by sensitivity / epsilon of its client.
        noised: coordinates that get noise, bool [P, C]; None for all (M-14).
        clip_mode: "batch" or "sample", M-03.
        clip_scope: "noised" or "all": what the clip norm is taken of, and what is
            scaled (M-14).
        clip_regulariser: whether the clipped vector contains l2 * w.
        clip_bound: G; the initial sensitivity is 2 G / b. None for eq. (12) (M-10).
        audp_rate: "eq10" or "eq11", M-21.
        clamp: "both", "step_only" or "none", M-06.
        rounding: "ceil" or "floor1", M-05.
        stage_rule: "theta" or "bound", M-07.
        reply: sensitivity sent with the model that ends a stage: "old", which is the
            order of lines 12 and 15, or "new".
        step_size: of iteration t = 1, 2, ..., in place of the algorithm's.
    """

    law: str = "radial_exp"
    variance_in_analysis: str = "law"
    noise_unit: str = "absolute"
    noised: np.ndarray | None = None
    clip_mode: str = "batch"
    clip_scope: str = "noised"
    clip_regulariser: bool = True
    clip_bound: float | None = None
    audp_rate: str = "eq10"
    clamp: str = "both"
    rounding: str = "ceil"
    stage_rule: str = "theta"
    reply: str = "old"
    step_size: Callable[[int], float] | None = None


WORDS = {
    "law": LAWS,
    "variance_in_analysis": ("law", "paper"),
    "noise_unit": ("absolute", "scale"),
    "clip_mode": ("batch", "sample"),
    "clip_scope": ("noised", "all"),
    "audp_rate": ("eq10", "eq11"),
    "clamp": ("both", "step_only", "none"),
    "rounding": ("ceil", "floor1"),
    "stage_rule": ("theta", "bound"),
    "reply": ("old", "new"),
}


class Problem(NamedTuple):
    """Data and loss.

    Attributes:
        features: [N, P].
        labels: [N], classes from 0; 0 and 1 for the logistic loss.
        loss: one of `LOSSES`.
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
        noise: [P, C], zero where not noised; None where there is none.
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
        staleness: commits between read and application.
        stage: of the server; `NO_STAGE` unless the algorithm is MAPA.
        sensitivity: of the server now; NaN without privacy.
        client_sensitivity: the one that clipped and scaled this contribution.
        noise_scale: client_sensitivity / epsilon; NaN without privacy.
        gradient_norm: of the batch mean before clipping, all coordinates.
        num_clipped: samples, or 0 and 1 if the batch mean is clipped.
        noise_norm: of what was added.
        loss: batch mean at the version read, with regulariser.
    """

    t: int
    client: int
    staleness: int
    stage: int
    step_size: float
    sensitivity: float
    client_sensitivity: float
    noise_scale: float
    gradient_norm: float
    num_clipped: int
    noise_norm: float
    loss: float


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
    if problem.loss == "softmax":
        largest = scores.max()
        return float(largest + np.log(np.exp(scores - largest).sum()) - scores[label])
    if problem.loss == "ovr_hinge":
        # M-13: one binary hinge per class, summed.
        total = 0.0
        for c, score in enumerate(scores):
            sign = 1.0 if c == label else -1.0
            total += max(0.0, 1.0 - sign * float(score))
        return total
    rival = strongest_rival(scores, label)
    return max(0.0, 1.0 + float(scores[rival] - scores[label]))


def sample_gradient(problem: Problem, w: np.ndarray, sample: int) -> np.ndarray:
    """A (sub)gradient of `sample_loss`, [P, C]; 0 at the kinks (M-13)."""
    x = problem.features[sample]
    scores = x @ w
    label = int(problem.labels[sample])
    slopes = np.zeros(len(scores))
    if problem.loss == "logistic":
        sign = 1.0 if label == 1 else -1.0
        # d/dz ln(1 + e^{-sz}) = -s / (1 + e^{sz}), written without overflow.
        slopes[0] = -sign * math.exp(-np.logaddexp(0.0, sign * scores[0]))
    elif problem.loss == "softmax":
        exponentials = np.exp(scores - scores.max())
        slopes += exponentials / exponentials.sum()
        slopes[label] -= 1.0
    elif problem.loss == "ovr_hinge":
        for c, score in enumerate(scores):
            sign = 1.0 if c == label else -1.0
            if 1.0 - sign * score > 0.0:
                slopes[c] = -sign
    else:
        rival = strongest_rival(scores, label)
        if 1.0 + scores[rival] - scores[label] > 0.0:
            slopes[rival] += 1.0
            slopes[label] -= 1.0
    return np.outer(x, slopes)


def strongest_rival(scores: np.ndarray, label: int) -> int:
    """The class other than `label` with the largest score; the first of equals."""
    rivals = [c for c in range(len(scores)) if c != label]
    return max(rivals, key=lambda c: scores[c])


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


def clip(
    gradient: np.ndarray, bound: float, scope: np.ndarray
) -> tuple[np.ndarray, bool]:
    """Divides the entries in `scope` by max(1, norm / bound), their own norm."""
    norm = math.sqrt(float((gradient[scope] ** 2).sum()))
    clipped = gradient.copy()
    clipped[scope] = gradient[scope] / max(1.0, norm / bound)
    return clipped, norm > bound


def clipped_gradient(
    problem: Problem,
    w: np.ndarray,
    sample_ids: np.ndarray,
    bound: float,
    options: Options,
) -> tuple[np.ndarray, int]:
    """The mean gradient with line 5 applied to it or to its samples (M-03)."""
    scope = np.ones(w.shape, dtype=bool)
    if options.clip_scope == "noised" and options.noised is not None:
        scope = options.noised
    penalty = penalty_gradient(problem, w)
    inside = penalty if options.clip_regulariser else np.zeros_like(w)
    outside = penalty - inside
    total, num_clipped = np.zeros_like(w), 0
    for i in sample_ids:
        one = sample_gradient(problem, w, int(i)) + inside
        if options.clip_mode == "sample":
            one, clipped = clip(one, bound, scope)
            num_clipped += int(clipped)
        total += one
    mean = total / len(sample_ids)
    if options.clip_mode == "batch":
        mean, clipped = clip(mean, bound, scope)
        num_clipped = int(clipped)
    return mean + outside, num_clipped


# Noise (section 3)


def unit_noise(law: str, size: int, generator: np.random.Generator) -> np.ndarray:
    """A draw of scale 1, [size]; times sensitivity / epsilon it is the noise."""
    if law == "iid_laplace":  # reading C
        return generator.laplace(size=size)
    normal = generator.normal(size=size)
    # Radius Gamma(d, 1) in reading A, Exponential(1) in reading B.
    radius = generator.gamma(size if law == "gamma" else 1.0)
    return radius * normal / np.linalg.norm(normal)


def second_moment(law: str, size: int, scale: float) -> float:
    """E |noise|^2: 2 s^2 (B), d (d + 1) s^2 (A), 2 d s^2 (C); section 3, M-02."""
    factor = {"radial_exp": 2, "gamma": size * (size + 1), "iid_laplace": 2 * size}
    return factor[law] * scale**2


def guaranteed_epsilon(law: str, size: int, epsilon: float) -> float:
    """What an l2 sensitivity and noise scaled for `epsilon` give (section 3)."""
    if law == "iid_laplace":
        return math.sqrt(size) * epsilon
    return epsilon if law == "gamma" or size == 1 else math.inf


def log_density_ratio(
    law: str, noise: np.ndarray, shift: np.ndarray, scale: float
) -> float:
    """ln h(noise) / h(noise + shift): noise = v - g, shift = g - g' (section 3)."""
    moved = noise + shift
    if law == "iid_laplace":
        return float(np.abs(moved).sum() - np.abs(noise).sum()) / scale
    near, far = float(np.linalg.norm(noise)), float(np.linalg.norm(moved))
    ratio = (far - near) / scale
    if law == "radial_exp":
        ratio += (len(noise) - 1) * math.log(far / near)
    return ratio


# Formulas


def theorem_1_sensitivity(gradient_bound: float, batch_size: int) -> float:
    """Delta S = 2 G / b (Theorem 1)."""
    return 2.0 * gradient_bound / batch_size


def clip_bound_of(sensitivity: float, batch_size: int) -> float:
    """G = b Delta S / 2 (line 5)."""
    return batch_size * sensitivity / 2.0


def equation_12_holds(sensitivity: float, c: Constants) -> bool:
    """The left side of eq. (12), with the probability in it not negative."""
    tail = 4.0 * c.sigma**2 / (c.batch_size**2 * sensitivity**2)
    return tail <= 1.0 and (1.0 - tail) ** 2 >= 1.0 - c.delta


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
    exact = exact_divisor(sensitivity, variance, c)
    clamped = max(exact, 1.0)  # Table II
    of_step = exact if options.clamp == "none" else clamped
    of_length = clamped if options.clamp == "both" else exact
    exact_length = exact_stage_length(of_length, variance, c)
    round_ = math.ceil if options.rounding == "ceil" else math.floor
    return Stage(
        number=number,
        sensitivity=sensitivity,
        variance=variance,
        divisor=of_step,
        step_size=constant_step_size(of_step, c),
        exact_length=exact_length,
        length=max(1, round_(exact_length)),
    )


def following_stage(stage: Stage, size: int, c: Constants, options: Options) -> Stage:
    """The stage after `stage`."""
    sensitivity = next_sensitivity(stage, c, options)
    return make_stage(stage.number + 1, sensitivity, size, c, options)


def stage_table(
    num_commits: int, size: int, c: Constants, options: Options
) -> list[Stage]:
    """The stages that `num_commits` iterations enter, with `size` noised entries."""
    stages = [make_stage(1, initial_sensitivity(c, options), size, c, options)]
    while sum(stage.length for stage in stages) < num_commits:
        stages.append(following_stage(stages[-1], size, c, options))
    return stages


def theorem_2_bound(
    num_commits: int,
    variance: float,
    gradient_bound: float,
    c: Constants,
    last_term: str = "printed",
) -> float:
    """Bound on E f(x_ave(T)) - f(x*); "by_parts" has R^2 / gamma_1 over T (M-26)."""
    T, tau, R = num_commits, c.max_staleness, c.radius
    root = math.sqrt(variance + 1.0)
    first = R * gradient_bound * tau / T
    ratio = c.smoothness * (variance + gradient_bound**2) / (2.0 * (variance + 1.0))
    second = ratio * (tau + 1) ** 2 * math.log(T) / T
    start = R**2 / audp_step_size(1, variance, c)
    over = T if last_term == "by_parts" else math.sqrt(T)
    return first + second + (4 + R**2) * root / (2 * math.sqrt(T)) + start / (2 * over)


def theorem_4_bound(
    num_commits: int, step_size: float, variance: float, c: Constants
) -> float:
    """Right side of eq. (14), on the mean squared gradient norm."""
    descent = 2.0 * c.f_gap / (num_commits * step_size)
    return descent + 2.0 * variance * c.smoothness * step_size


def equation_11_condition(t: int, variance: float, c: Constants, rate: str) -> float:
    """gamma - L gamma^2 - L (tau_max + 1)^2 gamma^2, >= 0 under eq. (11) (M-21)."""
    gamma = audp_step_size(t, variance, c, rate)
    return gamma - c.smoothness * gamma**2 * (1 + (c.max_staleness + 1) ** 2)


def basic_composition(clients: list[int], epsilons: tuple[float, ...]) -> float:
    """Sum of the epsilons of the iterations (section 6)."""
    return sum(epsilons[client] for client in clients)


def parallel_composition(clients: list[int], epsilons: tuple[float, ...]) -> float:
    """The largest sum of a client: each is charged for its own iterations (M-16)."""
    own = []
    for k, epsilon in enumerate(epsilons):
        own.append(epsilon * sum(1 for client in clients if client == k))
    return max(own)


def advanced_composition(num_commits: int, epsilon: float, slack: float) -> float:
    """eps sqrt(2 T ln(1 / slack)) + T eps (e^eps - 1) (M-16)."""
    spread = epsilon * math.sqrt(2.0 * num_commits * math.log(1.0 / slack))
    return spread + num_commits * epsilon * math.expm1(epsilon)


# Delays (section 8)


def cyclic_reads(num_clients: int, num_commits: int, lag: int) -> list[tuple[int, int]]:
    """Client and read version of each commit of the cyclic delayed method.

    Args:
        num_clients: K, in fixed order.
        num_commits: T.
        lag: staleness once everybody has had a turn: K - 1, which is round-robin, or
            K, which is tau_max (M-08).

    Returns:
        Per commit, the client, from 0, and the version it read.
    """
    return [(k % num_clients, max(0, k - lag)) for k in range(num_commits)]


def iterations_to_threshold(
    losses: list[float], threshold: float, window: int = 5
) -> int | None:
    """Iterations until the mean of `window` successive losses is below (M-19)."""
    for t in range(window, len(losses) + 1):
        if sum(losses[t - window : t]) / window < threshold:
            return t
    return None


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
        algorithm: one of `ALGORITHMS`.
        problem: data and loss.
        rows: the commits.
        weights: version 0, [P, C].
        c: numbers of the formulas.
        options: the readings.

    Returns:
        The trace.

    Raises:
        ValueError: an unknown word, or a row that the algorithm cannot have.
    """
    check_words(algorithm, problem, options)
    noised = np.ones(weights.shape, dtype=bool)
    if options.noised is not None:
        noised = options.noised
    size = int(noised.sum())
    private = algorithm in ("audp", "mapa")
    sensitivity = initial_sensitivity(c, options) if private else math.nan
    # Line 4. AUDP keeps its sensitivity, so that it never leaves what is stage 1 here.
    stage = make_stage(1, sensitivity, size, c, options) if private else None
    stages = [stage] if algorithm == "mapa" else []
    versions, sent = [np.array(weights, dtype=np.float64)], [sensitivity]
    commits, t_s = [], 1

    for t, row in enumerate(rows, start=1):
        check_row(algorithm, t, row, noised, c)
        if algorithm == "mapa" and t_s > stage.length:  # lines 10, 15, 16, 6 to 9
            stage = following_stage(stage, size, c, options)
            stages.append(stage)
            t_s = 1
        w = versions[row.read_version]

        # Lines 4 to 7 of the edge, with the sensitivity that came with the model.
        gradient = mean_gradient(problem, w, row.sample_ids)
        norm, num_clipped, scale = float(np.linalg.norm(gradient)), 0, math.nan
        noise = np.zeros_like(w)
        if private:
            known = sent[row.read_version]
            scale = known / c.epsilons[row.client]
            bound = clip_bound_of(known, c.batch_size)
            gradient, num_clipped = clipped_gradient(
                problem, w, row.sample_ids, bound, options
            )
            if row.noise is not None:
                unit = scale if options.noise_unit == "scale" else 1.0
                noise = unit * row.noise

        gamma = step_size_at(algorithm, t, stage, c, options)
        versions.append(versions[-1] - gamma * (gradient + noise))  # line 11
        commits.append(
            Commit(
                t=t,
                client=row.client,
                staleness=t - 1 - row.read_version,
                stage=stage.number if algorithm == "mapa" else NO_STAGE,
                step_size=gamma,
                sensitivity=stage.sensitivity if private else math.nan,
                client_sensitivity=sent[row.read_version],
                noise_scale=scale,
                gradient_norm=norm,
                num_clipped=num_clipped,
                noise_norm=float(np.linalg.norm(noise)),
                loss=objective(problem, w, row.sample_ids),
            )
        )
        # Line 12 comes before line 15, so that the model that ends a stage carries
        # the sensitivity of that stage.
        reply = stage.sensitivity if private else math.nan
        if algorithm == "mapa" and options.reply == "new" and t_s == stage.length:
            reply = next_sensitivity(stage, c, options)
        sent.append(reply)
        t_s += 1  # line 13

    return Trace(versions, commits, stages)


def step_size_at(
    algorithm: str, t: int, stage: Stage | None, c: Constants, options: Options
) -> float:
    """gamma_t of Table II, unless it is given."""
    if options.step_size is not None:
        return options.step_size(t)
    if algorithm == "csgd":
        return csgd_step_size(t, c)
    if algorithm == "asgd":
        return asgd_step_size(t, c)
    if algorithm == "audp":
        return audp_step_size(t, stage.variance, c, options.audp_rate)
    return stage.step_size


def check_words(algorithm: str, problem: Problem, options: Options) -> None:
    """Raises on a word that nobody knows."""
    if algorithm not in ALGORITHMS:
        raise ValueError(f"algorithm must be one of {ALGORITHMS}, got {algorithm!r}")
    if problem.loss not in LOSSES:
        raise ValueError(f"loss must be one of {LOSSES}, got {problem.loss!r}")
    for name, words in WORDS.items():
        word = getattr(options, name)
        if word not in words:
            raise ValueError(f"{name} must be one of {words}, got {word!r}")


def check_row(
    algorithm: str, t: int, row: Row, noised: np.ndarray, c: Constants
) -> None:
    """Raises on a row that the algorithm cannot have."""
    if not 0 <= row.read_version < t:
        raise ValueError(f"read_version must be in 0..{t - 1}, got {row.read_version}")
    if algorithm == "csgd" and row.read_version != t - 1:
        raise ValueError(
            f"read_version must be {t - 1} in csgd, which has no delay, "
            f"got {row.read_version}"
        )
    if len(row.sample_ids) != c.batch_size:
        raise ValueError(
            f"sample_ids must be {c.batch_size} long, got {len(row.sample_ids)}"
        )
    if algorithm in ("csgd", "asgd"):
        if row.noise is not None:
            raise ValueError(f"noise must be None in {algorithm}, got an array")
    elif row.noise is None:
        if not math.isinf(c.epsilons[row.client]):
            raise ValueError("noise must be an array at a finite epsilon, got None")
    elif row.noise.shape != noised.shape or np.any(row.noise[~noised] != 0.0):
        raise ValueError(
            f"noise must be {noised.shape} and zero where not noised, "
            f"got {row.noise.shape}"
        )
