"""Clients as nodes of a tree: they compute, and pass on what comes."""

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable
from typing import Literal

from ....files.timeline import Incident, Outcome
from ....world.streams import Purpose
from ....world.world import World
from ..graphs.base import Edge, neighbours
from .recorder import DoneJob, TreeRecorder

News = tuple[Literal["model", "end"], int]
"""What goes down the tree: a model, or the end of its round; and its version."""


class Node:
    """One client of the tree.

    Args:
        client: Its number, from 0.

    Attributes:
        parent: The next node towards the pivot; None at the pivot.
        children: Those whose parent it is, in order of their numbers.
        version: Newest version that it has; -1 before the first.
        serial: Token of the job under way; a stopped one has another.
        busy: Whether a job is under way.
        frozen: Whether it takes no part in the round any more.
        pile: Jobs at its version that are done, its own and those that came up.
        up_busy: Whether its edge towards the pivot carries anything.
        down_busy: Whether that edge carries anything down to it.
        coming: What waits to go down to it.
    """

    def __init__(self, client: int) -> None:
        self.client = client
        self.parent: Node | None = None
        self.children: list[Node] = []
        self.version, self.serial = -1, 0
        self.busy = self.frozen = self.up_busy = self.down_busy = False
        self.pile: list[DoneJob] = []
        self.coming: deque[News] = deque()


def tree_of(edges: list[Edge], n: int, pivot: int) -> list[Node]:
    """Returns a tree of fewest edges from a pivot, as nodes of which it is the first.

    Args:
        edges: Edges of a connected graph, as pairs from 0.
        n: Clients.
        pivot: Number of the pivot, from 0.
    """
    around = neighbours(edges, n)
    nodes = [Node(client) for client in range(n)]
    reached, ring = {pivot}, [pivot]
    while ring:
        further = []
        for near in sorted(ring):
            for far in around[near]:
                if far not in reached:
                    reached.add(far)
                    further.append(far)
                    nodes[far].parent = nodes[near]
                    nodes[near].children.append(nodes[far])
        ring = further
    return [nodes[pivot], *nodes[:pivot], *nodes[pivot + 1 :]]


class Spreading(ABC):
    """What both rules share: the pivot's model goes down, and clients compute at it.

    Args:
        nodes: Nodes of the tree, the pivot first.
        least: What ends a round: contributions, or a harmonic mean of counts.
        world: World that is simulated.
        recorder: Recorder of the timeline.
        stops: Whether a job that has become vain is stopped.
    """

    newest_only: bool
    """Whether a model that waits for an edge gives way to a newer one."""

    def __init__(
        self,
        nodes: list[Node],
        least: float,
        world: World,
        recorder: TreeRecorder,
        *,
        stops: bool,
    ) -> None:
        self._least = least
        self._pivot, self._world, self._recorder = nodes[0], world, recorder
        self._env, self._stops = world.env, stops
        self._of = {node.client: node for node in nodes}
        self._at_once: deque[Callable[[], None]] = deque()
        """What comes over edges that take no time; a call each would nest too deep."""
        self._round = 0

    def start(self) -> None:
        """Lets the pivot have the first model."""
        self._world.delays.prefetch_everyone()
        self._receive(self._pivot, 0)
        self._settle()

    @abstractmethod
    def _done(self, node: Node, done: DoneJob) -> None:
        """Continues where a job at its client's newest model is done."""

    @abstractmethod
    def _renew(self, node: Node) -> None:
        """Forgets what a node has kept of the round before."""

    @abstractmethod
    def _freeze(self, node: Node) -> None:
        """Takes notice that the round is over, where a rule sends out as much."""

    def _receive(self, node: Node, version: int) -> None:
        node.version, node.frozen = version, False
        self._recorder.reject(node.pile)
        node.pile = []
        self._renew(node)
        for child in node.children:
            self._send_down(child, ("model", version))
        if node.busy and self._stops:
            self._stop(node)
        if not node.busy:
            self._begin(node)

    def _begin(self, node: Node) -> None:
        world, client, now = self._world, node.client, self._env.now
        job = self._recorder.begin(client, node.version)
        node.busy = True
        node.serial += 1
        serial = node.serial

        def end(_: int) -> None:
            if node.serial == serial:
                self._end(node)

        duration = world.computing(client, job, now)
        world.call(duration + world.workload.overhead_s, end, client)

    def _end(self, node: Node) -> None:
        self._world.budget.send(node.client)
        done = self._recorder.finish(node.client)
        node.busy = False
        if done.read.read_version == node.version and not node.frozen:
            self._done(node, done)
        else:
            self._recorder.reject([done])
        self._settle()
        if not node.busy and not node.frozen:
            self._begin(node)

    def _stop(self, node: Node) -> None:
        self._world.note(self._env.now, node.client, Incident.STOPPED)
        self._recorder.lose(node.client, Outcome.STOPPED)
        node.serial += 1
        node.busy = False

    def _send_down(self, node: Node, news: News) -> None:
        if self.newest_only:
            node.coming.clear()
        node.coming.append(news)
        self._flow_down(node)

    def _flow_down(self, node: Node) -> None:
        if node.down_busy or not node.coming:
            return
        what, version = node.coming.popleft()
        node.down_busy = True

        def came() -> None:
            node.down_busy = False
            if what == "model":
                self._receive(node, version)
            else:
                self._freeze(node)
            self._flow_down(node)

        self._after(Purpose.DOWNLOAD, node, came)

    def _after(self, way: Purpose, node: Node, then: Callable[[], None]) -> None:
        """Continues when a message has passed a node's edge."""
        delay = self._world.transit(way, node.client)
        if delay == 0:
            self._at_once.append(then)
            return

        def came(_: int) -> None:
            then()
            self._settle()

        self._world.call(delay, came, node.client)

    def _settle(self) -> None:
        while self._at_once:
            self._at_once.popleft()()

    def _leave(self, node: Node, load: list[DoneJob]) -> None:
        """Notes that jobs go over a node's edge, as one message."""
        now = self._env.now
        if load:
            load[0].uploads += 1
        for done in load:
            if done.client == node.client:
                done.sent = now

    def _commit(self, arrived: list[DoneJob]) -> None:
        """Makes a step of what has come, and begins the next round."""
        self._recorder.apply(arrived, self._round, commits=True)
        self._round += 1
        self._receive(self._pivot, self._recorder.version)
