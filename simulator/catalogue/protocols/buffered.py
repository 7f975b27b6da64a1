"""Buffered: contributions gather in the server's buffer and are applied together."""

from typing import Annotated, ClassVar, Literal

from pydantic import Field, model_validator

from ...parts.base import LocatedError
from ...parts.catalogue import AnyPart
from ...parts.expressions import up
from ...world.cycle import Cycle
from ...world.protocol import Arrivals, Cadence, Protocol, Traits
from ...world.protocol_abilities import LimitsGathering
from ...world.recorders.recorder import Recorder
from ...world.world import World
from .schedules import CountSchedule, Scheduled, fewest, most, now
from .sizes import BufferSize


class Buffered(LimitsGathering, Protocol):
    """Contributions gather in the server's buffer, and are applied together.

    Clients do not wait: each restarts as soon as its contribution is in the buffer; but
    with a period of grace they do.

    With a staleness bound, no contribution is applied that is staler: it is rejected,
    or its job is stopped as soon as that is sure, or the buffer waits for those jobs
    that its next version would make too stale, as in Plato.

    Source: Nguyen et al., Federated Learning with Buffered Asynchronous Aggregation
    (2022), Algorithm 1; grace: Liu et al., Asynchronous Local-SGD Training for Language
    Modeling (2024).
    """

    kind: Literal["buffered"] = "buffered"
    traits: ClassVar[Traits] = Traits(lone_jobs=True)
    timed: ClassVar[tuple[str, ...]] = ("window", "grace")
    size: Scheduled | None = None
    """Contributions with which the buffer is applied."""
    size_by: Annotated[BufferSize, AnyPart("buffer_sizes")] | None = None
    """Rule by which the size changes, from `buffer_size` on."""
    window: Annotated[float, Field(gt=0)] | None = None
    """Virtual seconds after which it is applied, where anything is in it."""
    grace: Annotated[float, Field(ge=0)] | None = None
    """Virtual seconds after the first arrival in the buffer, or, with a size, after the
    one that fills it, after which it is applied; its clients wait for the new version
    (asynchronous DiLoCo)."""
    staleness_bound: Annotated[int, Field(ge=0)] | None = None
    """Largest staleness of a contribution, in commits (inclusive)."""
    beyond: Literal["reject", "stop", "wait"] = "reject"
    """Treatment of contributions beyond the bound."""

    @model_validator(mode="after")
    def _one_rule(self) -> "Buffered":
        given = self.size is not None, self.window is not None, self.grace is not None
        if given not in ((1, 0, 0), (0, 1, 0), (0, 0, 1), (1, 0, 1)):
            raise ValueError(
                "must have a size, a window, a grace, or a size and a grace; write for "
                "example size: 10"
            )
        if self.staleness_bound is not None and (self.size_by or given != (1, 0, 0)):
            raise LocatedError(
                "staleness_bound must be with a size alone; remove window, grace and "
                "size_by",
            )
        if self.beyond == "wait" and self.staleness_bound == 0:
            raise LocatedError(
                "staleness_bound must be at least 1 where the buffer waits, because "
                "some client has always read the newest version; or use synchronous",
            )
        rule = self.size_by
        if rule is None:
            return self
        if not isinstance(self.size, int):
            raise LocatedError(
                "size_by must be with a number of contributions to begin with; write "
                "for example size: 10",
            )
        if not rule.least <= self.size <= rule.most:
            raise LocatedError(
                f"size must be within the bounds of size_by, {rule.least} to "
                f"{rule.most}, got {self.size}; change one of them",
            )
        return self

    @property
    def _most(self) -> int | None:
        if self.grace is not None or self._waits:
            return None
        return self.size_by.most if self.size_by else self.size and most(self.size)

    @property
    def _waits(self) -> bool:
        return self.staleness_bound is not None and self.beyond == "wait"

    @property
    def stops_jobs(self) -> bool:
        return self.staleness_bound is not None and self.beyond == "stop"

    @property
    def gathers(self) -> bool:
        return True

    def most_gathered(self, num_clients: int) -> int | None:
        return self._most

    def fewest_gathered(self, num_clients: int) -> int | None:
        return self.size_by.least if self.size_by else self.size and fewest(self.size)

    @property
    def free_rule(self) -> Arrivals | None:
        size = self.size or 1
        if self._has_rule or not isinstance(size, int):
            return None
        return Arrivals(size=size, window=self.window)

    @property
    def _has_rule(self) -> bool:
        rules = self.grace, self.size_by, self.staleness_bound
        return any(rule is not None for rule in rules)

    def described(self, num_clients: int) -> dict[str, object]:
        waits = "contributions in the server's buffer, until it is applied"
        if self.grace is not None:
            waits += "; their clients wait as well"
        if self._waits:
            waits += ", for which it waits for jobs that would become too stale"
        is_number = isinstance(self.size, int) and not self._has_rule
        known = {"gathered": {"size": self.size}} if is_number else {}
        return super().described(num_clients) | {
            "queues": [waits],
            "closed_forms": known,
        }

    def cadence(self, num_clients: int, in_flight: int) -> Cadence:
        return Cadence(
            *(1, in_flight + 1),
            contributions_per_commit=self._most or (self.size and most(self.size)) or 1,
            is_steady=self.size_by is None and not isinstance(self.size, CountSchedule),
        )

    def play(self, world: World, recorder: Recorder) -> None:
        """Starts every client; none waits for the buffer.

        The client whose arrival fills the buffer reads the new version. Windows follow
        one another from time 0; one in which nothing arrived makes no version.
        """
        if self._has_rule:
            from .buffer_rules import cycle_of

            cycle_of(self, world, recorder).start()
            return
        env, size, window = world.env, self.size, self.window

        def arrive(client: int) -> None:
            there = recorder.num_buffered + 1
            if size is not None and there >= now(size, world, recorder):
                recorder.commit((client,))
            else:
                if window is not None and not recorder.num_buffered:
                    end_window(window)
                recorder.contribute(client)
            cycle.again(client)

        def end_window(length: float) -> None:
            left = max(up(env.now / length) * length - env.now, 0)
            world.call_last(left, lambda _: recorder.commit(()), 0)

        cycle = Cycle(world, recorder.read, arrive, recorder.lose)
        cycle.start()
