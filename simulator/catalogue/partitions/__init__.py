"""Partitions: the columns of each party, or the rows of each client.

- `vertical`: columns, in blocks, named groups or strips of images, or by the views that
  a data set has.
- `shares` (random or successive rows), `classes`, `natural`: training rows.

A partition is a pure function of its options, the data and, by rows, the run's seed.
"""
