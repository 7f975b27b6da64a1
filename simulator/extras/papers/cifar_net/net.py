"""The interface of a network's layers, on shapes or on arrays, and its pieces."""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Generic, Literal, TypeVar

T = TypeVar("T")

Norm = Literal["group", "batch"]

Widen = Callable[[int], int]
"""Function from a paper's number of channels to a scenario's."""

STEP = 4
"""Divisor of all numbers of channels, which can therefore be halved."""

FEWEST = 4
"""Least number of channels of a group that is normalised. Where images have shrunk to
a pixel, one or two normalised numbers say nothing, and no gradient passes them."""


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
