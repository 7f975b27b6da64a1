"""Partitions: the columns of each party, or the rows of each client.

`columns` divides by columns: `vertical` in blocks or named groups, `strips` images in
vertical strips. `rows` divides by rows: `iid`, `labels`, `dirichlet`, `sizes` and
`column`.
"""

from simulator.problems.partitions.columns import strips, vertical
from simulator.problems.partitions.rows import column, dirichlet, iid, labels, sizes

__all__ = ["column", "dirichlet", "iid", "labels", "sizes", "strips", "vertical"]
