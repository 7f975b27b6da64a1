"""Prescribed staleness: each commit reads a version that is drawn, not timed."""

from collections.abc import Iterator
from itertools import count
from typing import Annotated, ClassVar, Literal

from pydantic import Field

from ...parts.base import LocatedError
from ...world.clients import Clients, Server
from ...world.laws.base import AnyLaw
from ...world.laws.distributions import Constant
from ...world.protocol import Cadence, Protocol, Traits
from ...world.protocol_abilities import OwnSteps
from ...world.recorders.recorder import Recorder
from ...world.streams import Purpose, Streams
from ...world.world import World

BLOCK = 256
"""Random numbers that are drawn at once."""


class Prescribed(OwnSteps, Protocol):
    """Each commit is of a client that read a version of a staleness drawn uniformly.

    So staleness has a given law, and depends on nothing: not on the client, which is
    drawn among those without a job, nor on its speed, as in a real system. Commit v
    reads version v - d, d uniform from 0 to `most`, or the first version.

    Source: Xie, Koyejo and Gupta, Asynchronous Federated Optimization (2019), section 5
    (staleness is simulated by uniform draws up to its maximum).
    """

    kind: Literal["prescribed"] = "prescribed"
    traits: ClassVar[Traits] = Traits(has_server=False, everyone_works=True)
    most: Annotated[int, Field(ge=0, le=10_000)]
    """Largest staleness, commits."""
    step: AnyLaw = Constant(value=1)
    """Distribution of the time from one commit to the next, virtual seconds."""

    def described(self, num_clients: int) -> dict[str, object]:
        return super().described(num_clients) | {
            "entities": f"{num_clients} clients; commits, one after the other",
            "stages": {"step": "protocol.step"},
            "resources": {"the model, which one client changes at a time": ""},
        }

    def cadence(self, num_clients: int, in_flight: int) -> Cadence:
        return Cadence(width=1, num_registers=self.most + 2)

    def check_setting(self, clients: Clients | None, server: Server, n: int) -> None:
        if n <= self.most:
            raise LocatedError(
                f"protocol.most must be less than the number of clients, because most "
                f"+ 1 work at once, got {self.most} with {n} clients; reduce it",
            )

    def play(self, world: World, recorder: Recorder) -> None:
        """Lets clients read whose commits are due within `most`; commits one by one."""
        ahead: dict[int, list[int]] = {}  # by version that is read: commits
        client_of: dict[int, int] = {}  # by commit under way
        free = list(range(world.num_clients))
        late = _uniforms(world.streams, Purpose.ROUTE)
        pick = _uniforms(world.streams, Purpose.SELECT)
        known = 0

        def read() -> None:
            nonlocal known
            version = recorder.version
            while known <= version + self.most:
                stale = int(next(late) * (self.most + 1))
                ahead.setdefault(max(known - stale, 0), []).append(known)
                known += 1
            for commit in ahead.pop(version, ()):
                place = int(next(pick) * len(free))
                free[place], free[-1] = free[-1], free[place]
                client_of[commit] = client = free.pop()
                recorder.read(client)
            step(client_of[version])

        def finish(client: int) -> None:
            del client_of[recorder.version]
            recorder.commit((client,), recorder.version)
            free.append(client)
            read()

        step = world.stage(Purpose.STEP, world.budget.counted(finish))
        read()


def _uniforms(streams: Streams, purpose: Purpose) -> Iterator[float]:
    for number in count():
        yield from streams.uniforms(purpose, 0, number * BLOCK, BLOCK).tolist()
