"""Counts go up until their mean is large enough, then sums do once: Amelie SGD."""

from math import inf
from typing import Any

from ....world.streams import Purpose
from .nodes import Node, Spreading
from .recorder import DoneJob

ROUNDING = 1e-12
"""Relative rounding error of a sum of inverse counts, which may decide nothing."""


class Reducing(Spreading):
    """Rounds that end when the harmonic mean of the clients' counts is large enough.

    With b the sum of inverse counts that the pivot knows of, that is n / b >= `least`,
    a number >= 1.

    Args:
        nodes_and_rest: As in `Spreading`.
        stops: As in `Spreading`.

    Source: Tyurin and Richtarik (2024), Amelie SGD.
    """

    newest_only = False

    def __init__(self, *nodes_and_rest: Any, stops: bool) -> None:
        super().__init__(*nodes_and_rest, stops=stops)
        self._inverse: dict[int, dict[int, float]] = {}
        """Of each node, the sums of inverse counts of its children's sub-trees."""
        self._sums: dict[int, list[list[DoneJob]]] = {}
        """Of each node, what its children's sub-trees have sent."""
        self._news: set[int] = set()
        """Nodes whose sum of inverse counts has changed since they sent it."""
        self._sent: set[int] = set()

    def _renew(self, node: Node) -> None:
        self._inverse[node.client], self._sums[node.client] = {}, []
        self._news.discard(node.client)
        self._sent.discard(node.client)

    def _done(self, node: Node, done: DoneJob) -> None:
        node.pile.append(done)
        self._changed(node)

    def _changed(self, node: Node) -> None:
        self._news.add(node.client)
        if node is not self._pivot:
            self._report(node)
        elif len(self._of) / self._inverse_of(node) >= self._least * (1 - ROUNDING):
            self._freeze(node)

    def _inverse_of(self, node: Node) -> float:
        below = self._inverse[node.client]
        if not node.pile or len(below) < len(node.children):
            return inf
        return 1 / len(node.pile) + sum(below.values())

    def _report(self, node: Node) -> None:
        """Sends a new sum of inverse counts, if the edge is free."""
        if node.up_busy or node.frozen or node.client not in self._news:
            return
        inverse, version = self._inverse_of(node), node.version
        if inverse == inf:
            return
        self._news.discard(node.client)
        node.up_busy = True

        def came() -> None:
            node.up_busy = False
            parent = node.parent
            assert parent is not None
            if parent.version == version and not parent.frozen:
                self._inverse[parent.client][node.client] = inverse
                self._changed(parent)
            self._report(node)
            self._send_up(node)

        self._after(Purpose.UPLOAD, node, came)

    def _freeze(self, node: Node) -> None:
        node.frozen = True
        if node.busy and self._stops:
            self._stop(node)
        for child in node.children:
            self._send_down(child, ("end", node.version))
        self._send_up(node)

    def _send_up(self, node: Node) -> None:
        """Sends the sum of a node's sub-tree, once it has all of it."""
        sums = self._sums[node.client]
        whole = len(sums) == len(node.children)
        if not node.frozen or node.client in self._sent or not whole or node.up_busy:
            return
        load = node.pile + [done for part in sums for done in part]
        node.pile = []
        self._sent.add(node.client)
        if node is self._pivot:
            self._commit(sorted(load, key=lambda done: (done.client, done.read.job)))
            return
        node.up_busy = True
        self._leave(node, load)

        def came() -> None:
            node.up_busy = False
            assert node.parent is not None
            self._sums[node.parent.client].append(load)
            self._send_up(node.parent)
            self._report(node)

        self._after(Purpose.UPLOAD, node, came)


class Summing(Spreading):
    """Rounds that end with `least` contributions at the pivot.

    Source: Tyurin and Richtarik (2024), Fragile SGD.
    """

    newest_only = True

    def _renew(self, node: Node) -> None:
        if node is self._pivot:
            self._missing = self._least

    def _freeze(self, node: Node) -> None:
        """Does nothing: no round is over before the next model comes."""

    def _done(self, node: Node, done: DoneJob) -> None:
        if node is self._pivot:
            self._take([done], node.version)
        else:
            node.pile.append(done)
            self._send_up(node)

    def _send_up(self, node: Node) -> None:
        if node.up_busy or not node.pile:
            return
        load, node.pile, version = node.pile, [], node.version
        node.up_busy = True
        self._leave(node, load)

        def came() -> None:
            node.up_busy = False
            parent = node.parent
            assert parent is not None
            if parent is self._pivot:
                self._take(load, version)
            elif parent.version == version:
                parent.pile += load
                self._send_up(parent)
            else:
                self._recorder.reject(load)
            self._send_up(node)

        self._after(Purpose.UPLOAD, node, came)

    def _take(self, load: list[DoneJob], version: int) -> None:
        """Takes what has come to the pivot: all of it, or nothing."""
        if version < self._recorder.version:
            self._recorder.reject(load, self._env.now)
            return
        self._missing -= len(load)
        if self._missing <= 0:
            self._commit(load)
        else:
            self._recorder.apply(load, self._round, commits=False)
