"""Ways of being available: when each client is there to begin a job.

A way is one class: its options, checks, and the presence that it makes.
"""

from collections.abc import Sequence
from itertools import pairwise
from math import inf
from typing import Annotated, Literal

import numpy as np
from jaxtyping import Float
from pydantic import Field

from ..files.reading import files
from ..files.reading.columns import measurements
from ..parts.base import FilePath, Part
from ..parts.errors import DataError, ScenarioError
from .laws.base import AlternatingLaws, AnyLaw, ClientValues, Population, check_cycle
from .laws.distributions import Parameter
from .presence import Presence
from .streams import Purpose


class Availability(Part):
    """A way of being available: its options, which a scenario chooses by `kind`.

    A client must be there to begin a job, and then finishes it.
    """

    @property
    def turns(self) -> AlternatingLaws | None:
        """Laws of times there and away, where each client has these by turns."""
        return None

    def check(self, num_clients: int, name: str) -> None:
        """Refuses what `num_clients` clients cannot have.

        Raises:
            LocatedError: Saying what and what to do.
        """

    def make(self, population: Population) -> Presence:
        raise NotImplementedError


class OnOff(Availability):
    """Available and unavailable by turns, for independent times of two laws.

    Every client begins available, at the start of an available time.
    """

    kind: Literal["on_off"] = "on_off"
    on: AnyLaw
    """Law of virtual seconds of an available time."""
    off: AnyLaw
    """Law of virtual seconds of an unavailable time."""

    @property
    def turns(self) -> AlternatingLaws:
        return (Purpose.AVAILABLE, self.on), (Purpose.UNAVAILABLE, self.off)

    def check(self, num_clients: int, name: str) -> None:
        check_cycle({f"{name}.off": self.off, f"{name}.on": self.on}, num_clients)


class Periodic(Availability):
    """Available for the first part of every period, such as a night."""

    kind: Literal["periodic"] = "periodic"
    period: Annotated[float, Field(gt=0)] = 86_400.0
    """Virtual seconds."""
    on: Annotated[float, Field(gt=0, le=1)]
    """Part of the period for which the client is available."""
    phase: Parameter = 0
    """Virtual seconds by which the client's period begins earlier than time 0."""

    def make(self, population: Population) -> Presence:
        return PeriodicPresence(self, population)


class Traced(Availability):
    """Available in the intervals of a CSV or Parquet file, and at no other time.

    Columns: `client` (from 1), `start` and `end` (virtual seconds; `end` excluded).
    """

    kind: Literal["trace"] = "trace"
    path: FilePath
    """File with the intervals."""
    period: Annotated[float, Field(gt=0)] | None = None
    """Virtual seconds after which the file begins again, as traces of a week do; by
    default a client is gone after its last interval."""

    def make(self, population: Population) -> Presence:
        path = files.located(self.path, "clients.availability.path")
        columns = measurements(path, ("client", "start", "end"))
        owner, start, end = (columns[name] for name in ("client", "start", "end"))
        wrong = ~(end > start)
        if wrong.any():
            row = int(wrong.argmax())
            raise DataError(
                f"{path} must have every end after its start, got {end[row]:g} after "
                f"{start[row]:g} in row {row + 1}; correct it"
            )
        outside = (start < 0) | (end > (self.period or inf))
        if self.period is not None and outside.any():
            row = int(outside.argmax())
            raise DataError(
                f"{path} must lie within the period of {self.period:g} s, got "
                f"{start[row]:g} to {end[row]:g} in row {row + 1}; correct it or "
                f"clients.availability.period"
            )
        intervals = []
        for client in range(population.first, population.first + population.size):
            mine = np.stack([start, end], axis=1)[owner == client + 1]
            mine = mine[np.argsort(mine[:, 0])]
            for (_, before), (after, _) in pairwise(mine):
                if after < before:
                    raise ScenarioError(
                        f"{path} must have intervals that do not overlap, got one of "
                        f"client {client + 1} from {after:g} before the end "
                        f"{before:g} of another; join them"
                    )
            intervals.append(mine)
        periods = [self.period] * population.size
        return TracedPresence(intervals, population.first, periods)


class PeriodicPresence(Presence):
    """There for the first part of every period."""

    def __init__(self, config: Periodic, population: Population) -> None:
        self._period, self._on = config.period, config.on * config.period
        self._first = population.first
        self._phase = ClientValues.given(config.phase, population, "phase")

    def since(self, client: int, time: float) -> float:
        phase = float(self._phase.of(client - self._first))
        within = (time + phase) % self._period
        if self._period - within < 1e-9 * self._period:
            within = 0.0  # the start of a period, but for rounding
        return time if within < self._on else time + self._period - within


class TracedPresence(Presence):
    """There in given intervals, once or in every period of a client's own."""

    def __init__(
        self,
        intervals: list[Float[np.ndarray, "_ 2"]],
        first: int,
        periods: Sequence[float | None],
    ) -> None:
        self._intervals, self._first, self._periods = intervals, first, periods

    def since(self, client: int, time: float) -> float:
        mine, since = self._intervals[client - self._first], 0.0
        period = self._periods[client - self._first]
        if period is not None:
            since = time // period * period
        at = int(np.searchsorted(mine[:, 1], time - since, side="right"))
        if at < len(mine):
            return max(time, since + float(mine[at, 0]))
        if period is None or not len(mine):
            return inf
        return since + period + float(mine[0, 0])
