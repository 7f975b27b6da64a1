"""Data sets, one a file or folder: options, files, and stand-ins of what cannot ship.

- `digits`, `breast_cancer`: sets that come with libraries.
- `cifar10`, `credit`, `fashion_mnist`, `mfeat`, `mimic`, `mnist`, `nus_wide`,
  `parkinson`, `physionet2012`, `speech`, `spoken_digits`, `usps`: folders; `part` has
  the options and reads the user's files, `record` says what is published, `standin`
  takes the files' place where they are absent.
- `cifar100`: a file; `leaf`: LEAF's sets. They have no stand-ins.
- `synthetic_logistic`: drawn; `user_npz`, `user_csv`: files of the user.
- `parts`: what all inherit from, `token_rows` of tokens; `base`: the arrays that they
  make, and their random generators.
- `split`, `classes`, `names`: training and test rows, classes and names of columns of
  all sets; `file_set`, `idx`, `cifar_files`: files of several.
- `images`: rows as images; `outputs`: what a model of the data puts out.
"""
