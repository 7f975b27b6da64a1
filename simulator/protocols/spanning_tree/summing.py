"""Sums go up whenever an edge is free, until the pivot has enough: Fragile SGD."""

from ...streams import Purpose
from .nodes import Node, Spreading
from .recorder import DoneJob


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
            self._recorder.apply(self._env.now, load, self._round, commits=False)
