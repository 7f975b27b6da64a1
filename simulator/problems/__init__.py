"""The learning problem: data sets, partitions, batches, models, losses and metrics.

- `data`, `partitions`: the arrays, and their division among clients or parties; a set
  or a division is one file or folder, with its options.
- `sampler`: the samples of each job, keyed.
- `horizontal`, `vertical`, `transfer`: a problem divided by rows, by columns, or
  between two parties with common samples; `losses`, `auc`: losses and metrics.
- `models`: models, one a folder, with their options; `images`: rows as images.
- `convex`, `estimates`: constants for step sizes.
"""
