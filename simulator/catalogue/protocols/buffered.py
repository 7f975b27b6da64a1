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
    """Virtual seconds after the first arrival in the buffer after which it is applied;
    its clients wait for the new version (asynchronous DiLoCo)."""

    @model_validator(mode="after")
    def _one_rule(self) -> "Buffered":
        if [self.size, self.window, self.grace].count(None) != 2:
            raise ValueError(
                "must have exactly one of size, window and grace; write for example "
                "size: 10"
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
        return self.size_by.most if self.size_by else self.size and most(self.size)

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
        if self.grace is not None or self.size_by is not None:
            return None
        if not isinstance(size, int):
            return None
        return Arrivals(size=size, window=self.window)

    def described(self, num_clients: int) -> dict[str, object]:
        waits = "contributions in the server's buffer, until it is applied"
        if self.grace is not None:
            waits += "; their clients wait as well"
        is_number = isinstance(self.size, int) and self.size_by is None
        known = {"gathered": {"size": self.size}} if is_number else {}
        return super().described(num_clients) | {
            "queues": [waits],
            "closed_forms": known,
        }

    def cadence(self, num_clients: int, in_flight: int) -> Cadence:
        return Cadence(
            *(1, in_flight + 1),
            contributions_per_commit=self._most or 1,
            is_steady=self.size_by is None and not isinstance(self.size, CountSchedule),
        )

    def play(self, world: World, recorder: Recorder) -> None:
        """Starts every client; none waits for the buffer.

        The client whose arrival fills the buffer reads the new version. Windows follow
        one another from time 0; one in which nothing arrived makes no version.
        """
        if self.grace is not None:
            _Grace(self.grace, world, recorder).cycle.start()
            return
        if self.size_by is not None:
            assert isinstance(self.size, int)
            _Sized(self.size, self.size_by, world, recorder).cycle.start()
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


class _Grace:
    """Applies arrivals within some seconds of the first together; clients wait."""

    def __init__(self, seconds: float, world: World, recorder: Recorder) -> None:
        self._seconds, self._world, self._recorder = seconds, world, recorder
        self._waiting: list[int] = []
        self.cycle = Cycle(world, recorder.read, self._arrive, recorder.lose)

    def _arrive(self, client: int) -> None:
        if not self._waiting:
            self._world.call_last(self._seconds, self._end, 0)
        self._recorder.contribute(client)
        self._waiting.append(client)

    def _end(self, _: int) -> None:
        self._recorder.commit(())
        waiting, self._waiting = self._waiting, []
        for client in sorted(waiting):
            self.cycle.again(client)


class _Sized:
    """Applies as many contributions together as a rule says."""

    def __init__(
        self, size: int, rule: BufferSize, world: World, recorder: Recorder
    ) -> None:
        self._world, self._recorder = world, recorder
        self._rule, self._size, self._sizing = rule, size, rule.make()
        self.cycle = Cycle(world, recorder.read, self._arrive, recorder.lose)

    def _arrive(self, client: int) -> None:
        world, recorder = self._world, self._recorder
        self._sizing.arrived(recorder.staleness(client))
        if recorder.num_buffered + 1 < self._size:
            recorder.contribute(client)
            self.cycle.again(client)
            return
        recorder.commit((client,))
        if recorder.version % self._rule.every:
            self.cycle.again(client)
        elif self._rule.asks:
            world.ask(self._resize, client)
        else:
            self._resize(client)

    def _resize(self, client: int) -> None:
        wanted = self._sizing.next(self._size, self._world.answers)
        self._size = self._rule.bounded(wanted, self._size)
        self.cycle.again(client)
