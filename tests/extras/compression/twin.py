"""Compressed SGD in NumPy, number by number, from the closed forms of the papers.

Two clients of different speeds and slow links; one server, asynchronous or in rounds.
Written from QSGD (2017, section 3.1), Sparsified SGD with Memory (2018, Algorithm 1),
Error Feedback Fixes SignSGD (2019, Algorithm 1), PowerSGD (2019, Algorithms 1 and 2),
EF21 (2021, Algorithm 2) and EF21-BC, not from the program. What a client sends too late
is rejected: it takes its memory of that message back, and has the model that it got.
"""

import heapq
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from math import floor, log2
from typing import Any

import numpy as np

Compressor = tuple[str, dict[str, int]]
Draw = Callable[[str, int, int, tuple[int, ...]], np.ndarray]
"""Uniform numbers by direction, client, number of its job, and shape."""


@dataclass(frozen=True)
class World:
    """What the loop is given.

    Attributes:
        start: Model at the start, `[m, n]`.
        gradient: Of a client, the number of its job and a model.
        draw: Uniform numbers.
        compute_s: Seconds of a gradient of each client.
        bytes_per_s: Of every link.
        step: Step size of the server.
        first_q: Q of the first message of a client, `[n, r]`.
    """

    start: np.ndarray
    gradient: Callable[[int, int, np.ndarray], np.ndarray]
    draw: Draw
    compute_s: tuple[float, ...]
    bytes_per_s: float
    step: float
    first_q: np.ndarray


@dataclass(frozen=True)
class Method:
    """What compresses clients' messages, with which memory, and what the model.

    Attributes:
        up: A compressor's name and options.
        feedback: `none`, `ef` or `ef21`.
        down: Of the model; None where it is sent whole.
    """

    up: Compressor
    feedback: str
    down: Compressor | None


@dataclass
class Side:
    """What one direction of one client keeps."""

    memory: np.ndarray
    q: np.ndarray
    jobs: int = 0


@dataclass
class Client:
    """A client, and what it works on."""

    up: Side
    down: Side
    message: Any = None
    version: int = 0
    before: Any = None
    errors: tuple[float, float] = (0.0, 0.0)


@dataclass
class Found:
    """Commits, one after the other.

    Attributes:
        times: Seconds.
        models: Models after them.
        errors: Means over a commit's clients of |C(x) - x|^2 / |x|^2, down and up.
        rejected: Contributions that were rejected.
    """

    times: list[float] = field(default_factory=list)
    models: list[np.ndarray] = field(default_factory=list)
    errors: list[np.ndarray] = field(default_factory=list)
    rejected: int = 0


def bits(compressor: Compressor | None, m: int, n: int) -> int:
    """Returns the bits of a message by hand: numbers of 32 bits, whole bytes."""
    size = m * n
    if compressor is None:
        return 32 * size
    kind, options = compressor
    whole = lambda count: -(-count // 8) * 8  # noqa: E731
    if kind == "qsgd":
        code = int(np.ceil(log2(2 * options["levels"] + 1)))
        return whole(size * code) + 32 * -(-size // options["bucket"])
    if kind == "top_k":
        return 32 * options["keep"] + whole(options["keep"] * int(np.ceil(log2(size))))
    if kind == "random_k":
        return 32 * options["keep"]
    if kind == "signs":
        return whole(size) + 32
    return 32 * options["rank"] * (m + n)


def contracting(compressor: Compressor, size: int) -> float:
    """Returns 1 / (1 + omega) of an unbiased compressor; 1 of others."""
    kind, options = compressor
    if kind == "random_k":
        return options["keep"] / size
    if kind == "qsgd":
        d, s = options["bucket"], options["levels"]
        return 1 / (1 + min(d / s**2, d**0.5 / s))
    return 1.0


def compressed(
    compressor: Compressor, x: np.ndarray, side: Side, uniform: Any
) -> np.ndarray:
    """Returns C(x); the matrix Q of the next message stays with the side."""
    (kind, options), flat = compressor, x.ravel()
    made = np.zeros_like(flat)
    if kind == "qsgd":
        size, s = options["bucket"], options["levels"]
        drawn = uniform((-(-flat.size // size), size)).ravel()
        for i, value in enumerate(flat):
            first = i // size * size
            norm = sum(v * v for v in flat[first : first + size]) ** 0.5
            if norm > 0:
                exact = s * abs(value) / norm
                level = floor(exact)
                level += drawn[i] < exact - level
                made[i] = norm * np.sign(value) * level / s
    elif kind == "top_k":
        order = sorted(range(flat.size), key=lambda i: (-abs(flat[i]), i))
        for i in order[: options["keep"]]:
            made[i] = flat[i]
    elif kind == "random_k":
        drawn = uniform(flat.shape)
        for i in sorted(range(flat.size), key=lambda i: -drawn[i])[: options["keep"]]:
            made[i] = flat[i] * flat.size / options["keep"]
    elif kind == "signs":
        made = np.where(flat >= 0, 1.0, -1.0) * (sum(abs(flat)) / flat.size)
    elif kind == "low_rank":
        basis: list[np.ndarray] = []
        for column in (x @ side.q).T:  # Gram and Schmidt
            rest = column - sum((b @ column) * b for b in basis)
            basis.append(rest / np.linalg.norm(rest) if rest.any() else rest)
        p = np.array(basis).T
        side.q = x.T @ p if x.any() else side.q
        made = (p @ (x.T @ p).T).ravel()
    return made.reshape(x.shape)


def played(
    method: Method,
    world: World,
    protocol: str,
    commits: int,
    bound: float = float("inf"),
) -> Found:
    """Plays the loop until some commits are made.

    Contributions that are staler than a bound, in commits, are rejected.
    """
    m, n = world.start.shape
    size, found, x = m * n, Found(), world.start.copy()
    down_s, up_s = (
        bits(each, m, n) / 8 / world.bytes_per_s for each in (method.down, method.up)
    )
    clients = [
        Client(Side(np.zeros_like(x), world.first_q), Side(x.copy(), world.first_q))
        for _ in world.compute_s
    ]

    def work(i: int) -> float:
        """Takes a client from its read to its upload; returns how long that takes."""
        client = clients[i]
        client.version, client.before = len(found.times), replace(client.up)
        up, down, job = client.up, client.down, client.up.jobs
        at, error_down = x, 0.0
        if method.down is not None:
            apart = x - down.memory
            sent = contracting(method.down, size) * compressed(
                method.down,
                apart,
                down,
                lambda shape: world.draw("down", i, job, shape),
            )
            error_down = relative(apart - sent, apart)
            at = down.memory = down.memory + sent
        g = world.gradient(i, job, at)
        given = g
        if method.feedback == "ef":
            given = g + up.memory
        elif method.feedback == "ef21":
            given = g - up.memory
        sent = compressed(
            method.up, given, up, lambda shape: world.draw("up", i, job, shape)
        )
        if method.feedback != "none":
            sent = contracting(method.up, size) * sent
        client.message = sent
        if method.feedback == "ef":
            up.memory = given - sent
        elif method.feedback == "ef21":
            client.message = up.memory = up.memory + sent
        client.errors = error_down, relative(given - sent, given)
        up.jobs += 1
        return down_s + world.compute_s[i] + up_s

    def commit(time: float, who: list[int]) -> None:
        nonlocal x
        mean = sum(clients[i].message for i in who) / len(who)
        x = x - world.step * mean
        found.times.append(time)
        found.models.append(x)
        errors = [clients[i].errors for i in who]
        found.errors.append(np.mean(errors, axis=0))

    everyone = list(range(len(clients)))
    if protocol == "synchronous":
        time = 0.0
        while len(found.times) < commits:
            time += max(work(i) for i in everyone)
            commit(time, everyone)
        return found
    arrivals = [(work(i), i) for i in everyone]
    heapq.heapify(arrivals)
    while len(found.times) < commits:
        time, i = heapq.heappop(arrivals)
        if len(found.times) - clients[i].version > bound:
            clients[i].up = replace(clients[i].before, jobs=clients[i].up.jobs)
            found.rejected += 1
        else:
            commit(time, [i])
        heapq.heappush(arrivals, (time + work(i), i))
    return found


def relative(left: np.ndarray, x: np.ndarray) -> float:
    """Returns |left|^2 / |x|^2, 0 of nothing."""
    square = float((x**2).sum())
    return float((left**2).sum()) / square if square else 0.0
