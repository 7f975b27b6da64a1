"""Buffered: contributions gather in the server's buffer and are applied together."""

from collections.abc import Callable
from math import ceil
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field, model_serializer, model_validator

from ..config.base import without
from ..recorders.recorder import Recorder
from ..world.cycle import Cycle
from ..world.world import World
from .base import Cadence, Protocol
from .free import Arrivals


class Buffered(Protocol):
    """Contributions gather in the server's buffer, and are applied together.

    Clients do not wait: each restarts as soon as its contribution is in the buffer; but
    with a period of grace they do.

    Source: Nguyen et al., Federated Learning with Buffered Asynchronous Aggregation
    (2022), Algorithm 1; grace: Liu et al., Asynchronous Local-SGD Training for Language
    Modeling (2024), as methods.md, section 10, has it.
    """

    kind: Literal["buffered"] = "buffered"
    on_testbed: ClassVar[bool] = True
    timed: ClassVar[tuple[str, ...]] = ("window", "grace")
    size: Annotated[int, Field(ge=1)] | None = None
    """Contributions with which the buffer is applied."""
    window: Annotated[float, Field(gt=0)] | None = None
    """Virtual seconds after which it is applied, where anything is in it."""
    grace: Annotated[float, Field(ge=0)] | None = None
    """Virtual seconds after the first arrival in the buffer after which it is applied;
    its clients wait for the new version (asynchronous DiLoCo)."""

    @model_serializer(mode="wrap")
    def _as_before(self, dump: Callable[[Any], dict[str, Any]]) -> dict[str, Any]:
        return without(dump(self), grace=None)

    @model_validator(mode="after")
    def _one_rule(self) -> "Buffered":
        if [self.size, self.window, self.grace].count(None) != 2:
            raise ValueError(
                "must have exactly one of size, window and grace; write for example "
                "size: 10"
            )
        return self

    @property
    def gathers(self) -> bool:
        """Whether contributions gather: always."""
        return True

    @property
    def free_rule(self) -> Arrivals | None:
        """A number of arrivals, or those of a window, make one version."""
        if self.grace is not None:
            return None
        return Arrivals(size=self.size or 1, window=self.window)

    def described(self, num_clients: int) -> dict[str, Any]:
        """Returns what it says of itself: the buffer."""
        waits = "contributions in the server's buffer, until it is applied"
        if self.grace is not None:
            waits += "; their clients wait as well"
        known = {} if self.size is None else {"gathered": {"size": self.size}}
        return super().described(num_clients) | {
            "queues": [waits],
            "closed_forms": known,
        }

    def cadence(self, num_clients: int, in_flight: int) -> Cadence:
        """Returns how rows come: one a contribution, some of which are commits."""
        del num_clients
        return Cadence(1, in_flight + 1, contributions_per_commit=self.size or 1)

    def play(self, world: World, recorder: Recorder) -> None:
        """Starts every client; none waits for the buffer.

        The client whose arrival fills the buffer reads the new version. Windows follow
        one another from time 0; one in which nothing arrived makes no version.

        Source: Nguyen et al. (2022), Algorithm 1.
        """
        if self.grace is not None:
            _Grace(self.grace, world, recorder).cycle.start()
            return
        env, size, window = world.env, self.size, self.window

        def read(client: int) -> None:
            recorder.read(client, env.now)

        def arrive(client: int) -> None:
            if recorder.num_buffered + 1 == size:
                recorder.commit(env.now, (client,))
            else:
                if window is not None and not recorder.num_buffered:
                    end_window(window)
                recorder.contribute(env.now, client)
            cycle.again(client)

        def end_window(length: float) -> None:
            left = max(ceil(env.now / length) * length - env.now, 0)
            world.call_last(left, lambda _: recorder.commit(env.now, ()), 0)

        cycle = Cycle(world, read, arrive, recorder.lose)
        cycle.start()


class _Grace:
    """Applies arrivals within some seconds of the first together; clients wait."""

    def __init__(self, seconds: float, world: World, recorder: Recorder) -> None:
        self._seconds, self._world, self._recorder = seconds, world, recorder
        self._waiting: list[int] = []
        self.cycle = Cycle(world, self._read, self._arrive, recorder.lose)

    def _read(self, client: int) -> None:
        self._recorder.read(client, self._world.env.now)

    def _arrive(self, client: int) -> None:
        if not self._waiting:
            self._world.call_last(self._seconds, self._end, 0)
        self._recorder.contribute(self._world.env.now, client)
        self._waiting.append(client)

    def _end(self, _: int) -> None:
        self._recorder.commit(self._world.env.now, ())
        waiting, self._waiting = self._waiting, []
        for client in sorted(waiting):
            self.cycle.again(client)
