"""Schedules that follow what was learned: plain loops over plain lists.

A linear model (softmax, a bias) is trained by clients whose local steps take times of
their own. Rules decide, from losses, norms or the objective, who makes how many local
steps and with how many contributions a buffer is applied.
"""

import heapq
import math
from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np

from tests.reference.sgd_twin import loss_and_gradient


class Task(NamedTuple):
    """What is learned, by whom.

    Attributes:
        inputs: [N, P + 1], the last column ones.
        labels: [N].
        batch: sample ids of (client, job), those of the first local step first.
        seconds: of (client, number of the client's local step in all).
        num_clients: K.
        size: samples of a local step.
        step_size: of clients and server.
        l2: of all weights but the bias.
        upload: seconds of a message.
    """

    inputs: np.ndarray
    labels: np.ndarray
    batch: Callable[[int, int], np.ndarray]
    seconds: Callable[[int, int], float]
    num_clients: int
    size: int
    step_size: float
    l2: float
    upload: float = 0.0

    def start(self) -> np.ndarray:
        return np.zeros((self.inputs.shape[1], int(self.labels.max()) + 1))

    def gradient(self, w: np.ndarray, rows: np.ndarray) -> tuple[float, np.ndarray]:
        """Returns the mean loss of some rows, and the gradient with the regulariser."""
        found = loss_and_gradient(w, self.inputs[rows], self.labels[rows], "softmax")
        decay = self.l2 * w
        decay[-1] = 0
        return found[0] / len(rows), found[1] / len(rows) + decay

    def objective(self, w: np.ndarray) -> tuple[float, np.ndarray]:
        """Returns F and its gradient, on all rows."""
        loss, slope = self.gradient(w, np.arange(len(self.labels)))
        return loss + self.l2 / 2 * float((w[:-1] ** 2).sum()), slope

    def local(
        self, w: np.ndarray, client: int, job: int, steps: int
    ) -> tuple[float, np.ndarray]:
        """Returns the mean loss of a job's samples, and the sum of its gradients."""
        rows, own, total, losses = self.batch(client, job), w.copy(), 0.0 * w, []
        for q in range(steps):
            mine = rows[q * self.size : (q + 1) * self.size]
            loss, slope = self.gradient(own, mine)
            own, total = own - self.step_size * slope, total + slope
            losses.append(loss)
        return float(np.mean(losses)), total


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


def flad_steps(losses: dict[int, float], client: int, least: int, most: int) -> float:
    """FLAD (2024), with losses for scores: local steps of one client, not rounded."""
    mean = sum(losses.values()) / len(losses) if losses else 0.0
    behind = [loss for loss in losses.values() if loss >= mean]
    if client not in losses:
        return most
    if losses[client] < min(behind):  # stands in
        return least
    if len(set(behind)) < 2:
        return most
    share = (max(behind) - losses[client]) / (max(behind) - min(behind))
    return most - (most - least) * share


def flad(
    losses: dict[int, float], num_clients: int, places: int, least: int, most: int
) -> dict[int, int]:
    """FLAD (2024), with losses for scores: clients and their steps."""
    new = [c for c in range(num_clients) if c not in losses]
    mean = sum(losses.values()) / len(losses) if losses else 0.0
    behind = sorted(
        (c for c in losses if losses[c] >= mean), key=lambda c: (-losses[c], c)
    )
    chosen = (new + behind)[:places]
    return {c: math.floor(flad_steps(losses, c, least, most)) for c in chosen}


def rounds(
    task: Task,
    number: int,
    plan: Callable[[dict[int, float]], dict[int, int]],
    passed: Callable[[float, np.ndarray], None] = lambda *_: None,
) -> tuple[list[dict[int, int]], list[float], list[float]]:
    """Returns the clients with their steps, the end and the mean loss of each round.

    Args:
        task: what is learned.
        number: of rounds.
        plan: local steps of those who are asked, by the losses of last jobs.
        passed: hears the end of a round, and the model that held until then.
    """
    w, now, losses = task.start(), 0.0, dict[int, float]()
    jobs, made = [0] * task.num_clients, [0] * task.num_clients
    asked, ends, means = [], [], []
    for _ in range(number):
        steps = plan(losses)
        total, ended = 0.0 * w, []
        for client in sorted(steps):
            loss, message = task.local(w, client, jobs[client], steps[client])
            losses[client], total = loss, total + message / len(steps)
            last = made[client] + steps[client]
            took = sum(task.seconds(client, q) for q in range(made[client], last))
            ended.append(now + took + task.upload)
            jobs[client], made[client] = jobs[client] + 1, last
        passed(max(ended), w)
        w, now = w - task.step_size * total, max(ended)
        asked.append(steps)
        ends.append(now)
        means.append(float(np.mean([losses[c] for c in steps])))
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
    square = float((task.objective(w)[1] ** 2).sum())
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
                square = float((task.objective(w)[1] ** 2).sum())
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
    limit: Callable[[list[int]], int] | None = None,
) -> list[tuple[int, float, int]]:
    """Returns client, read time and read version of the jobs of each commit.

    Free places are filled with different clients as soon as there are `refill`. How
    many jobs may be under way is said by `limit` of all staleness so far, if given.
    """
    jobs, queue, found, stale = dict[int, int](), [], [], list[int]()
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
        stale.append(version - read[1])
        in_flight = limit(stale) if limit else in_flight
        version += 1
    return found


def limit_by_staleness(
    most: int, target: float, every: int
) -> Callable[[list[int]], int]:
    """Returns a function of all staleness so far that says how many jobs may be."""

    def limit(stale: list[int]) -> int:
        jobs, start = most, most
        while len(stale) >= start + every:
            total = sum(stale[start : start + every]) or 1
            wanted = round(1 + (jobs - 1) * target * every / total)
            wanted = min(max(2, wanted), most)
            start += every + (0 if wanted == jobs else max(wanted, jobs))
            jobs = wanted
        return jobs

    return limit
