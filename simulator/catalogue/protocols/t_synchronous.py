"""t-synchronous: the server waits for the first t distinct arrivals."""

from typing import ClassVar, Literal

from ...parts.base import LocatedError
from ...world.clients import Clients, Server
from ...world.cycle import Cycle
from ...world.protocol import Cadence, Protocol, Traits, refuse_more_than
from ...world.recorders.recorder import Recorder
from ...world.world import World
from .schedules import Scheduled, fewest, most, now


class TSynchronous(Protocol):
    """The server waits for the first `t` distinct arrivals, then answers all of them.

    Source: VAFL, Algorithm 2.
    """

    kind: Literal["t_synchronous"] = "t_synchronous"
    traits: ClassVar[Traits] = Traits(lone_jobs=True)
    t: Scheduled
    """Arrivals with which the server commits."""

    def described(self, num_clients: int) -> dict[str, object]:
        is_number = isinstance(self.t, int)
        enough = self.t if is_number else "enough"
        return super().described(num_clients) | {
            "queues": [f"clients that have arrived wait until {enough} have"],
            "closed_forms": {"earliest": {"t": self.t}} if is_number else {},
        }

    def least_clients(self, num_clients: int, *, selected: bool) -> int:
        return fewest(self.t)

    def cadence(self, num_clients: int, in_flight: int) -> Cadence:
        width = most(self.t)
        return Cadence(
            *(width, in_flight + 1),
            contributions_per_commit=width,
            is_steady=isinstance(self.t, int),
        )

    def check_setting(self, clients: Clients | None, server: Server, n: int) -> None:
        refuse_more_than(n, "t", most(self.t))
        selection = clients.selection if clients else None
        if selection is None or selection.refill == 1:
            return
        places = min(selection.in_flight, n)
        least = places - min(selection.refill, places) + 1
        if most(self.t) > least:
            raise LocatedError(
                f"protocol.t must be at most the {least} jobs always under way "
                f"(in_flight - refill + 1), got {most(self.t)}; lower it, or refill",
            )

    def play(self, world: World, recorder: Recorder) -> None:
        """Starts every client; the others keep working while some wait."""
        waiting: list[int] = []

        def arrive(client: int) -> None:
            recorder.arrive(client)
            waiting.append(client)
            if len(waiting) < now(self.t, world, recorder):
                return
            answered = tuple(waiting)
            waiting.clear()
            recorder.commit(answered)
            for ready in answered:
                cycle.again(ready)

        cycle = Cycle(world, recorder.read, arrive, recorder.lose)
        cycle.start()
