"""A protocol: asynchronous, but no client commits twice in a row."""

from typing import ClassVar, Literal

from stalesim.simulator.files.timeline import Outcome
from stalesim.simulator.world.cycle import Cycle
from stalesim.simulator.world.protocol import Protocol


class MyPart(Protocol):
    """Asynchronous, but no client commits twice in a row: the second is rejected."""

    kind: Literal["my_part"] = "my_part"
    like: ClassVar[str] = "asynchronous"
    """Algorithms for this protocol run on MyPart as well."""

    def play(self, world, recorder):
        last = None

        def arrive(client):
            nonlocal last
            if client == last:
                recorder.lose(client, Outcome.REJECTED)
            else:
                recorder.commit((client,))
                last = client
            cycle.again(client)

        cycle = Cycle(world, recorder.read, arrive, recorder.lose)
        cycle.start()


STALESIM = {"protocols": (MyPart,)}
