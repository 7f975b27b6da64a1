"""Graphs of workers: options, checks, the pairs that may average, and weights.

`base` says what every graph is; `kinds` holds them.
"""

from .base import AnyGraph, Directed, Edge, Graph, Phase, Undirected
from .kinds import (
    Arcs,
    Bipartite,
    Complete,
    Edges,
    ErdosRenyi,
    Exponential,
    RandomRegular,
    Ring,
    Torus,
)

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
