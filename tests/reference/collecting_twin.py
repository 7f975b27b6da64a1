"""Slow twins of the methods whose step uses many contributions.

Those collected at one model, and one vector of every client: methods.md, sections 2, 3,
5 to 7 and 12, on the tiny world of `methods_twin`.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction
from typing import Literal

import numpy as np

from tests.reference.methods_twin import (
    Run,
    Source,
    Vector,
    World,
    everyone,
    sum_of,
)


def collect(
    world: World,
    asked: Iterable[int],
    full: Callable[[list[int]], bool],
    mean: Callable[[list[tuple[int, Vector]]], Vector],
    gamma: float,
    stops: bool,
) -> Run:
    """Gradients at x^k until `full(counts per client)`, then x -= gamma mean.

    Sections 2 and 3.
    """
    run = Run(world)
    run.begin(asked)
    got: list[tuple[int, Vector]] = []
    sources: list[Source] = []
    for job in run.arrivals():
        idle = [job.source.client]
        if job.source.read_version == run.version:
            got.append((job.source.client, run.gradient(job)))
            sources.append(job.source)
        else:
            run.lose(job.source, "rejected")
        if full([sum(c == i for c, _ in got) for i in range(world.num_clients)]):
            run.commit(gamma * mean(got), sources)
            got, sources = [], []
            if stops:
                idle += run.stop(run.flying)
        run.begin(idle)
    return run


def rennala(
    world: World,
    S: int,
    gamma: float,
    stops: bool,
    fastest: Sequence[float] | None = None,
) -> Run:
    """S gradients at x^k, then x -= gamma g / S. Section 2.

    `fastest` holds every client's known seconds per gradient: then only the min(S, n)
    fastest are asked (ties: lower number) and the others never begin.
    """
    asked = list(range(world.num_clients))
    if fastest is not None:
        asked = sorted(asked, key=lambda i: (fastest[i], i))[:S]
    return collect(
        world,
        asked,
        lambda counts: sum(counts) == S,
        lambda got: sum_of(got) / S,
        gamma,
        stops,
    )


def malenia(world: World, S: float, gamma: float, stops: bool) -> Run:
    """Rennala with a mean per client, until n / sum(1 / b_i) >= S / n. Section 3."""
    n = world.num_clients

    def full(counts: list[int]) -> bool:
        return (
            min(counts) >= 1
            and Fraction(n) / sum(Fraction(1, b) for b in counts) >= Fraction(S) / n
        )

    def mean(got: list[tuple[int, Vector]]) -> Vector:
        rows = [[(c, g) for c, g in got if c == i] for i in range(n)]
        return np.mean([sum_of(row) / len(row) for row in rows], axis=0)

    return collect(world, range(n), full, mean, gamma, stops)


def m_synchronous(
    world: World,
    m: int,
    gamma: float,
    stops: bool,
    late: Literal["now", "next_round"] = "now",
) -> Run:
    """Mean of the first m gradients of a round, one per client. Section 12.

    A client that has reported waits for the commit. Without stops a late job ends, is
    rejected, and its client starts at the current model `now` or in the `next_round`.
    """
    run = everyone(world)
    total, sources, waiting = np.zeros_like(run.x), [], []
    for job in run.arrivals():
        if job.source.read_version != run.version:
            run.lose(job.source, "rejected")
            if late == "now":
                run.begin([job.source.client])
            else:
                waiting.append(job.source.client)
            continue
        total = total + run.gradient(job)
        sources.append(job.source)
        waiting.append(job.source.client)
        if len(sources) == m:
            run.commit(gamma * total / m, sources)
            if stops:
                waiting += run.stop(run.flying)
            run.begin(waiting)
            total, sources, waiting = np.zeros_like(run.x), [], []
    return run


def async_minibatch(world: World, B: int, gamma: float) -> Run:
    """Mean of B gradients whose job began in the current batch. Section 12.

    With free links a job began in batch k if and only if it read x^k: Rennala without
    stops.
    """
    return rennala(world, B, gamma, stops=False)


def mindflayer(
    world: World,
    trials: Sequence[int],
    allotted_s: Sequence[float],
    p: Sequence[float],
    gamma: float,
) -> Run:
    """B_i trials per client at x^k, then x -= gamma g / sum(p_i B_i). Section 7.

    `allotted_s` is the whole of a trial, h_i + t_i; a job of exactly that length ends
    in time. A client with no trials never begins; one whose trials are over waits. A
    round without success is a commit.
    """
    run = Run(world)
    asked = [i for i, b in enumerate(trials) if b > 0]
    expected = sum(q * b for q, b in zip(p, trials, strict=True))
    if expected <= 0:
        raise ValueError(
            f"sum of p_i B_i must be > 0, got {expected}; give a client time"
        )
    left, total, sources = list(trials), np.zeros_like(run.x), []
    run.begin(asked, allotted_s)
    for job in run.arrivals():
        if job.in_time:
            total = total + run.gradient(job)
            sources.append(job.source)
        else:
            run.lose(job.source, "stopped")
        left[job.source.client] -= 1
        if left[job.source.client] > 0:
            run.begin([job.source.client], allotted_s)
        elif sum(left) == 0:
            run.commit(gamma * total / expected, sources)
            left, total, sources = list(trials), np.zeros_like(run.x), []
            run.begin(asked, allotted_s)
    return run


def ringleader(world: World, gamma: float) -> Run:
    """Phase 1 collects from all, phase 2 commits once per client. Section 5."""
    n, run = world.num_clients, everyone(world)
    table: list[list[tuple[Source, Vector]]] = [[] for _ in range(n)]
    following: list[list[tuple[Source, Vector]]] = [[] for _ in range(n)]
    served: set[int] = set()
    entered: list[Source] = []  # gradients that wait for their first commit
    next_entered: list[Source] = []
    for job in run.arrivals():
        i, entry = job.source.client, (job.source, run.gradient(job))
        if i in served:
            following[i].append(entry)
            next_entered.append(job.source)
        else:
            table[i].append(entry)
            entered.append(job.source)
            if served or all(table):
                means = [sum_of(row) / len(row) for row in table]
                held = [source for row in table for source, _ in row]
                run.commit(gamma * np.mean(means, axis=0), entered, held)
                entered = []
                served.add(i)
        if len(served) == n:
            table, following = following, [[] for _ in range(n)]
            entered, next_entered = next_entered, []
            served = set()
        run.begin([i])
    return run


def aced(
    world: World,
    gamma: float,
    tau_algo: float,
    age: Literal["read", "arrival"] = "read",
    warm_up: bool = True,
    empty: Literal["skip", "commit"] = "skip",
    idle_in_warm_up: bool = False,
) -> Run:
    """Mean over the clients whose entry is at most tau_algo commits old. Section 6.

    The text does not say from where an entry's age counts: from the `read` of the model
    at which it was taken (its delay), or from its `arrival` (then the arriving one is
    always young). It is taken at x^k, before the commit. `warm_up`: no commit until
    every client has an entry. `empty`: with no entry young enough nothing happens
    (`skip`) or the version moves and x stays (`commit`). `idle_in_warm_up`: a client
    waits for the warm-up's end, else it works on at x^0 and overwrites its entry.
    """
    n, run = world.num_clients, everyone(world)
    entries: dict[int, tuple[Source, int, Vector]] = {}
    unused: dict[int, Source] = {}  # entries that no commit has summed yet
    waiting: list[int] = []
    for job in run.arrivals():
        i, source = job.source.client, job.source
        if i in unused:
            run.lose(unused.pop(i), "overwritten")
        entries[i] = (source, run.version, run.gradient(job))
        unused[i] = source
        waiting.append(i)
        if warm_up and len(entries) < n:
            if not idle_in_warm_up:
                run.begin(waiting)
                waiting = []
            continue
        young = {}
        for c in sorted(entries):
            since = entries[c][0].read_version if age == "read" else entries[c][1]
            if run.version - since <= tau_algo:
                young[c] = entries[c]
        for c in [c for c in unused if c not in young]:
            run.lose(unused.pop(c), "rejected")
        if young:
            mean = np.mean([g for _, _, g in young.values()], axis=0)
            run.commit(gamma * mean, unused.values(), [s for s, _, _ in young.values()])
            unused = {}
        elif empty == "commit":
            run.commit(np.zeros_like(run.x), [])
        run.begin(waiting)
        waiting = []
    return run


def ia2sgd(world: World, gamma: float, idle_in_warm_up: bool = False) -> Run:
    """Mean of every client's newest gradient at every arrival. Section 6."""
    return aced(world, gamma, math.inf, idle_in_warm_up=idle_in_warm_up)


def ca2fl(
    world: World,
    M: int,
    eta: float,
    residual: Literal["latest", "committed"] = "latest",
) -> Run:
    """v = h + (1/M) sum (D_i - h_i), x -= eta v, h := mean h_i. Section 6.

    Caches begin at zero, D_i is the gradient. If a client arrives twice in one buffer
    its second residual is against its `latest` D_i (the arrival rule; the first then
    cancels), or against h_i as it was at the last commit (`committed`). `held` leaves
    out what is in the cache only.
    """
    n, run = world.num_clients, everyone(world)
    cache = [np.zeros_like(run.x) for _ in range(n)]
    old = list(cache)
    buffer, sources = np.zeros_like(run.x), []
    for job in run.arrivals():
        i, update = job.source.client, run.gradient(job)
        buffer = buffer + (update - (cache[i] if residual == "latest" else old[i]))
        cache[i] = update
        sources.append(job.source)
        if len(sources) == M:
            run.commit(eta * (np.mean(old, axis=0) + buffer / M), sources)
            old, buffer, sources = list(cache), np.zeros_like(run.x), []
        run.begin([i])
    return run
