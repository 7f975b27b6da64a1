"""Durations that were measured, from a file."""

from fractions import Fraction
from typing import Literal

import numpy as np
from jaxtyping import Float

from ...files.reading import files
from ...files.reading.columns import measurements
from ...parts.base import FilePath
from ...parts.errors import ScenarioError
from ...world.laws.base import Draws, Durations, DurationSampler, Law, Population


class Empirical(Law):
    """Durations that were measured: a column of a CSV or Parquet file.

    `resample` draws them independently with equal chances; `replay` takes them in the
    file's order, and begins again at its end.
    """

    law: Literal["empirical"] = "empirical"
    path: FilePath
    """Path of the file, in the working folder or the data folder."""
    column: str
    """Name of the column of durations, virtual seconds."""
    client: str | None = None
    """Column of client numbers from 1: each client has the rows of its number."""
    order: Literal["resample", "replay"] = "resample"
    """Draws at random, or one after the other as measured."""

    @property
    def has_quantiles(self) -> bool:
        return self.order == "resample"

    def make(self, population: Population) -> "EmpiricalSampler":
        """Reads the file.

        Raises:
            DataError: a file that is not there or damaged, or a column that is not in
                it.
            ScenarioError: numbers that are no durations, or none for some client.
        """
        path = files.located(self.path, f"{population.stage}.path")
        wanted = [self.column] + ([self.client] if self.client else [])
        columns = measurements(path, wanted)
        durations = columns[self.column]
        wrong = durations < 0
        if wrong.any():
            row = int(wrong.argmax())
            raise ScenarioError(
                f"column {self.column!r} of {path} must hold durations >= 0, got "
                f"{durations[row]} in row {row + 1}; correct it"
            )
        if not durations.any():
            raise ScenarioError(
                f"column {self.column!r} of {path} must hold a duration above 0, got "
                "none; time would not advance"
            )
        replay = self.order == "replay"
        if self.client is None:
            return EmpiricalSampler([durations], replay=replay)
        owner, first = columns[self.client], population.first
        numbers = range(first + 1, first + population.size + 1)
        values = [durations[owner == number] for number in numbers]
        for number, mine in zip(numbers, values, strict=True):
            if not mine.any():
                raise ScenarioError(
                    f"{path} must hold a duration above 0 for every client, got none "
                    f"for client {number} in column {self.client!r}; add rows"
                )
        return EmpiricalSampler(values, replay=replay)


class EmpiricalSampler(DurationSampler):
    """Measured durations, resampled or replayed.

    Args:
        values: Durations of all clients together, or an array for each client.
        replay: Whether they are taken in order.
    """

    def __init__(self, values: list[Float[np.ndarray, " _"]], *, replay: bool) -> None:
        self._one, self._replay = len(values) == 1, replay
        if not replay:  # in order, so that draws are quantiles
            values = [np.sort(part) for part in values]
        self._values = np.concatenate(values)
        self._length = np.array([part.size for part in values])
        self._start = np.cumsum(self._length) - self._length

    def draw(self, draws: Draws, tick: Fraction | None) -> Durations:
        who = 0 if self._one else draws.who
        length, start = self._length[who], self._start[who]
        if self._replay:
            within = draws.positions % length
        else:
            within = (draws.uniform * length).astype(np.int64)
        return self._values[start + within]
