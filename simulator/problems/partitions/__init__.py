"""Partitions: which columns each party holds, or which rows each client holds."""

from simulator.problems.partitions.columns import vertical
from simulator.problems.partitions.rows import column, dirichlet, iid, labels, sizes

__all__ = ["column", "dirichlet", "iid", "labels", "sizes", "vertical"]
