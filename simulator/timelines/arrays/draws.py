"""Durations of one stage for many clients at once: those that `StageDelays` draws."""

import numpy as np
from jaxtyping import Int

from ...world.laws.base import Draws, Durations
from ...world.streams import Purpose
from ...world.world import World


class StageDraws:
    """Successive durations of one stage of every client.

    Args:
        world: World whose groups of clients have the laws.
        purpose: Purpose of the stage's draws.
    """

    def __init__(self, world: World, purpose: Purpose) -> None:
        self._world, self._purpose = world, purpose
        self._laws = [group.laws.get(purpose) for group in world.groups]
        self._firsts = [group.population.first for group in world.groups]
        if purpose in world.delays.shared:
            self._laws, self._firsts = [world.delays.shared[purpose]], [0]
        self._tick = world.tick
        self._position = np.zeros(world.num_clients, np.int64)
        self.exists = any(self._laws)
        """Whether the stage takes time in any group."""

    def next(
        self, clients: Int[np.ndarray, " C"], counts: Int[np.ndarray, " C"] | int
    ) -> Durations:
        """Returns the next durations of some clients, one client's after another's.

        Args:
            clients: Their numbers, each once.
            counts: How many of each, or of all.
        """
        world = self._world
        dtype = np.float64 if self._tick is None else np.int64
        if len(self._laws) == 1:
            return self._draw(0, clients, counts).astype(dtype, copy=False)
        each = np.broadcast_to(counts, clients.shape)
        group_of = world.groups.of[clients]
        found = np.zeros(int(each.sum()), dtype)
        owner = np.repeat(group_of, each)
        for group, law in enumerate(self._laws):
            mine = group_of == group
            if law is not None and mine.any():
                own = counts if isinstance(counts, int) else counts[mine]
                found[owner == group] = self._draw(group, clients[mine], own)
        return found

    def _draw(
        self, group: int, clients: np.ndarray, counts: np.ndarray | int
    ) -> np.ndarray:
        law, world, first = self._laws[group], self._world, self._firsts[group]
        position = self._position[clients]
        self._position[clients] += counts
        if isinstance(counts, int):
            uniform = world.streams.rectangle(self._purpose, clients, position, counts)
            at = (position[:, None] + np.arange(counts)).ravel()
            who = np.repeat(clients, counts)
            uniform = uniform.ravel()
        else:
            ends = np.cumsum(counts)
            who = np.repeat(clients, counts)
            at = np.arange(who.size) + np.repeat(position - ends + counts, counts)
            uniform = world.streams.scattered(self._purpose, who, at)
        assert law is not None
        return law.draw(Draws(uniform, who - first, at), self._tick)
