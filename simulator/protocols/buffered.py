"""Buffered: contributions gather in the server's buffer and are applied together."""

from math import ceil
from typing import Annotated, ClassVar, Literal

from pydantic import Field, model_validator

from simulator.protocols.base import Cadence, Protocol
from simulator.protocols.free import Arrivals
from simulator.recorders.recorder import Recorder
from simulator.world.cycle import Cycle
from simulator.world.world import World


class Buffered(Protocol):
    """Contributions gather in the server's buffer, and are applied together.

    Clients do not wait: each goes on as soon as its contribution is in the buffer.

    Source: Nguyen et al., Federated Learning with Buffered Asynchronous Aggregation
    (2022), Algorithm 1.
    """

    kind: Literal["buffered"] = "buffered"
    timed: ClassVar[tuple[str, ...]] = ("window",)
    size: Annotated[int, Field(ge=1)] | None = None
    """Contributions with which the buffer is applied."""
    window: Annotated[float, Field(gt=0)] | None = None
    """Virtual seconds after which it is applied, where anything is in it."""

    @model_validator(mode="after")
    def _one_rule(self) -> "Buffered":
        if (self.size is None) == (self.window is None):
            raise ValueError(
                "must have exactly one of size and window; write for example size: 10"
            )
        return self

    @property
    def gathers(self) -> bool:
        """Whether contributions gather: always."""
        return True

    @property
    def free_rule(self) -> Arrivals:
        """So many arrivals, or those of a window, are one version."""
        return Arrivals(size=self.size or 1, window=self.window)

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
