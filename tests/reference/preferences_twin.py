"""Rounds of clients that are selected by their losses: plain loops over plain lists.

A round asks some clients, who all read the server's linear model (softmax, a bias),
compute one gradient on a batch of their own and take an exponential time; it lasts as
long as the slowest. Selections know the mean loss of each client's last batch.
"""

import math
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from tests.reference.sgd_twin import loss_and_gradient


class Task(NamedTuple):
    """What is learned, by whom.

    Attributes:
        inputs: [N, P + 1], the last column ones.
        labels: [N].
        batch: sample ids of (client, job).
        seconds: of (client, job).
        num_clients: K.
        in_flight: clients of a round.
        step_size: of every round.
        l2: of all weights but the bias.
    """

    inputs: np.ndarray
    labels: np.ndarray
    batch: Callable[[int, int], np.ndarray]
    seconds: Callable[[int, int], float]
    num_clients: int
    in_flight: int
    step_size: float
    l2: float


class Known(NamedTuple):
    """What a selection knows: of clients that have worked alone, by client."""

    losses: dict[int, float]
    seconds: dict[int, float]


def rounds(
    task: Task, number: int, select: Callable[[Known], list[int]]
) -> tuple[list[list[int]], list[float], list[float]]:
    """Returns the clients, the end and the mean loss of each round."""
    known, jobs = Known({}, {}), dict.fromkeys(range(task.num_clients), 0)
    num_outputs = int(task.labels.max()) + 1
    weights = np.zeros((task.inputs.shape[1], num_outputs))
    clients, times, losses, now = [], [], [], 0.0
    for _ in range(number):
        chosen = sorted(select(known))
        gradients, lasts = [], []
        for client in chosen:
            rows = task.batch(client, jobs[client])
            loss, gradient = loss_and_gradient(
                weights, task.inputs[rows], task.labels[rows], "softmax"
            )
            decay = task.l2 * weights
            decay[-1] = 0
            gradients.append(gradient / len(rows) + decay)
            known.losses[client] = loss / len(rows)
            known.seconds[client] = task.seconds(client, jobs[client])
            lasts.append(known.seconds[client])
            jobs[client] += 1
        weights = weights - task.step_size * np.mean(gradients, axis=0)
        now += max(lasts)
        clients.append(chosen)
        times.append(now)
        losses.append(float(np.mean([known.losses[c] for c in chosen])))
    return clients, times, losses


def drawn(candidates: Iterator[int], number: int, passed: set[int]) -> list[int]:
    """Returns the next different candidates, but for some who are passed over."""
    found: list[int] = []
    while len(found) < number:
        client = next(candidates)
        if client not in found and client not in passed:
            found.append(client)
    return found


def largest_losses(
    known: Known, number: int, among: int, candidates: Iterator[int]
) -> list[int]:
    """Returns those of `among` candidates whose last loss is largest (rpow-d)."""
    left = drawn(candidates, among, set())
    chosen: list[int] = []
    for _ in range(number):
        best = left[0]
        for client in left[1:]:
            if known.losses.get(client, math.inf) > known.losses.get(best, math.inf):
                best = client
        chosen.append(best)
        left.remove(best)
    return chosen


class Oort:
    """Algorithm 1 of Lai et al. (2021), as evidence/pages/worlds.md has it.

    Args:
        options: of the scenario.
        num_clients: K.
        samples: of a job.
        candidates: clients by their chances.
        uniforms: the next n numbers in (0, 1).
    """

    def __init__(
        self,
        options: dict[str, Any],
        num_clients: int,
        samples: int,
        candidates: Iterator[int],
        uniforms: Callable[[int], list[float]],
    ) -> None:
        self.options, self.num_clients, self.samples = options, num_clients, samples
        self.candidates, self.uniforms = candidates, uniforms
        self.epsilon, self.choice, self.last = options["exploration"], 0, {}

    def select(self, known: Known, number: int) -> list[int]:
        o = self.options
        self.choice += 1
        self.epsilon = max(self.epsilon * o["decay"], o["least"])
        tried = [c for c in range(self.num_clients) if c in known.losses]
        new = self.num_clients - len(tried)
        explore = min(math.floor(number * self.epsilon + self.uniforms(1)[0]), new)
        exploit = min(number - explore, len(tried))
        explore = min(number - exploit, new)
        found = self.exploited(known, tried, exploit) if exploit else []
        found += drawn(self.candidates, explore, set(tried))
        for client in found:
            self.last[client] = self.choice
        return found

    def exploited(self, known: Known, tried: list[int], number: int) -> list[int]:
        o, scores = self.options, {}
        worth = {c: self.samples * known.losses[c] for c in tried}
        ranked = sorted(worth.values())
        clip = ranked[min(int(len(ranked) * o["clip"]), len(ranked) - 1)]
        low = 0.999 * ranked[0]
        for client in tried:
            score = (min(worth[client], clip) - low) / max(ranked[-1] - low, 1e-4)
            score += math.sqrt(0.1 * math.log(self.choice) / self.last[client])
            if known.seconds[client] > o["seconds"]:
                score *= (o["seconds"] / known.seconds[client]) ** o["penalty"]
            scores[client] = score
        enough = sorted(scores.values(), reverse=True)[number - 1] * o["cut_off"]
        fit = [c for c in tried if scores[c] >= enough]
        # Exponential clocks of these rates: the first to ring are drawn by the rates.
        rings = {
            c: -math.log(u) / scores[c]
            for c, u in zip(fit, self.uniforms(len(fit)), strict=True)
        }
        return sorted(fit, key=rings.__getitem__)[:number]
