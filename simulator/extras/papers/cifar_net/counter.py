"""Layers that count the arrays of a network instead of computing anything."""

import math
from collections.abc import Sequence
from typing import NamedTuple

from typing_extensions import override

from .net import Net, Norm

Shape = tuple[int, int, int]
"""Channels, height and width."""


class Parameter(NamedTuple):
    """An array of a network.

    Attributes:
        shape: Shape, of kernels `[outputs, inputs of a group, rows, columns]`, of
            matrices `[outputs, inputs]`.
        limit: Limit of the uniform distribution around zero of the initial values; 0
            where they are not random.
        offset: Number that is added to the initial values.
    """

    shape: tuple[int, ...]
    limit: float = 0.0
    offset: float = 0.0

    @property
    def size(self) -> int:
        """Number of values in the array."""
        return math.prod(self.shape)


class Tally(NamedTuple):
    """Arrays of a network.

    Attributes:
        parameters: Learned arrays, in their order in the flat vector.
        statistics: Running means and variances of batch normalisation, layer by layer;
            they follow the parameters.
    """

    parameters: tuple[Parameter, ...]
    statistics: tuple[Parameter, ...]

    @property
    def num_parameters(self) -> int:
        """Number of learned values."""
        return sum(part.size for part in self.parameters)

    @property
    def num_statistics(self) -> int:
        """Number of measured values."""
        return sum(part.size for part in self.statistics)


class Counter(Net[Shape]):
    """Layers on shapes, which note the arrays in the order of the layers.

    Kernels, matrices and biases are drawn as in PyTorch: uniformly within
    ±1/sqrt(inputs of an output), which is Kaiming-uniform with a = sqrt 5. Scales of
    normalised channels start at 1, shifts at 0.
    """

    def __init__(self, norm: Norm) -> None:
        self._norm: Norm = norm
        self._parameters: list[Parameter] = []
        self._statistics: list[Parameter] = []

    def tally(self) -> Tally:
        """Returns the arrays that were counted."""
        return Tally(tuple(self._parameters), tuple(self._statistics))

    @override
    def channels(self, x: Shape) -> int:
        return x[0]

    @override
    def conv(
        self,
        x: Shape,
        channels: int,
        kernel: int,
        stride: int = 1,
        groups: int = 1,
        *,
        bias: bool = False,
    ) -> Shape:
        inputs, height, width = x
        if inputs % groups or channels % groups or kernel % 2 == 0:
            raise ValueError(
                "channels must be multiples of the groups and kernels odd, got "
                f"{inputs} to {channels} in {groups} groups of {kernel} x {kernel}"
            )
        own = (inputs // groups, kernel, kernel)
        self._drawn((channels, *own), bias=bias)
        rows, columns = -(-height // stride), -(-width // stride)
        return channels, rows, columns

    @override
    def norm(self, x: Shape) -> Shape:
        each = (x[0],)
        self._parameters += [Parameter(each, offset=1.0), Parameter(each)]
        if self._norm == "batch":
            self._statistics += [Parameter(each), Parameter(each, offset=1.0)]
        return x

    @override
    def relu(self, x: Shape) -> Shape:
        return x

    @override
    def sigmoid(self, x: Shape) -> Shape:
        return x

    @override
    def max_pool(self, x: Shape, size: int, stride: int, padding: int = 0) -> Shape:
        channels, *sides = x
        rows, columns = ((side + 2 * padding - size) // stride + 1 for side in sides)
        return channels, rows, columns

    @override
    def mean(self, x: Shape) -> Shape:
        return x[0], 1, 1

    @override
    def dense(self, x: Shape, outputs: int) -> Shape:
        inputs = math.prod(x)
        self._drawn((outputs, inputs), bias=True)
        return outputs, 1, 1

    @override
    def add(self, x: Shape, y: Shape) -> Shape:
        if x != y:
            raise ValueError(f"terms must be of one shape, got {x} and {y}")
        return x

    @override
    def multiply(self, x: Shape, factors: Shape) -> Shape:
        if factors != (x[0], 1, 1):
            raise ValueError(f"factors must be one a channel, got {factors} for {x}")
        return x

    @override
    def join(self, parts: Sequence[Shape]) -> Shape:
        if len({part[1:] for part in parts}) > 1:
            raise ValueError(f"parts must be of one size, got {list(parts)}")
        return sum(part[0] for part in parts), *parts[0][1:]

    @override
    def split(self, x: Shape, channels: int) -> tuple[Shape, Shape]:
        return (channels, *x[1:]), (x[0] - channels, *x[1:])

    @override
    def shuffle(self, x: Shape, groups: int) -> Shape:
        if x[0] % groups:
            raise ValueError(f"channels must divide by {groups}, got {x[0]}")
        return x

    def _drawn(self, shape: tuple[int, ...], *, bias: bool) -> None:
        limit = 1 / math.sqrt(math.prod(shape[1:]))
        self._parameters.append(Parameter(shape, limit))
        if bias:
            self._parameters.append(Parameter(shape[:1], limit))
