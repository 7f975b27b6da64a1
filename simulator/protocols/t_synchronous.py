"""t-synchronous: the server waits for the first t distinct arrivals."""

from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field

from ..recorders.recorder import Recorder
from ..world.clients import Clients, Server
from ..world.cycle import Cycle
from ..world.world import World
from .base import Cadence, Protocol, refuse_more_than


class TSynchronous(Protocol):
    """The server waits for the first `t` distinct arrivals, then answers all of them.

    Source: VAFL, Algorithm 2.
    """

    kind: Literal["t_synchronous"] = "t_synchronous"
    on_testbed: ClassVar[bool] = True
    t: Annotated[int, Field(ge=1)]
    """Arrivals with which the server commits."""

    def described(self, num_clients: int) -> dict[str, Any]:
        """Returns what it says of itself: those that wait."""
        waits = f"clients that have arrived wait until {self.t} have"
        return super().described(num_clients) | {
            "queues": [waits],
            "closed_forms": {"earliest": {"t": self.t}},
        }

    def cadence(self, num_clients: int, in_flight: int) -> Cadence:
        """Returns how rows come: `t` clients each."""
        del num_clients
        return Cadence(self.t, in_flight + 1, contributions_per_commit=self.t)

    def check_setting(self, clients: Clients | None, server: Server, n: int) -> None:
        """Refuses to wait for more clients than there are."""
        del clients, server
        refuse_more_than(n, "t", self.t)

    def play(self, world: World, recorder: Recorder) -> None:
        """Starts every client; the others keep working while some wait for the server.

        Source: VAFL, Algorithm 2.
        """
        env = world.env
        waiting: list[int] = []

        def read(client: int) -> None:
            recorder.read(client, env.now)

        def arrive(client: int) -> None:
            recorder.arrive(client, env.now)
            waiting.append(client)
            if len(waiting) < self.t:
                return
            answered = tuple(waiting)
            waiting.clear()
            recorder.commit(env.now, answered)
            for ready in answered:
                cycle.again(ready)

        cycle = Cycle(world, read, arrive, recorder.lose)
        cycle.start()
