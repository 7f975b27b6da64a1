"""The pace of clients: by what their draws are multiplied, whatever the reason."""

from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Float, Int
from typing_extensions import override

from .clients import Behaviour
from .feature import Duration, Feature
from .groups import ClientGroup
from .laws.base import Population
from .shared_slowdown import SharedFactors
from .slowdowns import Factor, Slowdown
from .streams import Purpose

if TYPE_CHECKING:
    from .features import WorldOptions
    from .world import World


class ClientPace(Feature):
    """Amounts of work and slowdowns: both multiply draws.

    Args:
        world: World of the clients.
        options: Slowdowns of its clients, and whether jobs are given local steps, by
            which they are multiplied apart.

    Attributes:
        in_turn: Whether durations depend on when they begin.
    """

    def __init__(self, world: "World", options: "WorldOptions") -> None:
        self._world = world
        self._amounts = [
            1 if group.config.adds_draws or options.job_steps is not None else amount
            for group in world.groups
            for amount in group.amounts
        ]
        slowdowns = options.clients.slowdowns if options.clients else ()
        factors = map(self._factor, range(len(slowdowns)), slowdowns)
        self._slowdowns = list(zip(slowdowns, factors, strict=True))
        self.in_turn = any(isinstance(by, SharedFactors) for _, by in self._slowdowns)

    def _factor(self, number: int, slowdown: Slowdown) -> Factor:
        world = self._world
        stage = f"clients.slowdowns.{number}"
        everyone = Population(world.num_clients, world.streams, stage=stage)
        if (moments := slowdown.over_time(everyone)) is not None:
            return moments
        normal = None
        if slowdown.turns is not None:
            everyone = Population(world.num_clients, world.streams)
            normal = ClientGroup(Behaviour(), everyone).renewal(slowdown.turns)
        return slowdown.make(world.num_clients, world.streams, normal)

    @override
    def duration(self, purpose: Purpose, takes: Duration) -> Duration:
        factors = [by for slow, by in self._slowdowns if purpose in slow.slows]
        if purpose is Purpose.COMPUTE:
            amounts = self._amounts
            factors.insert(0, lambda client, job, time: amounts[client])
        if not factors:
            return takes

        def multiplied(client: int, job: int, time: float) -> float:
            factor = 1.0
            for by in factors:
                factor *= by(client, job, time)
            return takes(client, job, time) * factor

        return multiplied

    def of_jobs(
        self,
        purpose: Purpose,
        clients: Int[np.ndarray, " C"],
        job: Int[np.ndarray, "C n"],
        since: Float[np.ndarray, " C"] | None = None,
    ) -> Float[np.ndarray, "C n"]:
        """Returns by what draws of a stage are multiplied, for many jobs at once.

        Args:
            purpose: Purpose of the draws.
            clients: Their clients.
            job: Numbers of the clients' jobs.
            since: Virtual seconds at which each begins; None where it does not matter.
        """
        factor, world = np.ones(job.shape), self._world
        if purpose is Purpose.COMPUTE:
            factor *= np.array(self._amounts, np.float64)[clients][:, None]
        for slowdown, by in self._slowdowns:
            if purpose not in slowdown.slows:
                continue
            if isinstance(by, SharedFactors):
                assert since is not None
                factor = factor * by.of_each(clients, since)[:, None]
                continue
            slow = slowdown.slow_jobs(clients, job, world.num_clients, world.streams)
            factor = np.where(slow, factor * slowdown.factor, factor)
        return factor
