"""Nine networks for CIFAR-10, written as plain functions over abstract layers.

- `part`: options; `networks`: the nine, with the size of each.
- `net`: the interface of layers, how channels are widened or narrowed, and layers that
  only count; `network`: layers that compute, with `layers`.

Of these, only `network` and `layers` import JAX.

Parameter by parameter, they are the networks of the public code that the paper on
A(DP)2SGD names, kuangliu's pytorch-cifar of mid-2019. Two things differ: the last pool
takes the mean of all pixels that are left, not of a fixed number, so that images need
not have 32 x 32 pixels; and batch normalisation is optional.

Source: Xu, Zhang, Liu et al., A(DP)2SGD (2020), Tables 1 and 2.
"""
