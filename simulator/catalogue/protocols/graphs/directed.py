"""Graphs along whose edges models go one way only."""

from math import ceil, log2
from typing import Annotated, Literal

from pydantic import Field

from ....parts.base import LocatedError
from ....world.protocol_abilities import Draw
from .base import Count, Directed, Phase, all_reached


class Exponential(Directed):
    """Directed: each sends to one other, 1, 2, 4, ... places on in successive rounds.

    Source: Assran et al., Stochastic Gradient Push (2019), appendix A.
    """

    kind: Literal["exponential"] = "exponential"

    def num_pairs(self, n: int) -> int:
        return n * n.bit_length()

    def receivers(self, n: int, draw: Draw | None = None) -> list[Phase]:
        hops = [2**phase for phase in range(max(1, ceil(log2(n))))]
        return [[[(k + hop) % n] for k in range(n)] for hop in hops]


class Arcs(Directed):
    """Directed: the senders and receivers that are listed."""

    kind: Literal["arcs"] = "arcs"
    arcs: Annotated[tuple[tuple[Count, Count], ...], Field(min_length=1)]
    """Pairs of a sender and a receiver, numbered from 1."""

    def num_pairs(self, n: int) -> int:
        return len(self.arcs)

    def receivers(self, n: int, draw: Draw | None = None) -> list[Phase]:
        found: Phase = [[] for _ in range(n)]
        senders: Phase = [[] for _ in range(n)]
        for sender, receiver in sorted({*self.arcs}):
            if sender == receiver or max(sender, receiver) > n:
                raise LocatedError(
                    f"protocol.graph.arcs must be pairs of different workers from 1 to "
                    f"{n}, got [{sender}, {receiver}]; change it",
                )
            found[sender - 1].append(receiver - 1)
            senders[receiver - 1].append(sender - 1)
        if not (all_reached(found) and all_reached(senders)):
            raise LocatedError(
                "protocol.graph must be strongly connected, or some workers never hear "
                "of others; add arcs",
            )
        return [found]
