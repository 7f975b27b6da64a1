"""A network's layers: their interface, on shapes or arrays, and those that count."""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Generic, Literal, NamedTuple, TypeVar

from typing_extensions import override

T = TypeVar("T")

Norm = Literal["group", "batch"]

Widen = Callable[[int], int]
"""Function from a paper's number of channels to a scenario's."""

STEP = 4
"""Divisor of all numbers of channels, which can therefore be halved."""

FEWEST = 4
"""Least number of channels of a group that is normalised. Where images have shrunk to a
pixel, one or two normalised numbers are constant, and no gradient passes them."""


class Net(ABC, Generic[T]):
    """Applies layers one after another; each takes the next of the parameters.

    Images have any type `T`: shapes, for counting, or arrays.
    """

    @abstractmethod
    def channels(self, x: T) -> int:
        """Returns the number of channels."""

    @abstractmethod
    def conv(
        self,
        x: T,
        channels: int,
        kernel: int,
        stride: int = 1,
        groups: int = 1,
        *,
        bias: bool = False,
    ) -> T:
        """Convolves with square kernels; pads so that stride 1 keeps the size."""

    @abstractmethod
    def norm(self, x: T) -> T:
        """Normalises, then scales and shifts each channel."""

    @abstractmethod
    def relu(self, x: T) -> T:
        """Returns the positive parts."""

    @abstractmethod
    def sigmoid(self, x: T) -> T:
        """Returns numbers between 0 and 1."""

    @abstractmethod
    def max_pool(self, x: T, size: int, stride: int, padding: int = 0) -> T:
        """Returns the largest of `size` x `size` pixels around every `stride`-th."""

    @abstractmethod
    def mean(self, x: T) -> T:
        """Returns each channel's mean as an image of one pixel."""

    @abstractmethod
    def dense(self, x: T, outputs: int) -> T:
        """Returns a linear map, with biases, of all numbers."""

    @abstractmethod
    def add(self, x: T, y: T) -> T:
        """Returns the sum."""

    @abstractmethod
    def multiply(self, x: T, factors: T) -> T:
        """Multiplies each channel by a factor, an image of one pixel."""

    @abstractmethod
    def join(self, parts: Sequence[T]) -> T:
        """Concatenates channels."""

    @abstractmethod
    def split(self, x: T, channels: int) -> tuple[T, T]:
        """Returns the first `channels` channels, and the others."""

    @abstractmethod
    def shuffle(self, x: T, groups: int) -> T:
        """Reorders channels: in turn one from each of `groups` groups."""

    def conv_norm(self, x: T, *sizes: int, bias: bool = False) -> T:
        """Convolves, by the sizes that `conv` takes, and normalises."""
        return self.norm(self.conv(x, *sizes, bias=bias))

    def conv_norm_relu(self, x: T, *sizes: int, bias: bool = False) -> T:
        """Convolves, by the sizes that `conv` takes, normalises and rectifies."""
        return self.relu(self.conv_norm(x, *sizes, bias=bias))

    def excited(self, x: T) -> T:
        """Weighs channels by factors that two small layers compute of their means.

        The hidden layer has a sixteenth of the channels, at least one.

        Source: Hu, Shen, Albanie, Sun and Wu, Squeeze-and-Excitation Networks (2018),
        section 3.
        """
        channels = self.channels(x)
        hidden = self.conv(self.mean(x), max(1, channels // 16), 1, bias=True)
        factors = self.conv(self.relu(hidden), channels, 1, bias=True)
        return self.multiply(x, self.sigmoid(factors))


def widened(channels: int, width: float) -> int:
    """Returns a number of channels times `width`, to the nearest multiple of `STEP`."""
    return max(STEP, STEP * math.floor(channels * width / STEP + 0.5))


def num_groups(channels: int, most: int) -> int:
    """Returns the number of groups in which channels are normalised.

    It is the largest number that divides the channels, is at most `most` and leaves
    each group `FEWEST` channels. (Wu and He have 32 groups everywhere; networks for
    CIFAR are narrower, and 116 or 24 channels are no multiples of 32.)

    Source: Wu and He, Group Normalization (2018), section 3.
    """
    fitting = [g for g in range(1, most + 1) if channels % g == 0]
    return max((g for g in fitting if channels // g >= FEWEST), default=1)


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


class Counter(Net[Shape]):
    """Layers on shapes, which note the arrays in the order of the layers.

    Kernels, matrices and biases are drawn as in PyTorch: uniformly within
    ±1/sqrt(inputs of an output), which is Kaiming-uniform with a = sqrt 5. Scales of
    normalised channels start at 1, shifts at 0.

    Attributes:
        parameters: Learned arrays, in their order in the flat vector.
        statistics: Running means and variances of batch normalisation, layer by layer;
            they follow the parameters.
    """

    def __init__(self, norm: Norm) -> None:
        self._norm: Norm = norm
        self.parameters: list[Parameter] = []
        self.statistics: list[Parameter] = []

    @property
    def num_parameters(self) -> int:
        """Number of learned values."""
        return sum(part.size for part in self.parameters)

    @property
    def num_statistics(self) -> int:
        """Number of measured values."""
        return sum(part.size for part in self.statistics)

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
        self.parameters += [Parameter(each, offset=1.0), Parameter(each)]
        if self._norm == "batch":
            self.statistics += [Parameter(each), Parameter(each, offset=1.0)]
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
        self.parameters.append(Parameter(shape, limit))
        if bias:
            self.parameters.append(Parameter(shape[:1], limit))
