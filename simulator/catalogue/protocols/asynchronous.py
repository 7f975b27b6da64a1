"""Asynchronous: each client's contribution is applied when it arrives."""

from collections.abc import Iterator
from typing import Annotated, ClassVar, Literal

from pydantic import Field, model_validator

from ...files.timeline import Outcome
from ...parts.base import LocatedError
from ...world.clients import Clients, Server
from ...world.cycle import Cycle
from ...world.protocol import Arrivals, Protocol, Traits, refuse_selection
from ...world.protocol_abilities import Remarked
from ...world.recorders.recorder import Recorder
from ...world.world import World


class Asynchronous(Remarked, Protocol):
    """Each client's contribution is applied when it arrives, in order of arrival.

    With a staleness bound, no contribution is applied that is staler: it is rejected
    and its client begins again (Ringmaster ASGD with R = bound + 1, Algorithm 4 of
    Maranjyan, Tyurin and Richtarik, 2025), or its job is stopped as soon as that is
    sure (Algorithm 5), or arrivals wait for those jobs that they would make too stale;
    the protocol `ssp` compares clients' clocks instead.
    """

    kind: Literal["asynchronous"] = "asynchronous"
    traits: ClassVar[Traits] = Traits(lone_jobs=True)
    staleness_bound: Annotated[int, Field(ge=0)] | None = None
    """Largest staleness of a contribution, in commits (inclusive)."""
    beyond: Literal["reject", "stop", "wait"] = "reject"
    """Treatment of arrivals beyond the bound."""
    warm_up: bool = False
    """Whether contributions gather, without a commit, until everyone has sent one."""
    restarts: bool = False
    """Whether all jobs under way are stopped, and everyone begins again, as soon as
    each client has contributed since the last time (THROTTLE's rounds)."""

    @model_validator(mode="after")
    def _restarts_alone(self) -> "Asynchronous":
        if self.restarts and (self.warm_up or self.staleness_bound is not None):
            other = "warm_up" if self.warm_up else "staleness_bound"
            raise LocatedError(
                f"restarts must be false with {other}, got true; remove one of them",
            )
        return self

    @model_validator(mode="after")
    def _warms_up_by_arrivals(self) -> "Asynchronous":
        if self.warm_up and self.staleness_bound is not None:
            raise LocatedError(
                "warm_up must be false with a staleness_bound, because contributions "
                "that wait for the last client would exceed it; remove one of them",
            )
        return self

    @property
    def gathers(self) -> bool:
        return self.warm_up

    @property
    def stops_jobs(self) -> bool:
        bounded = self.staleness_bound is not None and self.beyond == "stop"
        return bounded or self.restarts

    @property
    def free_rule(self) -> Arrivals | None:
        """One arrival is one version, unless arrivals wait."""
        if self.warm_up or self.restarts:
            return None
        if self.staleness_bound is not None and self.beyond != "reject":
            return None
        return Arrivals(bound=self.staleness_bound)

    def remarks(self, in_flight: int) -> Iterator[str]:
        bound = self.staleness_bound
        if bound is not None and self.beyond == "wait" and bound + 1 < in_flight:
            yield (
                f"max_staleness {bound} with beyond: wait lets {bound + 1} of "
                f"{in_flight} clients work at a time; with the protocol ssp all do"
            )

    def described(self, num_clients: int) -> dict[str, object]:
        waits = {
            "arrivals, and reads, wait at the server while they would make a job too "
            "stale": self.staleness_bound is not None and self.beyond == "wait",
            "contributions wait until everyone has sent one": self.warm_up,
        }
        free = self.staleness_bound is None and not self.restarts
        known = ("in_flight", "cycles", "memoryless", "repairman") if free else ()
        return super().described(num_clients) | {
            "queues": [text for text, holds in waits.items() if holds],
            "closed_forms": {name: {} for name in known},
        }

    def check_setting(self, clients: Clients | None, server: Server, n: int) -> None:
        if self.restarts:
            refuse_selection(self.kind, clients)

    def play(self, world: World, recorder: Recorder) -> None:
        bound = self.staleness_bound

        def arrive(client: int) -> None:
            if bound is not None and recorder.staleness(client) > bound:
                recorder.lose(client, Outcome.REJECTED)
            else:
                recorder.commit((client,))
            cycle.again(client)

        if self.free_rule is not None:
            cycle = Cycle(world, recorder.read, arrive, recorder.lose)
        else:
            from .arrival_rules import cycle_of

            cycle = cycle_of(self, world, recorder)
        cycle.start()
