"""Gossip: workers without a server, each with a model of its own."""

from typing import Any

from ...recorders.recorder import Batch, Recorder
from ...world.world import World
from .options import GossipOptions
from .playing import play
from .recorder import GossipRecorder


class Gossip(GossipOptions):
    """Workers without a server: each steps by itself and averages with a neighbour.

    An averaging takes the time of its initiator's upload link; its workers continue
    computing meanwhile, on the models that they had read.

    Source: A(DP)2SGD, Algorithm 1 and appendix A; decisions A-08, A-09 and A-10.
    """

    def described(self, num_clients: int) -> dict[str, Any]:
        names = ("idle", "read", "compute")
        stages = {name: f"clients.{name}" for name in names}
        waits = ["workers that are done wait for the end of the round"]
        return super().described(num_clients) | {
            "stages": stages | {"average": "clients.upload"},
            "queues": waits if self.in_rounds else [],
        }

    def recorder(
        self, world: World, width: int, batch: Batch | None, num_samples: int
    ) -> Recorder:
        return GossipRecorder(world)

    def play(self, world: World, recorder: GossipRecorder) -> None:
        play(self, world, recorder)
