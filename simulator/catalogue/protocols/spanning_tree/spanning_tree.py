"""Spanning tree: contributions at one model, which a tree of clients sums up."""

from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field, model_validator

from ....parts.base import LocatedError
from ....world.clients import Behaviour, Clients, Server
from ....world.protocol import (
    Cadence,
    GatheringRounds,
    Traits,
    refuse_selection,
    refuse_server,
)
from ....world.recorders.recorder import Recorder
from ....world.streams import Purpose
from ....world.world import World
from ..graphs import AnyGraph
from .nodes import tree_of
from .recorder import TreeRecorder
from .reducing import Reducing, Summing

PLAYED = ("compute", "compute_per", "compute_draws", "power", "upload", "download")
"""Entries of a client that this protocol knows."""


class SpanningTree(GatheringRounds):
    """Clients on a graph, one of which makes the steps: the pivot.

    A tree of fewest edges from the pivot spans the graph; of several possible parents a
    client has the one of the least number. The pivot's model goes down the tree. What
    is taken at it goes up: with `count` a client adds its contributions to those that
    its children have sent, and passes on the sum whenever its edge is free (Fragile
    SGD, which on a star without links is Rennala SGD). With `harmonic_mean` sums of
    inverse counts go up instead; when the pivot finds the mean large enough it tells
    everyone, and each sends the sum of its sub-tree once (Amelie SGD, or Malenia).

    A client's `upload` is its edge towards the pivot and its `download` the way back;
    an edge carries one message at a time each way, and counts and the end of a round
    take as long as a model.

    Source: Tyurin and Richtarik, On the Optimal Time Complexities in Decentralized
    Stochastic Asynchronous Optimization (2024), Fragile SGD and Amelie SGD.
    """

    kind: Literal["spanning_tree"] = "spanning_tree"
    records: ClassVar[type[Recorder]] = TreeRecorder
    traits: ClassVar[Traits] = Traits(has_server=False)
    like: ClassVar[str] = "collect"
    graph: AnyGraph
    """Pairs of clients that have a link."""
    pivot: Annotated[int, Field(ge=1)] = 1
    """Number of the client that makes the steps."""
    count: Annotated[int, Field(ge=1)] | None = None
    """Contributions at the pivot that end a round; what comes with the last of them
    counts as well."""
    harmonic_mean: Annotated[float, Field(ge=1)] | None = None
    """Least harmonic mean of the clients' counts, as the pivot knows them, that ends a
    round."""
    late: Literal["reject", "stop"] = "reject"
    """Treatment of a job under way when its client hears of the next model, or of the
    end of the round: it is done in vain, or stopped."""

    @model_validator(mode="after")
    def _one_rule(self) -> "SpanningTree":
        if (self.count is None) == (self.harmonic_mean is None):
            raise ValueError(
                "must have exactly one of count and harmonic_mean; write for example "
                "count: 10"
            )
        if self.graph.is_directed:
            raise LocatedError(
                f"graph must not be directed for a tree whose edges go both ways, got "
                f"{self.graph.kind!r}; take another one",
                ("graph", "kind"),
            )
        return self

    @property
    def stops_jobs(self) -> bool:
        return self.late == "stop"

    def described(self, num_clients: int) -> dict[str, Any]:
        end = f"{self.count} are there" if self.count else "their mean is large enough"
        return super().described(num_clients) | {
            "entities": f"{num_clients} clients on a graph, of which client "
            f"{self.pivot}, the pivot, makes the steps",
            "stages": {
                "towards the client": "clients.download",
                "compute": "clients.compute",
                "towards the pivot": "clients.upload",
            },
            "resources": {
                f"{num_clients - 1} edges of a tree, each for one message at a time "
                f"each way": ""
            },
            "queues": [
                "messages at each edge",
                f"contributions at the pivot, until {end}",
            ],
        }

    def cadence(self, num_clients: int, in_flight: int) -> Cadence:
        """Returns how rows come: one a contribution, the last of a round a commit.

        Nothing is applied but what was taken at the pivot's model, so that one version
        is kept. A round's contributions are counted as those that end it at least.
        """
        applied = self.count or round(num_clients * (self.harmonic_mean or 1))
        return Cadence(
            width=1,
            num_registers=1,
            contributions_per_commit=applied,
            commits_per_round=1,
        )

    def check_setting(self, clients: Clients | None, server: Server, n: int) -> None:
        refuse_selection(self.kind, clients)
        refuse_server(self.kind, server, "whose pivot is a client")
        for part in (clients, *clients.groups.values()) if clients else ():
            _refuse_others(part)
        if n < 2:
            raise LocatedError(
                f"protocol spanning_tree must have at least 2 clients, got {n}; add "
                f"clients",
            )
        self.graph.check(n, must_have_sides=False)
        if self.pivot > n:
            raise LocatedError(
                f"protocol.pivot must be at most the number of clients ({n}), got "
                f"{self.pivot}; change it",
            )

    def play(self, world: World, recorder: TreeRecorder) -> None:
        """Starts the pivot at time 0; the others begin when the model reaches them.

        Source: Tyurin and Richtarik (2024), Fragile SGD and Amelie SGD.
        """

        def draw(number: int):
            return world.streams.at(Purpose.GRAPH, 0, number)

        edges = self.graph.edges_of(world.num_clients, draw)
        nodes = tree_of(edges, world.num_clients, self.pivot - 1)
        rounds = Reducing if self.count is None else Summing
        least = self.count or self.harmonic_mean
        assert least is not None
        rounds(nodes, least, world, recorder, stops=self.late == "stop").start()


def _refuse_others(behaviour: Behaviour) -> None:
    for name, field in Behaviour.model_fields.items():
        if name not in PLAYED and getattr(behaviour, name) != field.default:
            raise LocatedError(
                f"clients.{name} must not be set for the protocol 'spanning_tree', "
                f"whose clients are always there, compute, and pass on what comes; "
                f"remove it",
            )
