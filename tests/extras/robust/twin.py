"""Slow twins of attacks and of robust servers, written from the papers' formulas.

Each attack and each aggregation is a function of lists of vectors, in plain NumPy;
`stages_of` makes stages of `server_twin` of them.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from tests.reference.server_twin import (
    Job,
    Problem,
    Server,
    Stage,
    Vector,
    local_work,
)

Attack = Callable[[Vector, list[Vector]], Vector]
"""What an enemy sends, of its own work and of the honest clients' last messages."""
Aggregation = Callable[[list[Vector]], Vector]


def sign_flip(factor: float) -> Attack:
    return lambda own, honest: -factor * own


def inner_product(epsilon: float) -> Attack:
    def sent(own: Vector, honest: list[Vector]) -> Vector:
        return -epsilon * sum(honest) / len(honest) if honest else own  # pyright: ignore

    return sent


def alie(z: float) -> Attack:
    def sent(own: Vector, honest: list[Vector]) -> Vector:
        if not honest:
            return own
        mean = sum(honest) / len(honest)  # pyright: ignore
        square = sum((h - mean) ** 2 for h in honest) / len(honest)
        return mean - z * np.sqrt(square)

    return sent


def median(vectors: list[Vector]) -> Vector:
    found = []
    for coordinate in np.array(vectors).T:
        ranked, n = sorted(coordinate), len(coordinate)
        middle = (ranked[(n - 1) // 2], ranked[n // 2])
        found.append(sum(middle) / 2)
    return np.array(found)


def trimmed_mean(f: int) -> Aggregation:
    def found(vectors: list[Vector]) -> Vector:
        rows = [sorted(c)[f : len(vectors) - f] for c in np.array(vectors).T]
        return np.array([sum(row) / len(row) for row in rows])

    return found


def krum(f: int, m: int = 1) -> Aggregation:
    def found(vectors: list[Vector]) -> Vector:
        n, scores = len(vectors), []
        for i, one in enumerate(vectors):
            apart = [np.sum((one - o) ** 2) for j, o in enumerate(vectors) if j != i]
            scores.append((sum(sorted(apart)[: n - f - 2]), i))
        best = [vectors[i] for _, i in sorted(scores)[:m]]
        return sum(best) / m  # pyright: ignore

    return found


def geometric_median(iterations: int, nu: float) -> Aggregation:
    def found(vectors: list[Vector]) -> Vector:
        point = median(vectors)
        for _ in range(iterations):
            weights = [1 / max(nu, np.sqrt(np.sum((v - point) ** 2))) for v in vectors]
            whole = sum(weights)
            terms = [w * v / whole for w, v in zip(weights, vectors, strict=True)]
            point = sum(terms)  # pyright: ignore
        return point  # pyright: ignore

    return found


def centred_clipping(tau: float, rate: float = 1.0, times: int = 1) -> Aggregation:
    """Returns an aggregation with a memory, v."""
    v: Any = 0.0

    def found(vectors: list[Vector]) -> Vector:
        nonlocal v
        for _ in range(times):
            moves = []
            for x in vectors:
                length = np.sqrt(np.sum((x - v) ** 2))
                moves.append((x - v) * min(1.0, tau / length) if length else x - v)
            v = v + rate * sum(moves) / len(vectors)
        return v

    return found


def attacked(attack: Attack, clients: Sequence[int], everybody: set[int]) -> Stage:
    """Enemies, numbered from 1, know the last message of each honest client.

    Args:
        attack: What they send.
        clients: Who sends it.
        everybody: The enemies of all attacks; it grows by these.
    """
    everybody |= {client - 1 for client in clients}
    last: dict[int, Vector] = {}

    def stage(_: Server, jobs: list[Job]) -> None:
        last.update({j.client: j.message for j in jobs if j.client not in everybody})
        honest = [last[client] for client in sorted(last)]
        for job in jobs:
            if job.client + 1 in clients:
                job.message = attack(job.message, honest)

    return stage


def poisoned(problem: Problem, clients: Sequence[int]) -> Stage:
    """Enemies work on other rows.

    Args:
        problem: Rows of the enemies.
        clients: Enemies, numbered from 1.
    """
    work = local_work()

    def stage(server: Server, jobs: list[Job]) -> None:
        honest = server.problem
        for job in jobs:
            is_enemy = job.client + 1 in clients
            server.problem = problem if is_enemy else honest
            work(server, [job])
        server.problem = honest

    return stage


def aggregated(by: Aggregation, buckets: int = 0) -> Stage:
    """The aggregate of a commit's messages times weights, in order of clients.

    With buckets, by client mod B: that of their means as soon as each has something,
    else a step of zero (BASGD, Algorithm 2).
    """
    held: list[list[Vector]] = [[] for _ in range(buckets)]

    def stage(server: Server, jobs: list[Job]) -> None:
        sent = [job.weight * job.message for job in jobs]
        server.direction = np.zeros_like(server.direction)
        if not buckets:
            server.direction = by(sent)
            return
        for job, message in zip(jobs, sent, strict=True):
            held[job.client % buckets].append(message)
        if all(held):
            server.direction = by([sum(b) / len(b) for b in held])  # pyright: ignore
            for bucket in held:
                bucket.clear()

    return stage


def stages_of() -> dict[str, tuple[str, Any]]:
    """Returns stages by their names in a scenario, new ones with each call."""
    everybody: set[int] = set()

    def attack(
        clients: Sequence[int], make: Any, share: None = None, **o: Any
    ) -> Stage:
        return attacked(make(*o.values()), clients, everybody)

    def aggregate(make: Any, **names: str) -> Any:
        def stage(buckets: int | None = None, **o: Any) -> Stage:
            given = {names.get(key, key): value for key, value in o.items()}
            return aggregated(make(**given), buckets or 0)

        return stage

    return {
        "sign_flip": ("arrival", partial(attack, make=sign_flip)),
        "alie": ("arrival", partial(attack, make=alie)),
        "inner_product": ("arrival", partial(attack, make=inner_product)),
        "coordinate_median": ("commit", aggregate(lambda: median)),
        "trimmed_mean": ("commit", aggregate(trimmed_mean, tolerated="f")),
        "krum": ("commit", aggregate(krum, tolerated="f", selected="m")),
        "geometric_median": (
            "commit",
            aggregate(geometric_median, smoothing="nu"),
        ),
        "centred_clipping": (
            "commit",
            aggregate(centred_clipping, radius="tau", iterations="times"),
        ),
    }
