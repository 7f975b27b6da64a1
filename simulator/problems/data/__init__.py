"""Data sets, one a file or folder: options, files, and stand-ins of what cannot ship.

- `digits`, `breast_cancer`, `mnist`: sets that come with libraries.
- `cifar10`, `credit`, `fashion_mnist`, `mimic`, `nus_wide`, `parkinson`, `speech`,
  `usps`: folders; `part` has the options and reads the user's files, `standin` takes
  their place where they are absent.
- `synthetic_logistic`: drawn; `user_npz`, `user_csv`: files of the user.
- `parts`: what all inherit from; `base`: the arrays that they make.
- `split`, `classes`, `names`, `seeds`: training and test rows, classes, names of
  columns and random generators of all sets; `file_set`, `idx`: files of several.
"""
