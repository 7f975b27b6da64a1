"""What all data sets share.

- `parts`: what all inherit from; `base`: the arrays that they
  make, and their random generators.
- `split`, `classes`, `names`: training and test rows, classes and names of columns of
  all sets; `file_set`: files of several.
- `images`: rows as images; `outputs`: what a model of the data puts out.
"""
