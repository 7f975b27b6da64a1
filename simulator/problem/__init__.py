"""The learning problem: batches, losses, metrics, and models' outputs.

- `sampler`: the samples of each job, keyed.
- `horizontal`, `vertical`: a problem divided by rows, or by columns, also between two
  parties with common samples; `losses`, and `metrics`, one home each.
- `learning`: a problem with its data, made once for all runs that share it;
  `numerics`: its network, loss, constants and work on the device.
- `constants`, `convex`: constants for step sizes.
"""
