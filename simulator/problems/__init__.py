"""The learning problem: data sets, partitions, batches, models, losses and metrics.

- `data`, `partitions`: the arrays, and their division among clients or parties.
- `sampler`: the samples of each job, keyed.
- `horizontal`, `vertical`, `transfer`: a problem divided by rows, by columns, or
  between two parties with common samples; `losses`, `auc`: losses and metrics.
- `models`, `dense`, `cnn`, `lstm`, `zoo`: models for rows; `embeddings`: for columns.
- `layers`, `convolution`, `pooling`, `flat`, `blockwise`: parts of networks.
- `convex`, `estimates`: constants for step sizes.
"""
