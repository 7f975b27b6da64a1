"""Slow twins of attacks and of robust servers, written from the papers' formulas.

Plain NumPy, one message after the other, on the tiny world of `methods_twin`. Each
attack and each aggregation is a function of lists of vectors; servers gather messages
in rounds, in a buffer, in buckets, or take them one by one.
"""

from collections.abc import Callable, Sequence

import numpy as np

from tests.reference.methods_twin import Run, Source, Vector, World, everyone

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


def softmax_gradient(
    weights: Vector, x: Vector, y: Vector, classes: int
) -> tuple[Vector, Vector]:
    """Returns the mean gradient of the cross-entropy of a linear model, and odds.

    Args:
        weights: Of shape classes by columns.
        x: Rows of columns.
        y: Their classes, from 0.
        classes: Number of classes.
    """
    total, found = np.zeros_like(weights), []
    for row, label in zip(x, y, strict=True):
        odds = np.exp(weights @ row - np.max(weights @ row))
        odds /= odds.sum()
        found.append(odds)
        total += np.outer(odds - np.eye(classes)[label], row) / len(x)
    return total, np.array(found)


def with_trigger(x: Vector, columns: Sequence[int], value: float) -> Vector:
    """Returns rows whose columns, numbered from 0, have a value."""
    found = np.array(x)
    for row in found:
        for column in columns:
            row[column] = value
    return found


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


def centred_clipping(tau: float, d: int, rate: float = 1.0, times: int = 1):
    """Returns an aggregation with a memory, v, of d numbers."""
    v = np.zeros(d)

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


class Attacked:
    """Messages of a run some of whose clients are enemies, who know what has arrived.

    Args:
        run: The run.
        enemies: Numbers of the enemies, from 0.
        attack: What they send, or what each sends.
    """

    def __init__(
        self, run: Run, enemies: Sequence[int], attack: Attack | dict[int, Attack]
    ) -> None:
        self._run, self._enemies = run, {*enemies}
        self._attack = (
            attack if isinstance(attack, dict) else dict.fromkeys(enemies, attack)
        )
        self._last: dict[int, Vector] = {}

    def sent(self, jobs: list) -> list[Vector]:
        """Returns the messages of jobs that arrive together."""
        work = [self._run.gradient(job) for job in jobs]
        for job, own in zip(jobs, work, strict=True):
            if job.source.client not in self._enemies:
                self._last[job.source.client] = own
        honest = [self._last[client] for client in sorted(self._last)]
        return [
            self._attack[job.source.client](own, honest)
            if job.source.client in self._enemies
            else own
            for job, own in zip(jobs, work, strict=True)
        ]


def rounds(
    world: World,
    eta: float,
    enemies: Sequence[int],
    attack: Attack,
    aggregate: Aggregation,
) -> Run:
    """All clients work on one model; the server steps by the aggregate of all."""
    run = everyone(world)
    messages, got = Attacked(run, enemies, attack), []
    for job in run.arrivals():
        got.append(job)
        if len(got) == world.num_clients:
            got.sort(key=lambda job: job.source.client)
            step = aggregate(messages.sent(got))
            run.commit(eta * step, [job.source for job in got])
            got = []
            run.begin(range(world.num_clients))
    return run


def buffered(
    world: World,
    size: int,
    eta: float,
    enemies: Sequence[int],
    attack: Attack | dict[int, Attack],
    aggregate: Aggregation,
    exponent: float = 0.0,
) -> Run:
    """A buffer of messages times (1 + staleness) ** -exponent, then their aggregate."""
    run = everyone(world)
    messages = Attacked(run, enemies, attack)
    got: list[Vector] = []
    sources: list[Source] = []
    for job in run.arrivals():
        (message,) = messages.sent([job])
        weight = (1.0 + run.version - job.source.read_version) ** -exponent
        got.append(weight * message)
        sources.append(job.source)
        if len(got) == size:
            run.commit(eta * aggregate(got), sources)
            got, sources = [], []
        run.begin([job.source.client])
    return run


def basgd(
    world: World,
    B: int,
    eta: float,
    enemies: Sequence[int],
    attack: Attack,
    aggregate: Aggregation,
) -> Run:
    """Buckets by client mod B; a step as soon as each has something. BASGD, Alg. 2.

    Every arrival is a commit here, most of them of a step of zero.
    """
    run = everyone(world)
    messages = Attacked(run, enemies, attack)
    buckets: list[list[Vector]] = [[] for _ in range(B)]
    for job in run.arrivals():
        (message,) = messages.sent([job])
        buckets[job.source.client % B].append(message)
        step = np.zeros_like(run.x)
        if all(buckets):
            step = eta * aggregate([sum(b) / len(b) for b in buckets])  # pyright: ignore
            buckets = [[] for _ in range(B)]
        run.commit(step, [job.source])
        run.begin([job.source.client])
    return run


def one_by_one(
    world: World,
    eta: float,
    enemies: Sequence[int],
    attack: Attack,
    taken: Callable[[Vector, Vector], Vector],
) -> Run:
    """Every message is a commit: what a server takes of it, at its model."""
    run = everyone(world)
    messages = Attacked(run, enemies, attack)
    for job in run.arrivals():
        (message,) = messages.sent([job])
        run.commit(eta * taken(message, run.x), [job.source])
        run.begin([job.source.client])
    return run


def afl_guard(
    tolerance: float, gradient: Callable[[Vector], Vector]
) -> Callable[[Vector, Vector], Vector]:
    """Takes g if |g - g_s| <= lambda |g_s|. AFLGuard, Algorithm 1."""

    def taken(message: Vector, x: Vector) -> Vector:
        own = gradient(x)
        apart = np.sqrt(np.sum((message - own) ** 2))
        near = apart <= tolerance * np.sqrt(np.sum(own**2))
        return message if near else np.zeros_like(message)

    return taken


def zeno(
    eta: float, rho: float, epsilon: float, gradient: Callable[[Vector], Vector]
) -> Callable[[Vector, Vector], Vector]:
    """Takes g, as long as v, if eta <v, g> - rho |g|^2 >= -eta epsilon. Zeno++."""

    def taken(message: Vector, x: Vector) -> Vector:
        v = gradient(x)
        g = message * np.sqrt(np.sum(v**2)) / np.sqrt(np.sum(message**2))
        score = eta * float(v @ g) - rho * float(g @ g)
        return g if score >= -eta * epsilon else np.zeros_like(g)

    return taken
