"""What all data sets share.

- `parts`: what all inherit from, also those with files; `base`: the arrays that they
  make, names of columns, and random generators.
- `split`: training and test rows and classes of all sets.
- `images`: rows as images; `outputs`: outputs of a model of the data.
"""
