"""Pairs of workers that exchange something: each worker with one other at a time."""

from collections.abc import Callable
from typing import NamedTuple

Then = Callable[[int], None]


class Pair(NamedTuple):
    """A request; earlier ones have smaller numbers.

    Attributes:
        number: Number of the request.
        initiator: Worker that asks.
        partner: Worker that is asked.
        then: Called with the initiator when the exchange is over.
    """

    number: int
    initiator: int
    partner: int
    then: Then


class Pairs:
    """Lets pairs begin their exchanges in the order of their requests.

    A request takes both of its workers or, while one of them is with another, neither,
    and waits; so no waiting worker is held, and there is no deadlock. When workers
    become free, the oldest request that can begin does.

    Args:
        num_workers: Number of workers.
        begin: Called with a pair that begins; calls `end` when its time is over.
        over: Called with a pair that ends, before its `then`.
    """

    def __init__(
        self,
        num_workers: int,
        begin: Callable[[Pair], None],
        over: Callable[[Pair], None],
    ) -> None:
        self._begin, self._over = begin, over
        self._busy = bytearray(num_workers)
        self._waiting: list[set[Pair]] = [set() for _ in range(num_workers)]
        self._number = 0

    def ask(self, initiator: int, partner: int, then: Then) -> None:
        """Requests an exchange."""
        self._number += 1
        pair = Pair(self._number, initiator, partner, then)
        if self._can_begin(pair):
            self._take(pair)
        else:
            self._waiting[initiator].add(pair)
            self._waiting[partner].add(pair)

    def end(self, pair: Pair) -> None:
        """Ends an exchange; others may begin."""
        self._over(pair)
        pair.then(pair.initiator)
        ends = pair.initiator, pair.partner
        for worker in ends:
            self._busy[worker] = 0
        for waiting in sorted(self._waiting[ends[0]] | self._waiting[ends[1]]):
            # One that began meanwhile, and took no time, waits no more.
            if waiting in self._waiting[waiting.partner] and self._can_begin(waiting):
                self._waiting[waiting.initiator].remove(waiting)
                self._waiting[waiting.partner].remove(waiting)
                self._take(waiting)

    def _can_begin(self, pair: Pair) -> bool:
        return not (self._busy[pair.initiator] or self._busy[pair.partner])

    def _take(self, pair: Pair) -> None:
        self._busy[pair.initiator] = self._busy[pair.partner] = 1
        self._begin(pair)
