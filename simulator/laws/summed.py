"""Sums of successive draws of a law: the time of a job of several steps."""

from fractions import Fraction

import numpy as np
from jaxtyping import Int

from ..streams import Purpose
from .base import Draws, Durations, DurationSampler, Population

AT_ONCE = 1 << 16
"""Draws that are made and added at once, whatever the number of jobs."""


class SummedSampler:
    """Sums of successive draws, as many as a client's job has steps.

    A job's draws are its client's next ones, each keyed by its own position, so that
    they do not depend on how many jobs are drawn together.

    Args:
        law: Law of one step.
        number: Steps of each client's job.
        purpose: Purpose of the draws, part of their key.
        population: The clients.
    """

    def __init__(
        self,
        law: DurationSampler,
        number: Int[np.ndarray, " K"],
        purpose: Purpose,
        population: Population,
    ) -> None:
        self._law, self._number, self._purpose = law, number, purpose
        self._streams, self._first = population.streams, population.first

    def lattice(self) -> set[Fraction] | None:
        """Returns the steps of the law that is added up."""
        return self._law.lattice()

    def draw(self, draws: Draws, tick: Fraction | None) -> Durations:
        """Returns sums of draws; only the clients and positions of `draws` matter."""
        position = draws.positions
        who = np.broadcast_to(np.asarray(draws.who), position.shape)
        found = np.empty(position.size, np.float64 if tick is None else np.int64)
        numbers = self._number[who]
        for number in np.unique(numbers).tolist():
            jobs = np.flatnonzero(numbers == number)
            rows = max(1, AT_ONCE // number)
            for start in range(0, jobs.size, rows):
                part = jobs[start : start + rows]
                owner, first = who[part], position[part] * number
                uniform = self._streams.rectangle(
                    self._purpose, owner + self._first, first, number
                )
                at = first[:, None] + np.arange(number)
                each = Draws(uniform.ravel(), np.repeat(owner, number), at.ravel())
                steps = self._law.draw(each, tick).reshape(-1, number)
                found[part] = steps.sum(axis=1)
        return found
