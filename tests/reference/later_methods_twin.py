"""Slow twins of FADAS, THROTTLE, ATA, Picky SGD and asynchronous DiLoCo.

Written from methods.md alone, sections 10, 12 and 16, like `methods_twin`, on whose
tiny world they run. A job's `gradient` is all that the client sends.
"""

import math
from collections.abc import Sequence

import numpy as np

from tests.reference.methods_twin import (
    Run,
    Source,
    Vector,
    World,
    everyone,
    sum_of,
)


def fadas(
    world: World,
    M: int,
    eta: float,
    tau_c: int,
    betas: tuple[float, float],
    eps: float,
) -> Run:
    """A buffer of M, AMSGrad of its mean, shorter steps if it is stale. Section 12."""
    run = everyone(world)
    first, second = betas
    m = v = most = np.zeros_like(run.x)
    got: list[tuple[Source, Vector]] = []
    for job in run.arrivals():
        got.append((job.source, run.gradient(job)))
        if len(got) == M:
            mean = sum_of(got) / M
            m = first * m + (1 - first) * mean
            v = second * v + (1 - second) * mean**2
            most = np.maximum(most, v)
            tau = max(run.version - source.read_version for source, _ in got)
            step = eta if tau <= tau_c else min(eta, 1.0 / tau)
            way = m / (np.sqrt(most) + eps)
            run.commit(step * way, [source for source, _ in got])
            got = []
        run.begin([job.source.client])
    return run


def weighted_directions(
    world: World, M: int, eta: float, exponent: float, beta: float | None = None
) -> Run:
    """Steps of fixed size, weighted by staleness: signs, or a second moment's root.

    The direction is made of the mean of M contributions by their weights; the step is
    eta times the mean of the weights, as FADAS scales its learning rate.
    """
    run = everyone(world)
    v = np.zeros_like(run.x)
    got: list[tuple[Source, Vector, float]] = []
    for job in run.arrivals():
        weight = (1.0 + run.version - job.source.read_version) ** -exponent
        got.append((job.source, run.gradient(job), weight))
        if len(got) == M:
            whole = sum(weight for *_, weight in got)
            mean = sum_of([(s, weight * g) for s, g, weight in got]) / whole
            if beta is None:
                way = np.sign(mean)
            else:
                v = beta * v + (1 - beta) * mean**2
                way = mean / np.sqrt(v + 1e-8)
            run.commit(eta * whole / M * way, [source for source, *_ in got])
            got = []
        run.begin([job.source.client])
    return run


def throttle(world: World, q: float, gamma: float) -> Run:
    """Each arrival is a step, a repeat one over q less; then all restart. Section 12.

    The c-th repeat of a client in a round weighs 1 / (n q^c). A round is over as soon
    as everyone has reported: all jobs are stopped, and everyone begins anew.
    """
    n, run = world.num_clients, everyone(world)
    repeats = dict.fromkeys(range(n), -1)
    for job in run.arrivals():
        i = job.source.client
        repeats[i] += 1
        weight = 1.0 / (n * q ** repeats[i])
        run.commit(gamma * weight * run.gradient(job), [job.source])
        idle = [i]
        if min(repeats.values()) >= 0:
            idle += run.stop(run.flying)
            repeats = dict.fromkeys(range(n), -1)
        run.begin(idle)
    return run


def batches_by_start(world: World, B: int, gamma: float) -> Run:
    """Mean of B gradients whose computing began in the current batch. Section 12.

    What began in an earlier batch is ignored. A model that was on its way when the
    batch began counts, although it is of an earlier version.
    """
    run = everyone(world)
    since, got = 0.0, []
    for job in run.arrivals():
        if job.started_s >= since:
            got.append((job.source, run.gradient(job)))
        else:
            run.lose(job.source, "rejected")
        if len(got) == B:
            run.commit(gamma * sum_of(got) / B, [source for source, _ in got])
            since, got = run.time_s, []
        run.begin([job.source.client])
    return run


def allotment(lower: Sequence[float], seen: Sequence[int], B: int) -> list[int]:
    """Returns numbers of jobs with sum B and the least max_i a_i s_i. Section 12, ATA.

    One job after the other goes where it would be over first. Of those alike: the
    client with fewer jobs, then with fewer observations, then of lower number.
    """
    jobs = [0] * len(lower)
    for _ in range(B):
        key = [
            ((jobs[i] + 1) * lower[i], jobs[i], seen[i], i) for i in range(len(jobs))
        ]
        jobs[min(key)[-1]] += 1
    return jobs


def ata(world: World, B: int, alpha: float, gamma: float) -> Run:
    """B jobs a round, allotted by lower bounds of the clients' mean times. Section 12.

    The bound after k rounds, from K seconds-per-job with mean mu: mu - 4 e alpha
    (sqrt(l/K) + l/K) with l = ln(2 k^2), at least 0; 0 of a client that was never seen.
    All of a round's jobs are needed, and are taken at its model. The constants are not
    in methods.md: they are those of the authors' code.
    """
    n, run = world.num_clients, Run(world)
    times: list[list[float]] = [[] for _ in range(n)]
    got: list[tuple[Source, Vector]] = []
    left = [0] * n

    def begin_round() -> None:
        lower = [0.0] * n
        for i in range(n):
            if times[i]:
                part = math.log(2 * run.version**2) / len(times[i])
                width = 4 * math.e * alpha * (math.sqrt(part) + part)
                lower[i] = max(float(np.mean(times[i])) - width, 0.0)
        left[:] = allotment(lower, [len(row) for row in times], B)
        run.begin([i for i in range(n) if left[i]])

    begin_round()
    for job in run.arrivals():
        i = job.source.client
        times[i].append(job.computed_in_s)
        got.append((job.source, run.gradient(job)))
        left[i] -= 1
        if left[i]:
            run.begin([i])
        elif not any(left):
            run.commit(gamma * sum_of(got) / B, [source for source, _ in got])
            got = []
            begin_round()
    return run


def picky(world: World, eta: float, threshold: float) -> Run:
    """A step only if ||x^k - x^{k-d}|| <= threshold; else one of weight 0. Section 12.

    Ignored arrivals are commits too (section 15).
    """
    run = everyone(world)
    for job in run.arrivals():
        near = float(np.linalg.norm(run.x - job.model)) <= threshold
        run.commit(float(near) * eta * run.gradient(job), [job.source])
        run.begin([job.source.client])
    return run


def diloco(
    world: World,
    N: int,
    beta: float,
    e: float,
    c: float = 0.0,
    grace_s: float | None = None,
    look_ahead: bool = False,
) -> Run:
    """Delayed Nesterov with period N at the server. Section 10.

    `grace_s`: arrivals within so long of the first are applied as one, their mean, and
    their clients wait for it. `look_ahead`: clients read x - e beta m.
    """
    run = everyone(world)
    m = buffer = np.zeros_like(run.x)
    got: list[tuple[Source, Vector]] = []
    for job in run.arrivals():
        if not job.timer:
            got.append((job.source, run.gradient(job)))
            if grace_s is not None:
                if len(got) == 1:
                    run.wake(grace_s)
                continue
        D = sum_of(got) / len(got)
        buffer = buffer + D
        if (run.version + 1) % N:
            step = c * beta * m + D / N
        else:
            m = beta * m + buffer / N
            step = (1 - c * N + c) * beta * m + D / N
            buffer = np.zeros_like(run.x)
        run.commit(e * step, [source for source, _ in got])
        ahead = run.x - e * beta * m if look_ahead else run.x
        idle = [source.client for source, _ in got]
        run.begin(idle, read=(run.version, ahead))
        got = []
    return run


def outer_nesterov(
    x: Vector, moves: Sequence[Sequence[Vector]], beta: float, e: float
) -> list[Vector]:
    """Returns the models of synchronous DiLoCo: Nesterov's step of each round's mean.

    m := beta m + g, x -= e (g + beta m), as torch's SGD with `nesterov`.
    """
    m, found = np.zeros_like(x), []
    for of_round in moves:
        g = np.mean(of_round, axis=0)
        m = beta * m + g
        x = x - e * (g + beta * m)
        found.append(x)
    return found
