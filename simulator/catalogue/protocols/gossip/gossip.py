"""Gossip: workers without a server, each with its own model."""

from typing import ClassVar, Literal

import numpy as np
from jaxtyping import Float
from pydantic import model_validator

from ....parts.base import LocatedError, tag
from ....world.clients import Behaviour, Clients, Server
from ....world.protocol import (
    Cadence,
    Protocol,
    Traits,
    refuse_server,
)
from ....world.protocol_abilities import Draw, MixesModels
from ....world.recorders.recorder import Recorder
from ....world.world import World
from ..graphs.base import AnyGraph
from ..graphs.kinds import Bipartite
from .recorder import GossipRecorder

ABSENT = ("availability", "join", "leave", "crashes", "loss", "download")
MOST_WORKERS = 100_000
"""Workers of gossip, each with its own model."""
MOST_MIXED = 2_000
"""Workers that average all at once, by a matrix of all with all: 32 MB."""


class Gossip(MixesModels, Protocol):
    """Workers without a server: each steps by itself and averages with a neighbour.

    An averaging takes the time of its initiator's upload link; its workers continue
    computing meanwhile, on the models that they had read.

    Source: A(DP)2SGD, Algorithm 1 and appendix A; decisions A-08, A-09 and A-10.
    """

    kind: Literal["gossip"] = "gossip"
    records: ClassVar[type[Recorder]] = GossipRecorder
    traits: ClassVar[Traits] = Traits(
        has_server=False, averages=True, everyone_works=True
    )
    graph: AnyGraph = Bipartite()
    """Pairs of workers that may average; by default senders with receivers (A-08)."""
    average: Literal["pairwise", "all", "neighbours"] = "pairwise"
    """Two neighbours at a time; or, in rounds in which all wait for each other,
    everyone with everyone (SYNC) or with all neighbours at once (D-PSGD)."""
    initiator: Literal["sender", "every"] | None = None
    """Workers whose gradients come with an averaging (A-09): one side of a bipartite
    graph, or all; by default the senders, where the graph has two sides."""
    order: Literal["average_then_step", "step_then_average", "during"] = (
        "average_then_step"
    )
    """The order of averaging and gradient (A-10); `during`: averaging starts with the
    gradient, and both are waited for. With `average: all`, steps come first."""

    @model_validator(mode="after")
    def _only_pairs_have_neighbours(self) -> "Gossip":
        belong = {
            "graph": ("pairwise", "neighbours"),
            "initiator": ("pairwise",),
            "order": ("pairwise", "neighbours"),
        }
        for name, averages in belong.items():
            default = type(self).model_fields[name].default
            if self.average not in averages and getattr(self, name) != default:
                raise LocatedError(
                    f"{name} must not be set with average: {self.average}; remove it",
                )
        if self.average == "neighbours" and self.order == "during":
            raise LocatedError(
                "order must be average_then_step or step_then_average where all "
                "neighbours average at once, got 'during'; change it",
            )
        if self.average == "pairwise" and self.is_directed:
            raise LocatedError(
                f"graph must not be directed for pairwise averaging, got "
                f"{tag(type(self.graph))!r}; take an undirected one, such as ring "
                "or undirected_exponential",
                ("graph", "kind"),
            )
        return self

    @property
    def _in_rounds(self) -> bool:
        return self.average != "pairwise"

    def num_out(self, num_workers: int, draw: Draw | None = None) -> list[int]:
        """Returns the number of messages of each worker to its neighbours per round."""
        first = self.graph.receivers(num_workers, draw)[0]
        return [len(others) for others in first]

    def check_setting(self, clients: Clients | None, server: Server, n: int) -> None:
        refuse_server(self.kind, server, "which has none")
        for part in (clients, *clients.groups.values()) if clients else ():
            refuse_absence(self.kind, part, ABSENT)
        check_size(n, self.kind, mixed=self._in_rounds)
        if self.average != "all":
            self.graph.check(n, must_have_sides=self.initiator == "sender")

    @property
    def is_directed(self) -> bool:
        """Whether messages go along edges in one direction."""
        return self.graph.is_directed

    def cadence(self, num_clients: int, in_flight: int) -> Cadence:
        """Returns the pattern of rows: steps, and averagings of two or of all workers.

        In rounds each worker's step is a commit, and all of them have read the state
        before it; the averaging of all is a turn as well. Gradients stay where they
        are, unless everyone averages with everyone.
        """
        n = num_clients
        messages = (1, 1) if self.average == "all" else (0, 0)
        if not self._in_rounds:
            return Cadence(width=2, num_registers=n, messages=messages)
        return Cadence(
            width=2,
            num_registers=n,
            commits_per_round=n,
            turns_per_round=n + 1,
            commits_are_turns=False,
            commits_at_once=n,
            ends_mixed=self.average == "all" or self.order == "step_then_average",
            messages=messages,
        )

    def uploads_per_mixing(self, num_workers: int, draw: Draw) -> int:
        if self.average != "neighbours":
            return 0
        return sum(self.num_out(num_workers, draw))

    def mixing(
        self, num_workers: int, draw: Draw, *, pushes: bool
    ) -> Float[np.ndarray, "Q K K"] | None:
        if self.average == "pairwise":
            return None
        if self.average == "all":
            return np.full((1, num_workers, num_workers), 1 / num_workers)
        return self.graph.mixing(num_workers, draw, pushes=pushes)

    def described(self, num_clients: int) -> dict[str, object]:
        names = ("idle", "read", "compute")
        stages = {name: f"clients.{name}" for name in names}
        waits = ["workers that are done wait for the end of the round"]
        return super().described(num_clients) | {
            "stages": stages | {"average": "clients.upload"},
            "queues": waits if self._in_rounds else [],
        }

    def play(self, world: World, recorder: GossipRecorder) -> None:
        """Starts every worker: snapshot, gradient, averaging and step, for ever."""
        from .playing import AllAtOnce, Pairwise

        workers = Pairwise if self.average == "pairwise" else AllAtOnce
        workers(self, world, recorder).start()


def check_size(num_workers: int, kind: str, *, mixed: bool = False) -> None:
    """Refuses more workers than can have their own models."""
    most = MOST_MIXED if mixed else MOST_WORKERS
    if num_workers > most:
        how = "average all at once" if mixed else "average in pairs"
        raise LocatedError(
            f"protocol {kind} must have at most {most:,} workers that {how}, got "
            f"{num_workers:,}; take fewer clients",
        )


def refuse_absence(kind: str, behaviour: Behaviour, names: tuple[str, ...]) -> None:
    """Refuses entries of clients that are always there, with no link but upload."""
    for name in names:
        if getattr(behaviour, name) != Behaviour.model_fields[name].default:
            raise LocatedError(
                f"clients.{name} must not be set for the protocol {kind!r}, whose "
                f"workers are always there and have no link but upload; remove it",
            )
