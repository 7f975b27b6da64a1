"""The networks for CIFAR-10, computed from one flat vector."""

from collections.abc import Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Bool, Float, Key
from typing_extensions import override

from ....problem.models.flat import drawn, in_blocks, split
from . import layers
from .net import Counter, Net, Norm, Parameter, num_groups
from .networks import Name, apply, tally

Arrays = Sequence[Float[Array, "..."]]


class Layers(Net[Array]):
    """Layers on images, each of which takes the next of the counted arrays.

    An object serves for one tracing of a network.

    Attributes:
        measured: Means and unbiased variances of the batch, of each normalisation in
            turn; empty where `running` is set.
    """

    def __init__(
        self, parameters: Arrays, *, running: Arrays = (), groups: int | None = None
    ) -> None:
        """Takes the arrays of one tracing.

        Args:
            parameters: Arrays of the whole network.
            running: Means and variances to normalise by; by default the batch's own.
            groups: Largest number of groups of channels, each of which is normalised
                in each sample; None normalises a channel in the whole batch.
        """
        self._parameters = iter(parameters)
        self._running = iter(running) if running else None
        self._groups = groups
        self.measured: list[Float[Array, " _"]] = []

    def rest(self) -> int:
        """Returns the number of arrays that no layer has taken."""
        return len([*self._parameters, *(self._running or ())])

    @override
    def channels(self, x: layers.Images) -> int:
        return x.shape[0]

    @override
    def conv(
        self,
        x: layers.Images,
        channels: int,
        kernel: int,
        stride: int = 1,
        groups: int = 1,
        *,
        bias: bool = False,
    ) -> layers.OtherImages:
        sums = layers.convolve(x, next(self._parameters), stride, groups)
        return sums + next(self._parameters)[:, None, None, None] if bias else sums

    @override
    def norm(self, x: layers.Images) -> layers.Images:
        scale, shift = next(self._parameters), next(self._parameters)
        if self._groups is not None:
            groups = num_groups(x.shape[0], self._groups)
            return layers.group_norm(x, scale, shift, groups)
        if self._running is not None:
            mean, variance = next(self._running), next(self._running)
        else:
            mean, variance = layers.moments(x)
            self.measured += [mean, layers.unbiased(variance, x)]
        return layers.batch_norm(x, scale, shift, mean, variance)

    @override
    def relu(self, x: layers.Images) -> layers.Images:
        return jax.nn.relu(x)

    @override
    def sigmoid(self, x: layers.Images) -> layers.Images:
        return jax.nn.sigmoid(x)

    @override
    def max_pool(
        self, x: layers.Images, size: int, stride: int, padding: int = 0
    ) -> layers.OtherImages:
        return layers.max_pool(x, size, stride, padding)

    @override
    def mean(self, x: layers.Images) -> Float[Array, "C 1 1 S"]:
        return x.mean(axis=(1, 2), keepdims=True)

    @override
    def dense(self, x: layers.Images, outputs: int) -> Float[Array, "{outputs} 1 1 S"]:
        matrix, bias = next(self._parameters), next(self._parameters)
        sums = matrix @ x.reshape(matrix.shape[1], -1) + bias[:, None]
        return sums[:, None, None, :]

    @override
    def add(self, x: layers.Images, y: layers.Images) -> layers.Images:
        return x + y

    @override
    def multiply(
        self, x: layers.Images, factors: Float[Array, "C 1 1 S"]
    ) -> layers.Images:
        return x * factors

    @override
    def join(self, parts: Sequence[Float[Array, "_ H W S"]]) -> layers.Images:
        return jnp.concatenate(parts, axis=0)

    @override
    def split(
        self, x: layers.Images, channels: int
    ) -> tuple[Float[Array, "{channels} H W S"], Float[Array, "_ H W S"]]:
        return x[:channels], x[channels:]

    @override
    def shuffle(self, x: layers.Images, groups: int) -> layers.Images:
        return layers.shuffle(x, groups)


class CifarNetwork(NamedTuple):
    """One of nine networks; parameters first in the flat vector, then statistics."""

    name: Name
    image: tuple[int, int, int]
    num_outputs: int = 10
    norm: Norm = "group"
    groups: int = 16
    width: float = 1.0

    @property
    def tally(self) -> Counter:
        """Arrays of the network."""
        return tally(self.name, self.image, self.num_outputs, self.width, self.norm)

    @property
    def num_noised(self) -> int:
        """Number of all learned values."""
        return self.tally.num_parameters

    @property
    def num_statistics(self) -> int:
        """Number of running means and variances at the vector's end."""
        return self.tally.num_statistics

    def init(self, key: Key[Array, ""]) -> Float[Array, " P"]:
        """Draws parameters as in PyTorch, in single precision.

        Scales start at 1, shifts at 0, running means at 0, running variances at 1.
        """
        arrays = self._all()
        random = drawn(
            key, [each.shape for each in arrays], [each.limit for each in arrays]
        )
        offsets = [np.full(each.size, each.offset, np.float32) for each in arrays]
        return random + np.concatenate(offsets)

    def features(self, x: Float[np.ndarray, "N F"]) -> Float[np.ndarray, "N F"]:
        """Returns the pixels as they are."""
        return x

    def regularised(self) -> Bool[np.ndarray, " P"]:
        """Returns whether each number is of a kernel or a dense layer's matrix."""
        return np.concatenate(
            [np.full(each.size, len(each.shape) > 1) for each in self._all()]
        )

    def apply(
        self, weights: Float[Array, " P"], x: Float[Array, "S F"]
    ) -> Float[Array, "C S"]:
        """Returns the logits of some rows, however many, by the running statistics.

        These are no parameters: they have no gradient.
        """
        parameters, statistics = self._parts(weights)
        running = lax.stop_gradient(statistics)

        def logits(block: Float[Array, "s F"]) -> Float[Array, "C s"]:
            return self._run(parameters, running, block)[0]

        return in_blocks(logits, x)

    def train(
        self,
        weights: Float[Array, " P"],
        x: Float[Array, "S F"],
        key: Key[Array, ""] | None = None,
    ) -> tuple[Float[Array, "C S"], Float[Array, " Q"]]:
        """Returns the logits of a batch, normalised by itself, and its statistics.

        Returns:
            The logits; means and unbiased variances in the order of the vector's end,
            without gradient, or nothing with group normalisation.

        Raises:
            ScenarioError: The batch is one image, of which one pixel is left: it cannot
                be normalised.
        """
        if self.norm == "group":
            return self.apply(weights, x), jnp.zeros(0, weights.dtype)
        parameters, _ = self._parts(weights)
        logits, measured = self._run(parameters, (), x)
        return logits, lax.stop_gradient(jnp.concatenate(measured))

    def _all(self) -> list[Parameter]:
        return self.tally.parameters + self.tally.statistics

    def _parts(
        self, weights: Float[Array, " P"]
    ) -> tuple[list[Float[Array, "..."]], list[Float[Array, "..."]]]:
        parts = split(weights, [each.shape for each in self._all()])
        learned = len(self.tally.parameters)
        return parts[:learned], parts[learned:]

    def _run(
        self, parameters: Arrays, running: Arrays, x: Float[Array, "S F"]
    ) -> tuple[Float[Array, "C S"], list[Float[Array, " _"]]]:
        height, width, depth = self.image
        images = x.T.reshape(depth, height, width, x.shape[0])
        groups = self.groups if self.norm == "group" else None
        net = Layers(parameters, running=running, groups=groups)
        logits = apply(self.name, net, images, self.num_outputs, self.width)
        if left := net.rest():
            raise AssertionError(f"{self.name} left {left} arrays untouched")
        return logits[:, 0, 0], net.measured
