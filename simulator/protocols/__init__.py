"""Coordination protocols, one a file or folder: the order of reads and commits.

A protocol is one class: its options, what it says of itself (`base.Protocol`), and
`play`, which starts its events on SimPy. None of them knows an algorithm.
"""

from simulator.protocols.asynchronous import Asynchronous
from simulator.protocols.base import Cadence, Protocol
from simulator.protocols.bounded import Bounded
from simulator.protocols.buffered import Buffered
from simulator.protocols.centralised import Centralised
from simulator.protocols.collect.collect import Collect
from simulator.protocols.cyclic import Cyclic
from simulator.protocols.gossip import Gossip
from simulator.protocols.hierarchy.hierarchy import Hierarchy
from simulator.protocols.phases import Phases
from simulator.protocols.pipeline import Pipeline
from simulator.protocols.rollouts import GenerateAndTrain
from simulator.protocols.rounds import Rounds
from simulator.protocols.routed.routed import Routed
from simulator.protocols.spanning_tree.spanning_tree import SpanningTree
from simulator.protocols.synchronous import Synchronous
from simulator.protocols.t_synchronous import TSynchronous

__all__ = [
    "Asynchronous",
    "Bounded",
    "Buffered",
    "Cadence",
    "Centralised",
    "Collect",
    "Cyclic",
    "GenerateAndTrain",
    "Gossip",
    "Hierarchy",
    "Phases",
    "Pipeline",
    "Protocol",
    "Rounds",
    "Routed",
    "SpanningTree",
    "Synchronous",
    "TSynchronous",
]
