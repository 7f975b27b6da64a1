"""Nine networks for CIFAR-10 as plain functions over abstract layers; without JAX.

- `net`: what a network may ask for, and how channels are widened or narrowed.
- `stacked`, `residual`, `mobile`: the networks; `blocks`: what they share.
- `counter`: layers that only count; `simulator.problems.zoo` has those that compute.
- `listing`: the networks by name, and what each weighs.

They are those of the public code that the paper on A(DP)2SGD names, kuangliu's
pytorch-cifar, as it was in mid-2019, parameter by parameter. Two things differ: the
last pool takes the mean of whatever pixels are left, not of a fixed number, so that
images need not have 32 x 32 pixels; and batch normalisation is a choice.

Source: Xu, Zhang, Liu et al., A(DP)2SGD (2020), Tables 1 and 2.
"""

from simulator.problems.architectures.counter import Parameter, Tally
from simulator.problems.architectures.listing import ARCHITECTURES, Name, tally
from simulator.problems.architectures.net import Net, Norm, num_groups

__all__ = [
    "ARCHITECTURES",
    "Name",
    "Net",
    "Norm",
    "Parameter",
    "Tally",
    "num_groups",
    "tally",
]
