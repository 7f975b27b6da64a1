"""Worlds that follow what was learned: plain loops over plain lists.

A linear model (softmax, a bias) is trained by clients whose local steps take times of
their own. Rules decide, from losses, norms or the objective, who is asked, who makes
how many local steps, and with how many contributions a buffer is applied.
"""

import heapq
import math
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from tests.reference.server_twin import Problem, objective, of_batch


class Task(NamedTuple):
    """What is learned, by whom.

    Attributes:
        problem: data and loss.
        batch: sample ids of (client, job), those of the first local step first.
        seconds: of (client, number of the client's local step in all).
        num_clients: K.
        size: samples of a local step.
        step_size: of clients and server.
        upload: seconds of a message.
    """

    problem: Problem
    batch: Callable[[int, int], np.ndarray]
    seconds: Callable[[int, int], float]
    num_clients: int
    size: int
    step_size: float
    upload: float = 0.0

    def start(self) -> np.ndarray:
        x, y = self.problem.features, self.problem.labels
        return np.zeros((int(y.max()) + 1, x.shape[1]))

    def objective(self, w: np.ndarray) -> float:
        return objective(self.problem, w)

    def slope(self, w: np.ndarray) -> float:
        """Returns the square of the norm of the objective's gradient."""
        whole = range(len(self.problem.labels))
        return float((of_batch(self.problem, w, whole)[1] ** 2).sum())

    def local(
        self, w: np.ndarray, client: int, job: int, steps: int
    ) -> tuple[float, np.ndarray]:
        """Returns the mean loss of a job's samples, and the sum of its gradients."""
        rows, own, total, losses = self.batch(client, job), w.copy(), 0.0 * w, []
        for q in range(steps):
            mine = rows[q * self.size : (q + 1) * self.size]
            loss, slope, _ = of_batch(self.problem, own, mine)
            own, total = own - self.step_size * slope, total + slope
            losses.append(loss)
        return float(np.mean(losses)), total


class Known(NamedTuple):
    """What rules know: the mean loss and the seconds of each client's last job."""

    losses: dict[int, float]
    seconds: dict[int, float]


class AdaComm:
    """Section 4 of Wang and Joshi (2019), with constant step sizes."""

    def __init__(self, interval: float, tau: int, gamma: float) -> None:
        self.interval, self.first_tau, self.tau, self.gamma = interval, tau, tau, gamma
        self.first, self.intervals = 0.0, 0

    def start(self, objective: float) -> None:
        self.first = objective

    def until(self, time: float, objective: Callable[[], float]) -> None:
        """Passes the ends of intervals before a time."""
        while (self.intervals + 1) * self.interval < time:
            self.intervals += 1
            wanted = math.ceil(math.sqrt(objective() / self.first) * self.first_tau)
            smaller = math.ceil(self.gamma * self.tau)
            self.tau = wanted if wanted < self.tau else smaller


def rounds(
    task: Task,
    number: int,
    plan: Callable[[Known], dict[int, int]],
    passed: Callable[[float, np.ndarray], None] = lambda *_: None,
) -> tuple[list[dict[int, int]], list[float], list[float]]:
    """Returns the clients with their steps, the end and the mean loss of each round.

    Args:
        task: what is learned.
        number: of rounds.
        plan: local steps of those who are asked, by what is known of last jobs.
        passed: hears the end of a round, and the model that held until then.
    """
    w, now, known = task.start(), 0.0, Known({}, {})
    jobs, made = [0] * task.num_clients, [0] * task.num_clients
    asked, ends, means = [], [], []
    for _ in range(number):
        steps, total = plan(known), 0.0 * w
        for client in sorted(steps):
            loss, message = task.local(w, client, jobs[client], steps[client])
            known.losses[client], total = loss, total + message / len(steps)
            last = made[client] + steps[client]
            took = sum(task.seconds(client, q) for q in range(made[client], last))
            known.seconds[client] = took + task.upload
            jobs[client], made[client] = jobs[client] + 1, last
        end = now + max(known.seconds[client] for client in steps)
        passed(end, w)
        w, now = w - task.step_size * total, end
        asked.append(steps)
        ends.append(now)
        means.append(float(np.mean([known.losses[c] for c in steps])))
    return asked, ends, means


def buffers(
    task: Task,
    number: int,
    size: int,
    resize: Callable[[int, list[int], dict[int, float], float], int],
    every: int,
    evaluated: int,
) -> tuple[list[int], list[float]]:
    """Returns the sizes and times of buffers whose size is set after some commits.

    Args:
        task: what is learned.
        number: of commits.
        size: of the first buffers.
        resize: the next size, by that so far, the stalenesses since it was set, the
            norms of clients' last messages and the square of the gradient's norm.
        every: commits after which it is set.
        evaluated: commits after which the gradient is evaluated.
    """
    w, version, gathered = task.start(), 0, []
    jobs, read = [0] * task.num_clients, [(w, 0)] * task.num_clients
    queue = [(task.seconds(c, 0), c) for c in range(task.num_clients)]
    heapq.heapify(queue)
    norms, stale, sizes, times = dict[int, float](), list[int](), [], []
    square = task.slope(w)
    while version < number:
        now, client = heapq.heappop(queue)
        at, since = read[client]
        _, message = task.local(at, client, jobs[client], 1)
        gathered.append(message)
        norms[client] = float(np.sqrt((message**2).sum()))
        stale.append(version - since)
        if len(gathered) >= size:
            w = w - task.step_size * np.mean(gathered, axis=0)
            sizes.append(len(gathered))
            times.append(now)
            version, gathered = version + 1, []
            if version % evaluated == 0:
                square = task.slope(w)
            if version % every == 0:
                size, stale = resize(size, stale, norms, square), []
        jobs[client] += 1
        read[client] = w, version
        heapq.heappush(queue, (now + task.seconds(client, jobs[client]), client))
    return sizes, times


def refilled(
    in_flight: int,
    refill: int,
    number: int,
    seconds: Callable[[int, int], float],
    candidates: Iterator[int],
) -> list[tuple[int, float, int]]:
    """Returns client, read time and read version of the jobs of each commit.

    Free places are filled with different clients as soon as there are `refill`.
    """
    jobs, queue, found = dict[int, int](), [], []
    now, version = 0.0, 0
    while version < number:
        if in_flight - len(queue) >= refill or not version:
            while len(queue) < in_flight:
                client = next(candidates)
                if client not in [c for _, c, *_ in queue]:
                    job = jobs[client] = jobs.get(client, -1) + 1
                    end = now + seconds(client, job)
                    queue.append((end, client, now, version))
        first = min(queue)
        queue.remove(first)
        now, client, *read = first
        found.append((client, *read))
        version += 1
    return found


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
