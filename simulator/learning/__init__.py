"""The learning problem: batches, losses, metrics, and what a model makes of them.

- `sampler`: the samples of each job, keyed.
- `horizontal`, `vertical`, `transfer`: a problem divided by rows, by columns, or
  between two parties with common samples; `losses`, and `metrics`, one home each.
- `building`: the problem of a scenario, from its data, partition and model.
- `convex`, `estimates`: constants for step sizes.
"""
