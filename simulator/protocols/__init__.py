"""Coordination protocols, one a file or folder: the order of reads and commits.

A protocol is one class: its options, what it says of itself (`base.Protocol`), and
`play`, which starts its events on SimPy. None of them knows an algorithm.
"""

from .asynchronous import Asynchronous
from .base import Cadence, Protocol
from .bounded import Bounded
from .buffered import Buffered
from .centralised import Centralised
from .collect.collect import Collect
from .cyclic import Cyclic
from .gossip import Gossip
from .hierarchy.hierarchy import Hierarchy
from .phases import Phases
from .pipeline import Pipeline
from .rounds import Rounds
from .routed.routed import Routed
from .synchronous import Synchronous
from .t_synchronous import TSynchronous

__all__ = [
    "Asynchronous",
    "Bounded",
    "Buffered",
    "Cadence",
    "Centralised",
    "Collect",
    "Cyclic",
    "Gossip",
    "Hierarchy",
    "Phases",
    "Pipeline",
    "Protocol",
    "Rounds",
    "Routed",
    "Synchronous",
    "TSynchronous",
]
