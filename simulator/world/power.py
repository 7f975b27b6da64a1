"""Computing power that changes over time: the universal computation model."""

from bisect import bisect_right
from collections.abc import Sequence
from math import inf

import numpy as np
from typing_extensions import override

from ..config.errors import DataError
from ..config.expressions import SLACK, up
from ..laws.base import Population
from ..laws.parameters import ClientValues
from ..storage import arrow, files
from ..streams import Purpose
from .clients import Power, table_mistake
from .feature import Duration, Feature
from .groups import Groups


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
        """Returns how long some work takes: until the integral has reached it.

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


class Powers:
    """The powers of a group of clients.

    Args:
        config: Table of the scenario.
        population: Clients of the group.

    Raises:
        DataError: A file that is not there or damaged, or whose table is none.
    """

    def __init__(self, config: Power, population: Population) -> None:
        self._first = population.first
        self._phase = ClientValues.given(config.phase, population, "power.phase")
        if config.path is None:
            one = PowerTable(config.times, config.values, config.period)
            self._tables = [one] * population.size
        else:
            self._tables = _read(config, config.path, population)

    def duration(self, client: int, start: float, work: float) -> float:
        """Returns how long some work of a client takes.

        Args:
            client: Number of the client, from 0.
            start: Virtual second at which it begins.
            work: Seconds that it would take at a power of 1.
        """
        own = client - self._first
        return self._tables[own].duration(start + float(self._phase.of(own)), work)


class ComputingPower(Feature):
    """Power that changes over time, where clients have such.

    Args:
        groups: Groups of clients.
    """

    def __init__(self, groups: Groups) -> None:
        self._groups = groups
        self._powers = [
            Powers(group.config.power, group.population) if group.config.power else None
            for group in groups
        ]

    @override
    def duration(self, purpose: Purpose, takes: Duration) -> Duration:
        if purpose is not Purpose.COMPUTE:
            return takes
        powers = [self._powers[number] for number in self._groups.of]

        def compute(client: int, job: int, time: float) -> float:
            work, own = takes(client, job, time), powers[client]
            return work if own is None else own.duration(client, time, work)

        return compute


def _read(config: Power, where: str, population: Population) -> list[PowerTable]:
    path = files.located(where, "clients.power.path")
    columns = arrow.measurements(path, ("client", "time", "power"))
    tables = []
    for number in range(population.first + 1, population.first + population.size + 1):
        rows = np.flatnonzero(columns["client"] == number)
        times = columns["time"][rows].tolist()
        values = columns["power"][rows].tolist()
        if wrong := table_mistake(times, values, config.period):
            raise DataError(f"{path} must hold {wrong} (client {number}); correct it")
        tables.append(PowerTable(times, values, config.period))
    return tables
