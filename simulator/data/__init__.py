"""Data sets, one a file or folder: options, what is published of them, and reading.

- `digits`, `breast_cancer`: sets that come with libraries.
- `cifar10`, `cifar100`, `mnist` (Fashion-MNIST as well), `leaf` (LEAF's sets): they
  read files of the data folder.
- `synthetic`: drawn tables, images and series; `synthetic_logistic`, `quadratic`: drawn
  for theory; `text`: characters of a text.
- `user_npz`, `tables` (csv, Parquet, Hugging Face): files of the user; `generated`: a
  function of the user's own.
- `parts`: what all inherit from; `base`: the arrays that they
  make, and their random generators.
- `split`, `classes`, `names`: training and test rows, classes and names of columns of
  all sets; `file_set`, `idx`, `cifar_files`: files of several.
- `images`: rows as images; `outputs`: what a model of the data puts out.
"""
