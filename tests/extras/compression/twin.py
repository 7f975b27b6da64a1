"""Compressed messages in NumPy, number by number, from the papers' closed forms.

Written from QSGD (2017, section 3.1), Sparsified SGD with Memory (2018, Algorithm 1),
Error Feedback Fixes SignSGD (2019, Algorithm 1), PowerSGD (2019, Algorithms 1 and 2),
EF21 (2021, Algorithm 2) and EF21-BC, not from the program, as stages of `server_twin`.
A client whose message is rejected has the model that it got all the same.
"""

from collections.abc import Callable
from dataclasses import dataclass
from math import floor, log2
from typing import Any

import numpy as np

from tests.reference.server_twin import Job, Server, Stage

Compressor = tuple[str, dict[str, int]]
Draw = Callable[[str, int, int, tuple[int, ...]], np.ndarray]
"""Uniform numbers by direction, client, number of its job, and shape."""


@dataclass
class Side:
    """What one direction of one client keeps.

    Attributes:
        memory: Of what was sent; of the model, what the client has.
        q: Q of the next message, `[n, r]`.
    """

    memory: np.ndarray
    q: np.ndarray


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


def relative(left: np.ndarray, x: np.ndarray) -> float:
    """Returns |left|^2 / |x|^2, 0 of nothing."""
    square = float((x**2).sum())
    return float((left**2).sum()) / square if square else 0.0


class Compression:
    """Stages of either direction, and their errors |C(x) - x|^2 / |x|^2.

    Attributes:
        down: Errors of models that clients got, job by job.
        up: Errors of messages.

    Args:
        draw: Uniform numbers.
        first_q: Q of the first message of a client, `[n, r]`.
    """

    def __init__(self, draw: Draw, first_q: np.ndarray) -> None:
        self._draw, self._first_q = draw, first_q
        self.down: list[float] = []
        self.up: list[float] = []

    def stages(self) -> dict[str, tuple[str, Any]]:
        return {
            "broadcast": ("read", self.broadcast),
            "compress": ("arrival", self.compress),
        }

    def broadcast(self, compressor: dict[str, Any]) -> Stage:
        """Clients get what the model has moved by since their own, compressed."""
        by, sides = named(compressor), dict[int, Side]()

        def stage(server: Server, jobs: list[Job]) -> None:
            for job in jobs:
                side = sides.setdefault(
                    job.client, Side(server.models[0], self._first_q)
                )
                apart = job.read - side.memory
                sent = contracting(by, apart.size) * compressed(
                    by, apart, side, self._uniform("down", job)
                )
                self.down.append(relative(apart - sent, apart))
                job.read = side.memory = side.memory + sent

        return stage

    def compress(self, compressor: dict[str, Any], feedback: str) -> Stage:
        """Messages, with a memory of what was not sent, or of what was (EF21)."""
        by, sides = named(compressor), dict[int, Side]()

        def stage(_: Server, jobs: list[Job]) -> None:
            for job in jobs:
                zeros = np.zeros_like(job.message)
                side = sides.setdefault(job.client, Side(zeros, self._first_q))
                sign = {"none": 0, "ef": 1, "ef21": -1}[feedback]
                given = job.message + sign * side.memory
                sent = compressed(by, given, side, self._uniform("up", job))
                if feedback != "none":
                    sent = contracting(by, given.size) * sent
                self.up.append(relative(given - sent, given))
                job.message = sent
                if feedback == "ef":
                    side.memory = given - sent
                elif feedback == "ef21":
                    job.message = side.memory = side.memory + sent

        return stage

    def _uniform(self, direction: str, job: Job) -> Any:
        return lambda shape: self._draw(direction, job.client, job.number, shape)


def named(options: dict[str, Any]) -> Compressor:
    """Returns a compressor as a scenario has it."""
    return options["kind"], {k: v for k, v in options.items() if k != "kind"}
