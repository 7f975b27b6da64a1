"""Slow twins of Fragile SGD and Amelie SGD, written from methods.md, section 11.

A node is a mailbox that a single loop serves; a message knows its whole way. Nothing
is shared with the program but the durations and the gradients.
"""

import heapq
import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

Seconds = Callable[[int, int], float]
"""Seconds of the n-th draw of a client: of a job, or of a message on its edge."""


class Round(NamedTuple):
    """A commit: its time, and (client, job) of what it applies, in order."""

    time_s: float
    applied: list[tuple[int, int]]


@dataclass
class Node:
    """One client of the tree.

    Attributes:
        parent: The next node towards the pivot; -1 at the pivot.
        children: Those whose parent it is.
        version: Newest model that it has; -1 for none.
        own: Jobs of its own at that model, that are done.
        heap: Jobs that it would send up, its own and its children's.
        up: When its edge towards the pivot is free, and messages that wait for it.
        frozen: Whether it was told that the round is over (Amelie).
        counters: Newest sum of inverse counts of each child (Amelie).
        sums: Jobs of each child's sub-tree, once they have come (Amelie).
    """

    parent: int
    children: list[int] = field(default_factory=list)
    version: int = -1
    own: list[tuple[int, int]] = field(default_factory=list)
    heap: list[tuple[int, int]] = field(default_factory=list)
    up_busy: bool = False
    down_busy: bool = False
    down_news: list[tuple[str, int]] = field(default_factory=list)
    up_news: bool = False
    frozen: bool = False
    sent: bool = False
    counters: dict[int, float] = field(default_factory=dict)
    sums: dict[int, list[tuple[int, int]]] = field(default_factory=dict)
    started: int = 0
    ups: int = 0
    downs: int = 0
    current: int = -1


def tree_of(edges: Sequence[tuple[int, int]], n: int, pivot: int) -> list[Node]:
    """The tree of fewest edges from the pivot; of several parents, the least number."""
    far = {pivot: 0}
    parent = {pivot: -1}
    ring = [pivot]
    while ring:
        reached: dict[int, int] = {}
        for here in sorted(ring):
            for i, j in edges:
                for a, b in ((i, j), (j, i)):
                    if a == here and b not in far and b not in reached:
                        reached[b] = here
        for node, source in reached.items():
            far[node], parent[node] = far[source] + 1, source
        ring = list(reached)
    nodes = [Node(parent[k]) for k in range(n)]
    for k in range(n):
        if parent[k] >= 0:
            nodes[parent[k]].children.append(k)
    return nodes


def play(
    nodes: list[Node],
    pivot: int,
    job_s: Seconds,
    up_s: Seconds,
    down_s: Seconds,
    rounds: int,
    *,
    count: int | None = None,
    mean: float = 0.0,
    stops: bool,
) -> list[Round]:
    """Fragile where `count` is given, else Amelie with a least harmonic mean."""
    n = len(nodes)
    done: list[Round] = []
    events: list[tuple[float, int, Callable[[], None]]] = []
    order = itertools.count()
    now, version = 0.0, 0
    arrived: list[tuple[int, int]] = []

    def later(seconds: float, then: Callable[[], None]) -> None:
        heapq.heappush(events, (now + seconds, next(order), then))

    def work(k: int) -> None:
        node = nodes[k]
        job, made_at = node.started, node.version
        node.started += 1
        node.current = job
        later(job_s(k, job), lambda: ended(k, job, made_at))

    def ended(k: int, job: int, made_at: int) -> None:
        node = nodes[k]
        if node.current != job:
            return
        node.current = -1
        if made_at == node.version and not node.frozen:
            if count is None:
                node.own.append((k, job))
                node.up_news = True
                report(k)
            elif k == pivot:
                collect([(k, job)], made_at)
            else:
                node.heap.append((k, job))
                climb(k)
        if node.current < 0 and not node.frozen:
            work(k)

    def told(k: int, what: str, of: int) -> None:
        """A message from above has come: a model, or the end of the round."""
        node = nodes[k]
        if what == "model":
            idle = node.current < 0
            node.version, node.frozen, node.sent = of, False, False
            node.own, node.heap, node.up_news = [], [], False
            node.counters, node.sums = {}, {}
            for child in node.children:
                pass_down(child, what, of)
            if idle or stops:
                work(k)
        else:
            node.frozen, node.up_news = True, False
            if stops:
                node.current = -1
            for child in node.children:
                pass_down(child, what, of)
            reduce(k)

    def pass_down(child: int, what: str, of: int) -> None:
        nodes[child].down_news.append((what, of))
        flow(child)

    def flow(child: int) -> None:
        node = nodes[child]
        if node.down_busy or not node.down_news:
            return
        if count is not None:  # only the newest model is worth sending
            node.down_news = node.down_news[-1:]
        what, of = node.down_news.pop(0)
        node.down_busy = True
        number, node.downs = node.downs, node.downs + 1

        def came() -> None:
            node.down_busy = False
            told(child, what, of)
            flow(child)

        later(down_s(child, number), came)

    def send_up(node: Node, k: int, came: Callable[[Node], None]) -> None:
        """Has something done above when a message has passed the edge."""
        node.up_busy = True
        number, node.ups = node.ups, node.ups + 1

        def arrive() -> None:
            node.up_busy = False
            came(nodes[node.parent])

        later(up_s(k, number), arrive)

    def climb(k: int) -> None:
        """Fragile: all that has gathered goes up as soon as the edge is free."""
        node = nodes[k]
        if node.up_busy or not node.heap:
            return
        load, node.heap, of = node.heap, [], node.version

        def came(above: Node) -> None:
            if node.parent == pivot:
                collect(load, of)
            elif above.version == of:
                above.heap += load
                climb(node.parent)
            climb(k)

        send_up(node, k, came)

    def collect(load: list[tuple[int, int]], of: int) -> None:
        nonlocal version, arrived
        if of < version:
            return
        arrived += load
        if count is not None and len(arrived) >= count:
            commit(arrived)
            arrived = []

    def commit(jobs: list[tuple[int, int]]) -> None:
        nonlocal version
        version += 1
        done.append(Round(now, jobs))
        told(pivot, "model", version)

    def inverse(k: int) -> float:
        node = nodes[k]
        if not node.own or len(node.counters) < len(node.children):
            return float("inf")
        return 1 / len(node.own) + sum(node.counters.values())

    def report(k: int) -> None:
        """Amelie: a new counter goes up as soon as the edge is free."""
        node = nodes[k]
        if k == pivot:
            if not node.frozen and n / inverse(k) >= mean * (1 - 1e-12):
                told(pivot, "end", version)
            return
        if node.up_busy or not node.up_news or node.frozen:
            return
        value = inverse(k)
        if value == float("inf"):
            return
        node.up_news, of = False, node.version

        def came(above: Node) -> None:
            if above.version == of and not above.frozen:
                above.counters[k] = value
                above.up_news = True
                report(node.parent)
            report(k)
            reduce(k)

        send_up(node, k, came)

    def reduce(k: int) -> None:
        """Amelie: a node sends its sub-tree's sum when it has all of it."""
        node = nodes[k]
        whole = len(node.sums) == len(node.children)
        if not node.frozen or node.sent or not whole or node.up_busy:
            return
        load = node.own + [job for jobs in node.sums.values() for job in jobs]
        node.sent = True
        if k == pivot:
            commit(sorted(load))
            return

        def came(above: Node) -> None:
            above.sums[k] = load
            reduce(node.parent)
            report(k)

        send_up(node, k, came)

    told(pivot, "model", 0)
    while len(done) < rounds:
        now, _, then = heapq.heappop(events)
        then()
    return done
