"""Hierarchy: clients average at their edge, edges at a cloud, at as many levels."""

from collections.abc import Callable, Container, Sequence
from fractions import Fraction
from math import prod
from typing import Annotated, ClassVar, Literal, cast

import numpy as np
from pydantic import Field, model_validator

from ...files.timeline import NO_SLOT, Rows
from ...parts.base import LocatedError
from ...world.clients import Clients, Server
from ...world.cycle import Cycle
from ...world.delays import StageDelays
from ...world.laws.base import AnyLaw, Population
from ...world.protocol import (
    Cadence,
    Protocol,
    Traits,
    refuse_server,
)
from ...world.recorders.recorder import Recorder
from ...world.streams import Purpose
from ...world.world import World

UNNAMED = 1
"""Register of all reads while the world is played; no row names it."""
ALWAYS = 1 << 60
"""Readers of it, so that it is never free."""


class HierarchyRecorder(Recorder):
    """The timeline of one run in which clients read the models of their edges.

    An edge's model stays as it is while its clients work, so that it needs no register;
    one that does not wait for them gives each a copy, which stays as it is as well.
    """

    def __init__(self, world: World, width: int) -> None:
        super().__init__(world, width)
        self._readers.append(ALWAYS)

    def begin(self, client: int, version: int) -> None:
        """Begins a client's next job, at its edge's model of a version of the cloud."""
        self._job[client] = self.new_job(client)
        self._read_time[client] = self._now
        self._read_version[client] = version
        self._read_slot[client] = UNNAMED

    def merge(
        self, client: int, round_: int, others: Container[tuple[int, int]]
    ) -> None:
        """Merges the arrived contributions into the cloud, the last one included.

        Args:
            client: Client whose contribution ended its edge's last round.
            round_: Round of the cloud.
            others: All other jobs whose work is in the merged model: (client, job).
        """
        waiting, self._held = self._held, []
        for entry in waiting:
            into = self._buffered if entry[1:3] in others else self._held
            into.append(entry)
        self.commit((client,), round_)

    def _finished(self, rows: Rows) -> Rows:
        rows.read_slot[rows.read_slot == UNNAMED] = NO_SLOT
        return rows


class Edge:
    """An edge of whatever level, or the cloud, which has no parent.

    Args:
        tree: The tree that it is in.
        number: Number among all edges, level by level.
        parent: Where it sends its model.
        rounds: Rounds between two visits there.
        up: Way to the parent; None takes no time.
        down: Way back.
    """

    def __init__(
        self,
        tree: "EdgeTree",
        number: int = 0,
        parent: "Edge | None" = None,
        rounds: int = 0,
        up: StageDelays | None = None,
        down: StageDelays | None = None,
    ) -> None:
        self._tree, self._number, self._parent = tree, number, parent
        self._rounds, self._up, self._down = rounds, up, down
        self.waits = True  # in each round, for all edges below
        self.below: list[Edge] = []
        self.clients: list[int] = []
        self.awaited = 0  # of those below, in this round
        self.version = 0  # of the cloud, which its model started from
        self._left = rounds  # until its next visit
        self._last = 0  # client that ended its last round
        self._away = False  # its model is on the way to the parent and back
        self._continuing: list[Edge] = []  # edges below, when it is back
        self._queue: list[Edge] = []  # edges below that have come since
        self._held: list[tuple[int, int]] = []  # jobs whose work it has, by client

    def arrive(self, client: int) -> None:
        """Takes in the contribution of one of its clients."""
        self.awaited -= 1
        if self.awaited:
            self._hold(client)
            return
        if self._left == 1:
            self._tree.recorder.arrive(client)
        self._end_round(client, [])

    def answer(self, edges: "list[Edge]") -> None:
        """Lets its clients, or edges below it, continue from its model."""
        if self.clients:
            self.awaited = len(self.clients)
            for client in self.clients:
                self._tree.cycle.begin(client)
        for below in edges:
            below.version = self.version
            below._after(below._down, below._go_on)

    def _hold(self, client: int) -> None:
        """Writes down a contribution that comes no further than here, for now."""
        recorder = self._tree.recorder
        self._held.append((client, recorder.current_job(client)))
        recorder.contribute(client, self._tree.round, held=True)

    def _end_round(self, client: int, edges: "list[Edge]") -> None:
        """Continues with its own model, or visits the one above."""
        self._left -= 1
        if self._left:
            self._hold(client)
            self.answer(edges)
            return
        self._last, self._away, self._continuing = client, True, edges
        self._after(self._up, self._visit)

    def _visit(self) -> None:
        """Comes to its parent, which may be away."""
        parent = self._parent
        assert parent is not None
        if parent._away:
            parent._queue.append(self)
            return
        parent._held += self._held
        self._held = []
        edges: list[Edge] = [self]
        if parent.waits:
            parent.awaited -= 1
            if parent.awaited:
                parent._hold(self._last)
                return
            parent.awaited, edges = len(parent.below), parent.below
        if parent._parent is None:
            parent._merge(self._last, edges)
        else:
            parent._end_round(self._last, edges)

    def _merge(self, client: int, edges: "list[Edge]") -> None:
        tree = self._tree
        tree.recorder.merge(client, tree.round, set(self._held))
        tree.round += 1
        self._held, self.version = [], tree.recorder.version
        self.answer(edges)

    def _go_on(self) -> None:
        """Answers when it is back, and sees to those that have come since."""
        self._left, self._away = self._rounds, False
        queue, self._queue = self._queue, []
        self.answer(self._continuing)
        for below in queue:
            below._visit()

    def _after(self, way: StageDelays | None, then: Callable[[], None]) -> None:
        delay = 0 if way is None else way.next(self._number)
        if delay > 0:
            self._tree.world.call(delay, lambda _: then(), 0)
        else:
            then()


class EdgeTree:
    """Lets clients work for their edges, and edges for those above.

    Args:
        levels: The hierarchies from the cloud down.
        members: Clients of each edge of the lowest level.
        world: World that is simulated.
        recorder: Receiver of reads, and of the outcome of each job.

    Attributes:
        round: Rounds of the cloud so far.
    """

    def __init__(
        self,
        levels: "Sequence[Hierarchy]",
        members: Sequence[list[int]],
        world: World,
        recorder: HierarchyRecorder,
    ) -> None:
        self.world, self.recorder, self.round = world, recorder, 0
        edges, first = [Edge(self)], 0
        for level in levels:
            number = len(edges) * level.edges
            up = self._stage(level.upload, Purpose.EDGE_UP, first, number)
            down = self._stage(level.download, Purpose.EDGE_DOWN, first, number)
            for place, parent in enumerate(edges):
                parent.waits = level.cloud == "synchronous"
                parent.awaited = level.edges
                parent.below = [
                    Edge(self, first + k, parent, level.rounds, up, down)
                    for k in range(place * level.edges, (place + 1) * level.edges)
                ]
            edges = [edge for parent in edges for edge in parent.below]
            first += number
        if levels[-1].edge == "asynchronous":  # each client is an edge of its own
            for edge, clients in zip(edges, members, strict=True):
                edge.waits = False
                edge.below = [Edge(self, first + c, edge, 1) for c in clients]
            edges = [client for edge in edges for client in edge.below]
            members = [[client] for part in members for client in part]
        self._edges = edges
        self._edge_of: dict[int, Edge] = {}
        for edge, edge.clients in zip(edges, members, strict=True):
            self._edge_of |= dict.fromkeys(edge.clients, edge)
        self.cycle = Cycle(
            world, self._read, self._arrive, recorder.lose, selects=False
        )

    def _stage(
        self, law: AnyLaw | None, purpose: Purpose, first: int, number: int
    ) -> StageDelays | None:
        if law is None:
            return None
        stage = purpose.name.lower()
        population = Population(number, self.world.streams, first, stage)
        return StageDelays(law.make(population), purpose, population, None)

    def start(self) -> None:
        """Starts all edges, each with the first model."""
        for edge in self._edges:
            edge.answer([])

    def _read(self, client: int) -> None:
        self.recorder.begin(client, self._edge_of[client].version)

    def _arrive(self, client: int) -> None:
        self._edge_of[client].arrive(client)


class Hierarchy(Protocol):
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
    traits: ClassVar[Traits] = Traits(has_server=False, everyone_works=True)
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
    round of the edge is then one model, merged from its own edges' models."""

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
    def gathers(self) -> bool:
        return True

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

    def described(self, num_clients: int) -> dict[str, object]:
        found = super().described(num_clients)
        stages = cast("dict[str, str]", found["stages"])
        resources, queues = {"one cloud": ""}, []
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
        """Returns the pattern of rows: one per contribution; merging edges commits.

        A version is the cloud's; a contribution's staleness follows from the cloud's
        version that its client has read. A contribution counts for its message to the
        edge and for its share of the edge's to the cloud, and so for the way down.
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
        """
        members = self.members(world.num_clients)
        EdgeTree(self.levels, members, world, recorder).start()
