"""The clock: events in virtual time on SimPy, in seconds or in integer ticks.

What is waited for is one bare SimPy event with a callback, not a process: nothing else
costs less per client.
"""

from collections.abc import Callable
from fractions import Fraction
from heapq import heappush
from math import nextafter
from typing import Any

import numpy as np
import simpy
from simpy.events import NORMAL, URGENT, EventPriority

from .feature import Then

AFTER_ARRIVALS = EventPriority(NORMAL + 1)
"""Priority of the end of a window: what arrives at that instant is still in it."""


class Clock:
    """Virtual time, and what happens in it.

    Attributes:
        env: SimPy's clock.
        tick: Seconds of its unit; None for a second.
        num_timers: Events planned of rules that come again and again, whatever else
            happens.
    """

    def __init__(self) -> None:
        self.env = self._clock()
        self.tick: Fraction | None = None
        self.num_timers = 0

    def _clock(self) -> simpy.Environment:
        """Returns the clock, at time 0."""
        return simpy.Environment(initial_time=0)

    def seconds(self, times: list[int] | list[float] | np.ndarray) -> np.ndarray:
        """Converts the clock's times to virtual seconds, float64."""
        if self.tick is None:
            return np.asarray(times, np.float64)
        ticks = np.asarray(times, np.int64)
        return ticks * self.tick.numerator / self.tick.denominator

    def clock(self, seconds: float) -> int | float:
        """Converts virtual seconds to the clock's last time that is no later."""
        if self.tick is None:
            return seconds
        return int(Fraction(repr(seconds)) / self.tick)

    def after(self, seconds: float) -> int | float:
        """Converts virtual seconds to the clock's first time that is later."""
        if self.tick is None:
            return nextafter(seconds, np.inf)
        return self.clock(seconds) + 1

    def call(self, delay: float, then: Then, argument: int) -> None:
        """Calls a function after a delay in the clock's unit."""
        self.call_at(self.env._now + delay, then, argument)

    def call_after(self, delay: float, then: Then, argument: int) -> None:
        """Does the same, without an event where there is no delay."""
        if delay > 0:
            self.call(delay, then, argument)
        else:
            then(argument)

    def call_at(self, time: float, then: Then, argument: int) -> None:
        """Calls a function at a time of the clock, or now if that is past."""
        env = self.env
        schedule(env, max(time, env._now), _happen, (then, argument))

    def call_first(self, time: float, then: Then, argument: int) -> None:
        """Calls a function at a time of the clock, before what happens then."""
        env = self.env
        schedule(env, max(time, env._now), _happen, (then, argument), URGENT)

    def call_last(self, delay: float, then: Then, argument: int) -> None:
        """Calls a function after a delay, when all arrivals of that instant are in."""
        env = self.env
        schedule(env, env._now + delay, _happen, (then, argument), AFTER_ARRIVALS)

    def ask(self, then: Then, argument: int) -> None:
        """Calls a function when the answers are those of all rows so far.

        That is at this instant, before anything else happens; to be called last.
        """
        env = self.env
        schedule(env, env._now, _ask, (then, argument), URGENT)

    @property
    def is_over(self) -> bool:
        """Whether nothing is planned but what comes again and again."""
        return len(self.env._queue) <= self.num_timers


class Question(Exception):  # noqa: N818
    """A world asks what its rows came to, before it continues."""

    def __init__(self, then: Then, argument: int) -> None:
        self._then, self._argument = then, argument

    def resume(self, clock: Clock) -> None:
        """Continues with what the answers are for."""
        clock.call_first(clock.env._now, self._then, self._argument)


def schedule(
    env: simpy.Environment,
    time: float,
    callback: Callable[[simpy.Event], None],
    value: Any,
    priority: EventPriority = NORMAL,
) -> None:
    """Does what simpy.Timeout does, for a time and not a delay, and checks nothing.

    No time here is before now or not finite: laws give no such durations.
    """
    event = simpy.Event(env)
    event._ok, event._value, event.callbacks = True, value, [callback]
    heappush(env._queue, (time, priority, next(env._eid), event))


def _ask(event: simpy.Event) -> None:
    raise Question(*event._value)


def _happen(event: simpy.Event) -> None:
    then, argument = event._value
    then(argument)
