"""Partitions, one a file: the columns of each party, or the rows of each client.

- `vertical`, `views`, `strips`: columns, in blocks or named groups, by the views that a
  data set has, or as strips of images.
- `iid`, `labels`, `dirichlet`, `dirichlet_clients`, `sizes`, `column`: training rows.
- `parts`: what partitions by rows inherit from, and steps that they have in common.

A partition is a pure function of its options, the data and, by rows, the run's seed.
"""
