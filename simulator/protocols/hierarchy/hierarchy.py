"""Hierarchy: clients average at their edge, and edges at the cloud."""

from fractions import Fraction
from typing import Annotated, ClassVar, Literal

import numpy as np
from pydantic import Field

from simulator.laws.base import AnyLaw, Population
from simulator.protocols.base import (
    Cadence,
    GatheringRounds,
    refuse_more_than,
    refuse_selection,
    refuse_server,
)
from simulator.protocols.hierarchy.recorder import HierarchyRecorder
from simulator.recorders.recorder import Batch, Recorder
from simulator.streams import Purpose
from simulator.world.clients import Clients, Server
from simulator.world.cycle import Cycle
from simulator.world.delays import StageDelays
from simulator.world.world import Then, World


class Hierarchy(GatheringRounds):
    """Clients make rounds at their edge, and edges meet at the cloud every so often.

    Clients are divided among the edges in order, as evenly as goes. An edge waits for
    all of its clients; after so many of its rounds it sends its model to the cloud and
    goes on with what it gets back. The cloud waits for all edges, or answers each one
    as it comes.

    Source: Liu, Zhang, Song and Letaief, Client-Edge-Cloud Hierarchical Federated
    Learning (2020), Algorithm 1; with an asynchronous cloud as FedAsync has it.
    """

    kind: Literal["hierarchy"] = "hierarchy"
    timed: ClassVar[tuple[str, ...]] = ("upload", "download")
    edges: Annotated[int, Field(ge=1)]
    """Number of edges."""
    rounds: Annotated[int, Field(ge=1)] = 1
    """Rounds of an edge from one visit at the cloud to the next."""
    cloud: Literal["synchronous", "asynchronous"] = "synchronous"
    """Whether the cloud waits for all edges, or merges each one's model as it comes."""
    upload: AnyLaw | None = None
    """Law of virtual seconds from an edge to the cloud."""
    download: AnyLaw | None = None
    """Law of virtual seconds from the cloud to an edge."""

    def members(self, num_clients: int) -> list[list[int]]:
        """Returns the clients of each edge."""
        parts = np.array_split(np.arange(num_clients), self.edges)
        return [part.tolist() for part in parts]

    def cadence(self, num_clients: int, in_flight: int) -> Cadence:
        """Returns how rows come: one a contribution; a commit where edges are merged.

        A version is the cloud's; what a client has read of it says how stale it is. A
        contribution counts for its message to the edge and for its share of the edge's
        to the cloud, and so for the way down.
        """
        del in_flight
        merged = self.edges if self.cloud == "synchronous" else 1
        applied = self.rounds * num_clients * merged / self.edges
        each = 1 + Fraction(self.edges, self.rounds * num_clients)
        return Cadence(
            width=1,
            num_registers=2,
            contributions_per_commit=max(1, round(applied)),
            commits_per_round=1,
            messages=(each, each),
        )

    def check_setting(self, clients: Clients | None, server: Server, n: int) -> None:
        """Refuses more edges than clients, selections and a server's resources."""
        refuse_selection(self.kind, clients)
        refuse_more_than(n, "edges", self.edges)
        refuse_server(self.kind, server, "whose edges are the clients' servers")
        for name in self.timed:
            law = getattr(self, name)
            if law is not None:
                law.check(self.edges, f"protocol.{name}")

    def recorder(
        self, world: World, width: int, batch: Batch | None, num_samples: int
    ) -> Recorder:
        """Returns a recorder of contributions that wait at their edges."""
        return HierarchyRecorder(world, width, batch, num_samples)

    def play(self, world: World, recorder: HierarchyRecorder) -> None:
        """Starts all edges at time 0, each with the first model.

        A client whose job is lost begins it anew as soon as it is back, and one that
        has left is waited for.

        Source: Liu et al. (2020), Algorithm 1.
        """
        _Levels(self, world, recorder).start()


class _Levels:
    """Edges with their clients, and the cloud."""

    def __init__(
        self, config: Hierarchy, world: World, recorder: HierarchyRecorder
    ) -> None:
        self._config, self._world, self._recorder = config, world, recorder
        self._env = world.env
        self._members = config.members(world.num_clients)
        self._edge_of = {c: e for e, part in enumerate(self._members) for c in part}
        self._awaited = [0] * config.edges
        self._left = [config.rounds] * config.edges
        self._version = [0] * config.edges  # of the cloud, that an edge goes on from
        self._last = [0] * config.edges  # client that ended the edge's last round
        self._there = 0  # edges at a cloud that waits for all
        self._round = 0
        self._up = self._stage(config.upload, Purpose.EDGE_UP)
        self._down = self._stage(config.download, Purpose.EDGE_DOWN)
        arrive, lose = self._arrive, recorder.lose
        self._cycle = Cycle(world, self._read, arrive, lose, selects=False)

    def _stage(self, law: AnyLaw | None, purpose: Purpose) -> StageDelays | None:
        if law is None:
            return None
        edges, streams = self._config.edges, self._world.streams
        made = law.make(Population(edges, streams, 0, purpose.name.lower()))
        return StageDelays(made, purpose, streams, edges, None)

    def start(self) -> None:
        for edge in range(self._config.edges):
            self._begin(edge)

    def _begin(self, edge: int) -> None:
        self._awaited[edge] = len(self._members[edge])
        for client in self._members[edge]:
            self._cycle.begin(client)

    def _read(self, client: int) -> None:
        version = self._version[self._edge_of[client]]
        self._recorder.begin(client, self._env.now, version)

    def _arrive(self, client: int) -> None:
        recorder, now, edge = self._recorder, self._env.now, self._edge_of[client]
        self._awaited[edge] -= 1
        if self._awaited[edge] == 0:
            self._left[edge] -= 1
            if self._left[edge] == 0:
                recorder.arrive(client, now)
                self._last[edge] = client
                self._after(self._up, edge, self._visit)
                return
        recorder.contribute(now, client, self._round, held=True)
        if self._awaited[edge] == 0:
            self._begin(edge)

    def _visit(self, edge: int) -> None:
        """Lets an edge come to the cloud."""
        if self._config.cloud == "asynchronous":
            self._merge(edge, [edge])
            return
        self._there += 1
        if self._there < self._config.edges:
            last = self._last[edge]
            self._recorder.contribute(self._env.now, last, self._round, held=True)
            return
        self._there = 0
        self._merge(edge, range(self._config.edges))

    def _merge(self, last: int, edges: list[int] | range) -> None:
        members = {client for edge in edges for client in self._members[edge]}
        client = self._last[last]
        self._recorder.merge(self._env.now, client, self._round, members)
        self._round += 1
        for edge in edges:
            self._version[edge] = self._recorder.version
            self._left[edge] = self._config.rounds
            self._after(self._down, edge, self._begin)

    def _after(self, stage: StageDelays | None, edge: int, then: Then) -> None:
        delay = 0 if stage is None else stage.next(edge)
        if delay > 0:
            self._world.call(delay, then, edge)
        else:
            then(edge)
