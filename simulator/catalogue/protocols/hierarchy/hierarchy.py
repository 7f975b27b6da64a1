"""Hierarchy: clients average at their edge, edges at a cloud, at as many levels."""

from fractions import Fraction
from math import prod
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from pydantic import Field, model_validator

from ....parts.base import LocatedError
from ....world.clients import Clients, Server
from ....world.laws.base import AnyLaw
from ....world.protocol import (
    Cadence,
    GatheringRounds,
    Traits,
    refuse_selection,
    refuse_server,
)
from ....world.recorders.recorder import Recorder
from ....world.world import World
from .tree import EdgeTree, HierarchyRecorder


class Hierarchy(GatheringRounds):
    """Clients make rounds at their edge, and edges meet at the cloud every so often.

    Clients are divided among the edges in order, as evenly as goes. An edge waits for
    all of its clients, or answers each one as it comes; after a number of its rounds it
    sends its model to the cloud and continues with the answer. The cloud waits for
    all edges, or answers each one as it comes. An edge may be such a cloud itself, of
    edges within it.

    Source: Liu, Zhang, Song and Letaief, Client-Edge-Cloud Hierarchical Federated
    Learning (2020), Algorithm 1; with an asynchronous cloud as FedAsync has it.
    """

    kind: Literal["hierarchy"] = "hierarchy"
    records: ClassVar[type[Recorder]] = HierarchyRecorder
    traits: ClassVar[Traits] = Traits(has_server=False)
    timed: ClassVar[tuple[str, ...]] = ("upload", "download", "within")
    edges: Annotated[int, Field(ge=1)]
    """Number of edges; of a hierarchy within an edge, in each of these."""
    rounds: Annotated[int, Field(ge=1)] = 1
    """Rounds of an edge from one visit at the cloud to the next."""
    cloud: Literal["synchronous", "asynchronous"] = "synchronous"
    """Whether the cloud waits for all edges, or merges each one's model as it comes."""
    upload: AnyLaw | None = None
    """Law of virtual seconds from an edge to the cloud."""
    download: AnyLaw | None = None
    """Law of virtual seconds from the cloud to an edge."""
    edge: Literal["synchronous", "asynchronous"] = "synchronous"
    """Whether an edge waits for all of its clients, or merges each one's model as it
    comes, which then is a round of it; for edges that are right above clients."""
    within: "Hierarchy | None" = None
    """The hierarchy of which each edge is the cloud; none where clients are under it. A
    round of the edge is then one model that it makes of those of its own edges."""

    @model_validator(mode="after")
    def _edge_of_clients(self) -> "Hierarchy":
        if self.within is not None and self.edge != "synchronous":
            raise LocatedError(
                f"edge must be left out where edges have edges within them, got "
                f"{self.edge!r}; write within: {{cloud: {self.edge}}}, or edge in the "
                f"lowest within",
            )
        return self

    @property
    def levels(self) -> "list[Hierarchy]":
        """The hierarchies from the cloud down: this one, and those within."""
        return [self, *(self.within.levels if self.within else ())]

    def least_clients(self, num_clients: int, *, selected: bool) -> int:
        of_edges = [len(own) for own in self.members(num_clients)]
        least = [1 if self.levels[-1].edge == "asynchronous" else n for n in of_edges]
        for level in reversed(self.levels):
            gathered = np.reshape(least, (-1, level.edges))
            waits = level.cloud == "synchronous"
            least = (gathered.sum(axis=1) if waits else gathered.min(axis=1)).tolist()
        return int(least[0])

    def members(self, num_clients: int) -> list[list[int]]:
        """Returns the clients of each edge of the lowest level."""
        parts = [np.arange(num_clients)]
        for level in self.levels:
            parts = [own for part in parts for own in np.array_split(part, level.edges)]
        return [part.tolist() for part in parts]

    def described(self, num_clients: int) -> dict[str, Any]:
        found = super().described(num_clients)
        stages, resources, queues = found["stages"], {"one cloud": ""}, []
        place, above, number = "protocol", "the cloud", 1
        for level in self.levels:
            number *= level.edges
            stages |= {f"to {above}": f"{place}.upload"}
            stages |= {f"from {above}": f"{place}.download"}
            if level.cloud == "synchronous":
                queues.append(f"edges wait at {above} for the last of them")
            place, above = f"{place}.within", f"one of {number} edges"
            resources[f"{number} edges, each the server of what is below it"] = ""
        if self.levels[-1].edge == "synchronous":
            queues.append("clients wait at their edge for the last of them")
        return found | {"stages": stages, "resources": resources, "queues": queues}

    def cadence(self, num_clients: int, in_flight: int) -> Cadence:
        """Returns how rows come: one a contribution; a commit where edges are merged.

        A version is the cloud's; what a client has read of it says how stale it is. A
        contribution counts for its message to the edge and for its share of the edge's
        to the cloud, and so for the way down.
        """
        levels = self.levels
        applied = Fraction(1)  # of one round of an edge
        if levels[-1].edge == "synchronous":
            applied *= Fraction(num_clients, prod(level.edges for level in levels))
        each = Fraction(1)
        for level in reversed(levels):
            applied *= level.rounds  # of one visit of an edge of this level
            each += 1 / applied
            applied *= level.edges if level.cloud == "synchronous" else 1
        return Cadence(
            width=1,
            num_registers=2,
            contributions_per_commit=max(1, round(applied)),
            commits_per_round=1,
            messages=(each, each),
        )

    def check_setting(self, clients: Clients | None, server: Server, n: int) -> None:
        refuse_selection(self.kind, clients)
        refuse_server(self.kind, server, "whose edges are the clients' servers")
        number, place = 1, ["protocol"]
        for level in self.levels:
            number *= level.edges
            if number > n:
                raise LocatedError(
                    f"{'.'.join(place)}.edges must be at most the number of clients "
                    f"({n}) in all, got {number}; lower it or add clients",
                    (*place, "edges"),
                )
            for name in ("upload", "download"):
                law = getattr(level, name)
                if law is not None:
                    law.check(number, ".".join((*place, name)))
            place.append("within")

    def play(self, world: World, recorder: HierarchyRecorder) -> None:
        """Starts all edges at time 0, each with the first model.

        A client whose job is lost begins it again as soon as it is back, and one that
        has left is waited for.

        Source: Liu et al. (2020), Algorithm 1.
        """
        members = self.members(world.num_clients)
        EdgeTree(self.levels, members, world, recorder).start()
