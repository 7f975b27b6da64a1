"""Jobs that begin at times of their own: an open system."""

from collections.abc import Callable

import simpy

from ..config.errors import ScenarioError
from ..laws.base import Population
from .clients import OpenArrivals
from .power import Powers


class Starts:
    """The virtual times between the starts of jobs, of all clients together.

    Args:
        config: Options of a selection.
        draw: Returns the next draw of the law of gaps, in the clock's unit.
        population: All clients.
        env: The clock.
    """

    def __init__(
        self,
        config: OpenArrivals,
        draw: Callable[[int], int | float],
        population: Population,
        env: simpy.Environment,
    ) -> None:
        self._draw, self._env = draw, env
        self._rate = Powers(config.rate, population) if config.rate else None

    def gap(self) -> int | float:
        """Returns the time from now to the next start, in the clock's unit.

        Raises:
            ScenarioError: The law has drawn no time at all.
        """
        drawn = self._draw(0)
        if drawn <= 0:
            raise ScenarioError(
                "clients.selection.arrivals.gap must be > 0 in each draw, got 0; take "
                "a law without zeros"
            )
        if self._rate is None:
            return drawn
        return self._rate.duration(0, self._env.now, drawn)
