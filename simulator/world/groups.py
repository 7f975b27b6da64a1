"""One group of clients: its stages, links, presence and faults."""

from fractions import Fraction

import numpy as np

from ..laws.base import AnyLaw, DurationSampler, Population
from ..laws.parameters import ClientValues
from ..laws.scaled import SummedSampler
from ..streams import Purpose
from . import faults
from .clients import Behaviour
from .delays import StageDelays
from .power import Powers
from .presence import Lasting, Membership, Presence, Renewal, Turns
from .workload import Workload


class ClientGroup:
    """One group of clients: its stages, links, presence and faults.

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
        self.bandwidth = {
            way: ClientValues.given(link.bandwidth, population, f"{way.name}.bandwidth")
            for way, link in (
                (Purpose.UPLOAD, config.upload),
                (Purpose.DOWNLOAD, config.download),
            )
            if link is not None and link.bandwidth is not None
        }
        self.presences: list[Presence] = []
        """Presences that a client needs to start a job."""
        self.lasting: list[Lasting] = []
        """Presences that a client needs until its job has ended."""
        self.membership: Membership | None = None
        """From when until when clients belong to the world; None for always."""
        self._add_presences()
        self.powers = Powers(config.power, population) if config.power else None
        """Computing power of the group's clients, where it changes over time."""
        loss, streams = config.loss, population.streams
        self.lossy = faults.Lossy(loss, streams) if loss is not None else None

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

    def _add_presences(self) -> None:
        config, population = self.config, self.population
        if (availability := config.availability) is not None:
            turns = availability.turns
            made = self.renewal(turns) if turns else availability.make(population)
            self.presences.append(made)
        if config.leave is not None or config.join != 0:
            self.membership = Membership(config.join, config.leave, population)
            self.lasting.append(self.membership)
        if config.crashes is not None:
            self.lasting.append(self.renewal(config.crashes.turns))
        self.presences += self.lasting

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
