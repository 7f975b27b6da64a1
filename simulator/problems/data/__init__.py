"""Data sets: bundled ones, files of the user, and stand-ins for what cannot ship.

- `base`: the arrays that a loader returns; `dividing`, `selecting`: training and test
  rows, classes, limit and scale of every set.
- One module a set (`idx`, `cifar`, `usps`, `mimic`, ...), and `NAME_standin`, which
  takes its place where its files are absent.
- `own`: npz and csv files of the user.
- `files`, `digests`, `limits`, `archive`, `table`, `cache`: the data folder, checksums,
  sizes and formats.
"""
