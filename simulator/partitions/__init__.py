"""Partitions: the columns of each party, or the rows of each client.

- `vertical`, `views`: columns, in blocks, named groups or strips of images, or by the
  views that a data set has.
- `even` (random or successive rows), `labels`, `dirichlet`, `dirichlet_clients`,
  `sizes`, `column`, `natural`: training rows.
- `parts`: what partitions by rows inherit from, and steps that they have in common.

A partition is a pure function of its options, the data and, by rows, the run's seed.
"""
