"""Graphs of workers: options, checks, the pairs that may average, and weights.

`base` says what every graph is; `fixed`, `random` and `directed` hold them.
"""

from .base import AnyGraph, Directed, Edge, Graph, Phase, Undirected
from .directed import Arcs, Exponential
from .fixed import Bipartite, Complete, Edges, Ring, Torus
from .random import ErdosRenyi, RandomRegular

__all__ = [
    "AnyGraph",
    "Arcs",
    "Bipartite",
    "Complete",
    "Directed",
    "Edge",
    "Edges",
    "ErdosRenyi",
    "Exponential",
    "Graph",
    "Phase",
    "RandomRegular",
    "Ring",
    "Torus",
    "Undirected",
]
