"""Groups of clients: the laws of their stages."""

from fractions import Fraction

import numpy as np

from .clients import Behaviour, Clients
from .delays import StageDelays
from .laws.base import AnyLaw, Draws, DurationSampler, Population
from .laws.scaled import SummedSampler
from .presence import Renewal, Turns
from .streams import Purpose
from .workload import Workload


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

    def renewal(self, turns: Turns) -> Renewal:
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
        size, streams, first, _ = self.population
        adds = purpose == Purpose.COMPUTE and self._sums
        each = int(max(self.amounts)) if adds else 1
        return StageDelays(law, purpose, streams, size, tick, first, each)


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
