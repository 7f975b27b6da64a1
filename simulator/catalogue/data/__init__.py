"""Data sets, one per file: options, published facts, and reading.

- `bundled`: sets that come with scikit-learn.
- `cifar`, `mnist` (Fashion-MNIST as well), `leaf` (LEAF's sets): they
  read files of the data folder.
- `synthetic`: drawn tables, images and series; `quadratic`: drawn for theory; `text`:
  characters of a text.
- `own_arrays` (npz, a function), `tables` (csv, Parquet): the user's own;
  `arrays`: what both make of arrays.
"""
