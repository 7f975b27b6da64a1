"""How long the stages of the clients' cycle take: groups, their laws, and draws."""

from array import array
from collections.abc import Callable, Iterator
from fractions import Fraction
from operator import length_hint
from typing import TYPE_CHECKING

import numpy as np

from .clients import Behaviour, Clients
from .laws.base import AlternatingLaws, AnyLaw, Draws, DurationSampler, Population
from .laws.scaled import SummedSampler
from .presence import Renewal
from .streams import Purpose
from .workload import Workload

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
        population: The clients.
        tick: Seconds of one tick, or None for a clock in seconds.
        each: Draws that a duration takes.
    """

    def __init__(
        self,
        law: DurationSampler,
        purpose: Purpose,
        population: Population,
        tick: Fraction | None,
        each: int = 1,
    ) -> None:
        num_clients, self._streams, self._first, _ = population
        self._law, self._purpose, self._tick = law, purpose, tick
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


class ClientGroup:
    """One group of clients: the laws of its stages, and how much a job has to do.

    Args:
        config: Entries of the group in the scenario.
        population: Clients of the group.
        workload: Work of their jobs.
        summed: Whether a draw is a whole job's, where it adds up those of its steps.
    """

    def __init__(
        self,
        config: Behaviour,
        population: Population,
        workload: Workload | None = None,
        *,
        summed: bool = True,
    ) -> None:
        self.config, self.population = config, population
        self._sums = summed and config.adds_draws
        laws = {
            Purpose.IDLE: config.idle,
            Purpose.READ: config.read,
            Purpose.COMPUTE: config.compute,
            Purpose.RESTART: config.restart,
            Purpose.UPLOAD: config.upload.latency if config.upload else None,
            Purpose.DOWNLOAD: config.download.latency if config.download else None,
        }
        self.laws: dict[Purpose, DurationSampler] = {
            purpose: self.law(law, purpose) for purpose, law in laws.items() if law
        }
        self.amounts = self._add_up(workload or Workload())
        """Steps, samples or operations of each client's job; 1 where a draw of
        `compute` is a whole job's."""

    def stage(self, purpose: Purpose, tick: Fraction | None) -> StageDelays | None:
        """Returns the stage of a purpose, if it takes time."""
        if purpose not in self.laws:
            return None
        return self._stage(self.laws[purpose], purpose, tick)

    def _add_up(self, workload: Workload) -> list[float]:
        """Lets jobs take the sum of their steps' draws; returns how many they have."""
        config, population = self.config, self.population
        size, _, first, _ = population
        clients = range(first, first + size)
        amounts = [workload.amount(config.compute_per, each) for each in clients]
        if config.compute is not None:
            law = self.laws[Purpose.COMPUTE]
            # What remembers a client's draws does so for each use apart.
            apart = config.compute.remembers
            self.laws[Purpose.REFRESH] = (
                self.law(config.compute, Purpose.COMPUTE) if apart else law
            )
            if self._sums:
                numbers = np.array(amounts, np.int64)
                self.laws[Purpose.COMPUTE] = SummedSampler(
                    law, numbers, Purpose.COMPUTE, population
                )
        return amounts

    def renewal(self, turns: AlternatingLaws) -> Renewal:
        """Returns a process that is on and off by turns."""
        first = self.population.first
        stages = [self._stage(self.law(law, at), at, None) for at, law in turns]
        draw_on, draw_off = (stage.next for stage in stages)
        return Renewal(draw_on, draw_off, self.population.size, first)

    def medians(self) -> list[float]:
        """Returns each client's median computing time by its law, slowdowns apart.

        Where a job's time is a sum of draws, it is the sum of their medians.
        """
        size = self.population.size
        half = Draws(np.full(size, 0.5), np.arange(size), np.zeros(size, int))
        law = self.laws.get(Purpose.REFRESH)
        times = np.zeros(size) if law is None else law.draw(half, None)
        return (times * np.array(self.amounts)).tolist()

    def law(self, law: AnyLaw, purpose: Purpose) -> DurationSampler:
        """Returns a sampler of a law's durations for the group's clients."""
        stage = f"clients.{purpose.name.lower()}"
        return law.make(self.population._replace(stage=stage))

    def _stage(
        self, law: DurationSampler, purpose: Purpose, tick: Fraction | None
    ) -> StageDelays:
        adds = purpose == Purpose.COMPUTE and self._sums
        each = int(max(self.amounts)) if adds else 1
        return StageDelays(law, purpose, self.population, tick, each)


class Groups(list[ClientGroup]):
    """All groups of clients, one after the other.

    Args:
        clients: Clients of the scenario; None for a world without.
        everyone: All clients.
        workload: Work of their jobs.
        summed: As `ClientGroup` has it.

    Attributes:
        of: Group of each client.
    """

    def __init__(
        self,
        clients: Clients | None,
        everyone: Population,
        workload: Workload,
        *,
        summed: bool,
    ) -> None:
        super().__init__()
        self.of = np.zeros(everyone.size, np.int32)
        for first, size, config in clients.behaviours(everyone.size) if clients else ():
            self.of[first : first + size] = len(self)
            own = everyone._replace(size=size, first=first)
            self.append(ClientGroup(config, own, workload, summed=summed))


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
        everyone = Population(world.num_clients, world.streams)
        for purpose, law in shared.items():
            stage = StageDelays(law, purpose, everyone, world.tick)
            self.draws[purpose] = stage.next

    def prefetch(self, clients: np.ndarray) -> None:
        """Draws the next values of many clients, all at once."""
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
