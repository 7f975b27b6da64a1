"""Successive durations of the stages of the clients' cycle, as laws draw them."""

from array import array
from collections.abc import Callable, Iterator
from fractions import Fraction
from operator import length_hint
from typing import TYPE_CHECKING

import numpy as np

from .laws.base import Draws, DurationSampler
from .streams import Purpose, Streams

if TYPE_CHECKING:
    from .world import World

Draw = Callable[[int], int | float]
"""Returns a client's next duration, in the clock's unit."""
LARGE = 256
"""Draws in a block. It changes no draw, only how many are made at once."""


def block_size(num_clients: int) -> int:
    """Returns how many draws of a client are made at once: fewer for more clients."""
    return LARGE if num_clients <= 2000 else 32 if num_clients <= 100_000 else 8


class StageDelays:
    """One stage of the cycle: successive durations of every client.

    Args:
        law: Sampler of the durations.
        purpose: Purpose of the stage's draws, part of their key.
        streams: Random streams of the run.
        num_clients: Number of clients.
        tick: Seconds of one tick, or None for a clock in seconds.
        first: Number of the first client.
        each: Draws that a duration takes.
    """

    def __init__(
        self,
        law: DurationSampler,
        purpose: Purpose,
        streams: Streams,
        num_clients: int,
        tick: Fraction | None,
        first: int = 0,
        each: int = 1,
    ) -> None:
        self._law, self._purpose, self._streams = law, purpose, streams
        self._tick, self._first = tick, first
        # Four at least, or a block might hold none that comes after its position.
        self._size = max(block_size(num_clients) // each, 4)
        self._ahead: dict[int, int | float] = {}
        self._position = array("q", bytes(8 * num_clients))
        self._block: list[Iterator[int | float]] = [iter(())] * num_clients

    def next(self, client: int) -> int | float:
        """Returns the client's next duration, in ticks or seconds."""
        own = client - self._first
        for duration in self._block[own]:
            return duration
        if client in self._ahead:
            return self._ahead.pop(client)
        position = self._position[own]
        skip, n = position % 4, self._size
        uniform = self._streams.uniforms(self._purpose, client, position - skip, n)
        self._position[own] = position - skip + n
        draws = Draws(uniform[skip:], own, position)
        self._block[own] = block = iter(self._law.draw(draws, self._tick).tolist())
        return next(block)

    def prefetch(self, clients: np.ndarray) -> None:
        """Draws the next duration of many clients at once, where there is none yet."""
        ahead, block = self._ahead, self._block
        new = [
            client
            for client in np.unique(clients).tolist()
            if client not in ahead and not length_hint(block[client - self._first])
        ]
        who = np.array(new, np.int64) - self._first
        position = np.frombuffer(self._position, np.int64)
        at = position[who]
        uniform = self._streams.scattered(self._purpose, who + self._first, at)
        position[who] += 1
        drawn = self._law.draw(Draws(uniform, who, at), self._tick)
        ahead.update(zip(new, drawn.tolist(), strict=True))


class Delays:
    """Durations of all stages, as their laws draw them.

    Args:
        world: World of the clients.
        shared: Laws of stages that are not those of groups.

    Attributes:
        draws: Returns a client's next duration of a stage, in the clock's unit.
        shared: As given.
    """

    def __init__(self, world: "World", shared: dict[Purpose, DurationSampler]) -> None:
        self.draws: dict[Purpose, Draw] = {}
        self.shared = shared
        self._groups, self._size = world.groups, world.num_clients
        self._stages: list[dict[int, StageDelays]] = []
        for purpose in Purpose:
            each = [group.stage(purpose, world.tick) for group in world.groups]
            stages = {n: stage for n, stage in enumerate(each) if stage is not None}
            if stages:
                self.draws[purpose] = self._together(stages)
                if purpose != Purpose.REFRESH:
                    self._stages.append(stages)
        for purpose, law in shared.items():
            size = world.num_clients
            stage = StageDelays(law, purpose, world.streams, size, world.tick)
            self.draws[purpose] = stage.next

    def prefetch(self, clients: np.ndarray) -> None:
        """Draws what many clients are about to need, all at once."""
        for stages in self._stages:
            for number, stage in stages.items():
                mine = clients
                if len(self._groups) > 1:
                    mine = clients[self._groups.of[clients] == number]
                if mine.size:
                    stage.prefetch(mine)

    def prefetch_everyone(self) -> None:
        """Draws the first durations of all clients, where there are many."""
        if block_size(self._size) < LARGE:
            self.prefetch(np.arange(self._size))

    def _together(self, stages: dict[int, StageDelays]) -> Draw:
        if len(self._groups) == 1:
            return stages[0].next
        group_of = self._groups.of.tolist()

        def draw(client: int) -> int | float:
            stage = stages.get(group_of[client])
            return stage.next(client) if stage else 0

        return draw
