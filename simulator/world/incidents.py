"""What goes wrong in a world, written down when known and handed over in order."""

from math import inf, nextafter
from typing import TYPE_CHECKING

import numpy as np

from ..timeline import Incident, Incidents

if TYPE_CHECKING:
    from .world import World


class IncidentLog:
    """The incidents of a world.

    Args:
        world: The world.
    """

    def __init__(self, world: "World") -> None:
        self._world = world
        self._entries: list[tuple[float, int, Incident, int]] = []

    def add(self, time: float, client: int, what: Incident, count: int) -> None:
        """Writes down an incident, at a time in the clock's unit."""
        tick = self._world.tick
        seconds = time if tick is None else self._world.seconds([time])[0]
        self._entries.append((float(seconds), client, what, count))

    def take(self, until: float, *, final: bool = True) -> Incidents:
        """Hands over the incidents up to a time in virtual seconds, in order.

        Args:
            until: Virtual seconds.
            final: Whether nothing more can happen at that instant; else what has
                happened then is kept back, since more may come before it in order.
        """
        last = until if final else nextafter(until, -inf)
        done = sorted(entry for entry in self._entries if entry[0] <= last)
        self._entries = [entry for entry in self._entries if entry[0] > last]
        time, client, what, count = zip(*done, strict=True) if done else ((),) * 4
        whole = (np.array(column, np.int32) for column in (client, what, count))
        return Incidents(np.array(time, np.float64), *whole)

    def gone(self) -> int:
        """Counts the clients that never come again, or are known to leave later."""
        later = {c for _, c, what, _ in self._entries if what is Incident.LEFT}
        world, now = self._world, self._world.env.now
        return sum(
            client in later or world.present_since(client, now) == inf
            for client in range(world.num_clients)
        )
