"""CSGD, ASGD, AUDP and MAPA in slow, plain NumPy: formulas, and stages of a server.

A client takes the mean gradient of its batch at the version that it has read, clips it,
adds noise and sends it. The server applies what arrives, one contribution a commit:

    x_{t+1} = x_t - step_size_t * (clip(gradient(x_read, batch)) + noise)

The paper counts iterations t = 1, 2, ...; here commit t makes version t from version
t - 1, and version 0 is the paper's x_1.

Source: Li, Yang, Ren and Zhao, Asynchronous Federated Learning with Differential
Privacy for Edge Intelligence. Equations, theorems, tables and algorithm lines in the
comments are that paper's; section and M-xx are those of the specification.
"""

import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from tests.reference.server_twin import Chain, Job, Server, clipped, of_batch, step
from tests.reference.server_twin import Stage as ServerStage


class Constants(NamedTuple):
    """The numbers of the formulas; defaults of sections 6 and 7.

    Attributes:
        batch: b.
        sigma: bound on the deviation of a sample's gradient.
        smoothness: L.
        delta: failure probability of Theorem 3, in (0, 1).
        theta: reduction ratio of the sensitivity, in (0, 1).
        radius: R of Theorem 2 and Table II (M-11).
        gap: f(x_1) - f(x*) of eq. (15) (M-04).
        max_staleness: tau_max of the formulas, commits; the paper sets it to the
            number of clients (M-08).
        epsilons: privacy level of an iteration, per client.
        size: numbers of the model.
        noise: "radial_exponential" (B), "spherical_laplace" (A) or "laplace" (C), M-01.
        variance_in_analysis: "law" or "paper", M-02.
        clip: "mean" or "sample", M-03.
        clip_bound: G; the initial sensitivity is 2 G / b. None for eq. (12) (M-10).
        rate: "equation_10" or "equation_11", M-21.
        stage_rule: "theta" or "bound", M-07.
    """

    epsilons: tuple[float, ...] = ()
    size: int = 1
    batch: int = 12
    sigma: float = 30.0
    smoothness: float = 10.0
    delta: float = 1e-3
    theta: float = 0.5
    radius: float = 1.0
    gap: float = 50.0
    max_staleness: int = 5
    noise: str = "radial_exponential"
    variance_in_analysis: str = "law"
    clip: str = "mean"
    clip_bound: float | None = None
    rate: str = "equation_10"
    stage_rule: str = "theta"


class Stage(NamedTuple):
    """A stage of MAPA.

    Attributes:
        number: s, from 1.
        sensitivity: Delta S of the server.
        variance: Delta_b.
        divisor: P of the step.
        length: iterations that the stage lasts.
    """

    number: int
    sensitivity: float
    variance: float
    divisor: float
    length: int


def initial_sensitivity(c: Constants) -> float:
    """Delta S_0 of eq. (12), or 2 G / b of Theorem 1 (M-10, M-27)."""
    if c.clip_bound is not None:
        return 2.0 * c.clip_bound / c.batch
    root = math.sqrt(1.0 - math.sqrt(1.0 - c.delta))
    return 2.0 * c.sigma / (c.batch * root)


def gradient_variance(sensitivity: float, c: Constants) -> float:
    """Delta_b = sigma^2 / b + Delta_0 (section 1; line 16; M-02, M-17)."""
    moments = {  # E |noise|^2 over the scale's square; section 3, M-02
        "radial_exponential": 2,
        "spherical_laplace": c.size * (c.size + 1),
        "laplace": 2 * c.size,
    }
    moment = 2 if c.variance_in_analysis == "paper" else moments[c.noise]  # eq. (8)
    return c.sigma**2 / c.batch + moment * (sensitivity / min(c.epsilons)) ** 2


def stage_of(number: int, sensitivity: float, c: Constants) -> Stage:
    """Lines 6 to 8 and 16 of the server, with P of at least 1 (Table II, M-06)."""
    variance, tau = gradient_variance(sensitivity, c), c.max_staleness + 1
    exact = 8.0 * variance / (tau * (c.batch * sensitivity * c.theta) ** 2)  # eq. (16)
    P = max(exact, 1.0)
    length = 4.0 * P**2 * c.smoothness * tau**2 * c.gap / variance  # eq. (15)
    return Stage(number, sensitivity, variance, P, max(1, math.ceil(length)))


def next_sensitivity(stage: Stage, c: Constants) -> float:
    """Line 15, or 2 sqrt(Delta_s) / b of Table II (M-07)."""
    if c.stage_rule == "theta":
        return c.theta * stage.sensitivity
    # The level that is reached after a stage (section 5).
    level = 2.0 * stage.variance / (stage.divisor * (c.max_staleness + 1))
    return 2.0 * math.sqrt(level) / c.batch


def stages(algorithm: str, c: Constants) -> Iterator[Stage]:
    """Yields the stage of each version: of 0, and of each iteration.

    Line 12 comes before line 15, so that the version that ends a stage has the
    sensitivity of that stage. AUDP never leaves the first.
    """
    stage = stage_of(1, initial_sensitivity(c), c)
    yield stage
    while True:
        for _ in range(stage.length):
            yield stage
        if algorithm == "mapa":
            stage = stage_of(stage.number + 1, next_sensitivity(stage, c), c)


def step_size(algorithm: str, t: int, stage: Stage | None, c: Constants) -> float:
    """gamma_t of Table II, of eq. (11) or of line 7."""
    tau, L = c.max_staleness + 1, c.smoothness
    if stage is None:
        spread = c.sigma / (c.radius * math.sqrt(c.batch))
        curvature = L if algorithm == "csgd" else L * tau**2
        return 1.0 / (curvature + math.sqrt(t + 1) * spread)
    if algorithm == "audp":
        curvature = L * tau if c.rate == "equation_10" else L * (tau**2 + 1)
        return 1.0 / (curvature + math.sqrt(stage.variance + 1.0) * math.sqrt(t))
    return 1.0 / (2.0 * stage.divisor * L * tau)


def work(at: list[Stage], c: Constants) -> ServerStage:
    """The gradient; with stages of versions, clipped and noisy (lines 4 to 7)."""

    def stage(server: Server, jobs: list[Job]) -> None:
        for job in jobs:
            (batch,) = job.batches
            known = at[job.version].sensitivity if at else math.inf
            bound = c.batch * known / 2.0
            by_sample = bound if at and c.clip == "sample" else None
            found = of_batch(server.problem, job.read, batch, by_sample)
            job.loss, job.message, job.clipped = found
            if not at:
                continue
            if c.clip == "mean":
                short = clipped(job.message, bound)
                job.clipped, job.message = float(short is not job.message), short
            assert job.noise is not None
            scale = known / c.epsilons[job.client]
            job.message = job.message + scale * job.noise

    return stage


def chain_of(at: list[Stage], c: Constants) -> Chain:
    """Returns the stages of a server with one contribution a commit (line 11)."""

    def taken(server: Server, jobs: list[Job]) -> None:
        (job,) = jobs
        server.direction = np.array(job.message)

    return Chain([], [work(at, c)], [taken, step()])
