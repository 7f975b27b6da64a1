"""A world of samples in a scenario: alone, or as the protocol of a study.

Slots generate samples, a queue keeps them, a trainer takes batches.
"""

from typing import TYPE_CHECKING, ClassVar, Literal, NoReturn

from pydantic import model_validator
from typing_extensions import override

from ...parts.base import LocatedError
from ...scenario.setting import Varied
from ...world.clients import Clients, Server
from ...world.protocol import Cadence, Protocol, Traits
from ...world.protocol_abilities import OwnTimeline
from .world.options import RolloutEntries, RolloutOptions, RolloutStop, check_rollouts

if TYPE_CHECKING:
    from .timeline import RolloutTimeline

MOST_BATCH = 65_536
"""Samples of a step: each is drawn by different weights."""


class RolloutScenario(Varied, RolloutOptions):
    """Who generates, queues and trains samples; without numerics."""

    record: Literal["everything", "summary"] = "everything"
    """`summary` leaves out the table of samples, which grows with the horizon."""

    @model_validator(mode="after")
    def _fits(self) -> "RolloutScenario":
        check_rollouts(self)
        return self


class GenerateAndTrain(RolloutEntries, OwnTimeline, Protocol):
    """Asynchronous reinforcement learning: a commit is a step of the trainer.

    Its four entries are the same as in a world of samples (docs/extras/rl.md). A slot
    is a worker and a sample is its job, whose read version is the version of its first
    weights. The job's number is the sample's place in its group plus the group's size
    times the number of its prompt; a sample that is made again keeps it.
    """

    kind: Literal["rollouts"] = "rollouts"
    traits: ClassVar[Traits] = Traits(pooled=True, own_registers=True, has_server=False)

    def world(self, stop: RolloutStop) -> RolloutOptions:
        """Returns the world of samples that ends so."""
        return RolloutOptions(
            generation=self.generation,
            queue=self.queue,
            trainer=self.trainer,
            weights=self.weights,
            stop=stop,
        )

    @property
    @override
    def num_workers(self) -> int:
        return self.generation.num_slots

    @override
    def timeline(self) -> "type[RolloutTimeline]":
        from .timeline import RolloutTimeline

        return RolloutTimeline

    @override
    def described(self, num_clients: int) -> dict[str, object]:
        world = self.world(RolloutStop(steps=1))
        return super().described(num_clients) | world.described("protocol.")

    @override
    def cadence(self, num_clients: int, in_flight: int) -> Cadence:
        batch = self.trainer.samples or 1
        # How many registers suffice only the played world can say.
        return Cadence(width=batch, num_registers=1, contributions_per_commit=batch)

    @override
    def check_setting(self, clients: Clients | None, server: Server, n: int) -> None:
        if server != Server():
            raise LocatedError(
                "server must not be set for the protocol 'rollouts', which has a "
                "trainer in its place; remove it"
            )
        if self.trainer.samples is None:
            raise LocatedError(
                "protocol.trainer.samples must be set, because a row has that many "
                "samples, got tokens; set samples, or simulate the world alone",
                ("protocol", "trainer"),
            )
        if self.trainer.samples > MOST_BATCH:
            raise LocatedError(
                f"protocol.trainer.samples must be at most {MOST_BATCH:,}, got "
                f"{self.trainer.samples:,}; take fewer"
            )
        steps = self.trainer.optimizer_steps
        if self.trainer.samples % steps:
            raise LocatedError(
                f"protocol.trainer.optimizer_steps must divide trainer.samples "
                f"({self.trainer.samples}), got {steps}; change one of them"
            )
        if steps > 1 and self.queue.dropped == "withheld":
            raise LocatedError(
                f"protocol.trainer.optimizer_steps must be 1 with queue.dropped: "
                f"withheld, whose batches differ in size, got {steps}; remove it, or "
                f"take masked"
            )
        try:
            check_rollouts(self.world(RolloutStop(steps=1)))
        except LocatedError as error:
            keys = ("protocol", *error.keys)
            raise LocatedError(f"protocol.{error}", keys) from None

    @override
    def play(self, world: object, recorder: object) -> NoReturn:
        # Its own timeline plays samples, not the cycles of clients.
        raise NotImplementedError(self.kind)
