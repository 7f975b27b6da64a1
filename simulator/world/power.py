"""Computing power that changes over time: the universal computation model."""

from bisect import bisect_right
from collections.abc import Callable, Sequence
from math import inf
from typing import TYPE_CHECKING

import numpy as np
from typing_extensions import override

from ..files.reading import files
from ..files.reading.columns import measurements
from ..parts.errors import DataError
from ..parts.expressions import SLACK, up
from .clients import Power, table_mistake
from .cycle import Duration, Feature
from .laws.base import ClientValues, Population
from .streams import Purpose

if TYPE_CHECKING:
    from .delays import Groups

Work = Callable[[float, float], float]
"""How long some work takes: of the moment at which it begins, virtual seconds, and the
seconds that it would take at a power of 1."""


class PowerTable:
    """A power that is constant between moments; its integral in closed form.

    Args:
        times: Moments from which on each power holds, seconds; the first is 0.
        values: Powers, seconds of work a second, >= 0.
        period: Seconds after which the table begins again; None where its last power,
            above 0, holds for ever.
    """

    def __init__(
        self, times: Sequence[float], values: Sequence[float], period: float | None
    ) -> None:
        self._times, self._values = list(times), list(values)
        self._ends = [*self._times[1:], inf if period is None else period]
        self._period = period
        pieces = zip(self._times, self._ends, self._values, strict=True)
        self._whole = 0.0
        if period is not None:
            self._whole = sum((end - start) * value for start, end, value in pieces)

    def duration(self, start: float, work: float) -> float:
        """Returns the duration of some work: until the integral has reached it.

        Args:
            start: Moment at which the work begins, seconds from the table's start.
            work: Seconds that it would take at a power of 1.
        """
        passed, left, time = 0.0, work, start
        slack = SLACK * work  # what ends with its interval must not wait for the next
        if work <= 0:
            return 0.0
        if self._period is not None:
            # Some work of the last turn is left: it may end before a time of power 0.
            time, turns = start % self._period, up(work / self._whole) - 1
            passed, left = turns * self._period, work - turns * self._whole
        at = bisect_right(self._times, time) - 1
        while True:
            value, rest = self._values[at], self._ends[at] - time
            if value > 0 and value * rest >= left - slack:
                return passed + left / value
            passed, left = passed + rest, left - value * rest
            at = (at + 1) % len(self._times)
            time = self._times[at]


def powers(config: Power, population: Population) -> list[Work]:
    """Returns the duration of each client's work, as a function of its start.

    Raises:
        DataError: A file that is not there or damaged, or whose table is none.
    """
    phase = ClientValues.given(config.phase, population, "power.phase")
    if config.path is None:
        one = PowerTable(config.times, config.values, config.period)
        tables = [one] * population.size
    else:
        tables = _read(config, config.path, population)

    def of(own: int) -> Work:
        earlier, duration = float(phase.of(own)), tables[own].duration
        return lambda start, work: duration(start + earlier, work)

    return [of(own) for own in range(population.size)]


class ComputingPower(Feature):
    """Power that changes over time, where clients have such."""

    def __init__(self, groups: "Groups") -> None:
        self._powers: list[Work | None] = []
        for group in groups:
            config, population = group.config.power, group.population
            always = [None] * population.size
            self._powers += powers(config, population) if config else always

    @override
    def duration(self, purpose: Purpose, takes: Duration) -> Duration:
        if purpose is not Purpose.COMPUTE:
            return takes

        def compute(client: int, job: int, time: float) -> float:
            work, power = takes(client, job, time), self._powers[client]
            return work if power is None else power(time, work)

        return compute


def _read(config: Power, where: str, population: Population) -> list[PowerTable]:
    path = files.located(where, "clients.power.path")
    columns = measurements(path, ("client", "time", "power"))
    tables = []
    for number in range(population.first + 1, population.first + population.size + 1):
        rows = np.flatnonzero(columns["client"] == number)
        times = columns["time"][rows].tolist()
        values = columns["power"][rows].tolist()
        if wrong := table_mistake(times, values, config.period):
            raise DataError(f"{path} must hold {wrong} (client {number}); correct it")
        tables.append(PowerTable(times, values, config.period))
    return tables
