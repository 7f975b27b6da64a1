"""A five-layer convolutional network whose weights are one flat vector."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import jax
from jaxtyping import Array, Float, Key

from ....problem.models.convolution import convolve, pool
from ....problem.models.flat import FlatNetwork, by_inputs, drawn, split
from ....problem.models.parts import Shapes
from .part import shapes, sizes


class Parts(NamedTuple):
    """Arrays of the network, or arrays of their shapes, in the flat vector's order.

    Attributes:
        kernels_1: Kernels of the first convolution, `[C1, D, K, K]`.
        bias_1: Biases of its channels.
        kernels_2: Kernels of the second convolution, `[C2, C1, K, K]`.
        bias_2: Biases of its channels.
        dense: Matrix `[C, Q]`; the `Q` inputs are channels, rows and columns, columns
            fastest.
        bias: Biases of the outputs.
    """

    kernels_1: Float[Array, "C1 D K K"]
    bias_1: Float[Array, " C1"]
    kernels_2: Float[Array, "C2 C1 K K"]
    bias_2: Float[Array, " C2"]
    dense: Float[Array, "C Q"]
    bias: Float[Array, " C"]


@dataclass(frozen=True)
class CnnNetwork(FlatNetwork):
    """Twice convolution, ReLU and pool, then a dense layer.

    Attributes:
        height: Height of an image, pixels.
        width: Width of an image, pixels.
        depth: Number of planes of an image, 1 if grey.
        channels: Numbers of channels of the convolutions; 10 and 10 are the public
            code's (M-29).
        kernel: Height and width of their kernels, pixels.
        num_outputs: Number of outputs, `C`.

    Source: Li, Yang, Ren and Zhao, Asynchronous Federated Learning with Differential
    Privacy for Edge Intelligence; M-29 in evidence/pages/decisions.md.
    """

    height: int
    width: int
    depth: int = 1
    channels: tuple[int, int] = (10, 10)
    kernel: int = 5
    num_outputs: int = 10

    @property
    def shapes(self) -> Shapes:
        image = (self.height, self.width, self.depth)
        return shapes(image, self.channels, self.kernel, self.num_outputs)

    @property
    def hidden_shapes(self) -> Shapes:
        """Shapes of what each convolution computes of a sample, before its pool."""
        edge = self.kernel - 1
        (rows, columns), _ = sizes(self.height, self.width, self.kernel)
        first, second = self.channels
        return (
            (first, self.height - edge, self.width - edge),
            (second, rows - edge, columns - edge),
        )

    @property
    def num_noised(self) -> int:
        """Number of the first convolution's kernels and biases (M-14)."""
        return self.channels[0] * (self.depth * self.kernel**2 + 1)

    def parts(self, weights: Float[Array, " P"]) -> Parts:
        """Returns the arrays of a flat vector."""
        return Parts(*split(weights, self.shapes))

    def init(self, key: Key[Array, ""]) -> Float[Array, " P"]:
        """Draws kernels and biases as in PyTorch."""
        return drawn(key, self.shapes, by_inputs(self.shapes))

    def _outputs(
        self,
        parts: Sequence[Float[Array, "..."]],
        x: Float[Array, "S F"],
        noise: Sequence[Float[Array, "_ _ _ S"]] = (),
    ) -> Float[Array, "C S"]:
        named = Parts(*parts)
        one, two = noise or (None, None)
        images = x.T.reshape(self.depth, self.height, self.width, x.shape[0])
        hidden = self._layer(named.kernels_1, named.bias_1, images, one)
        hidden = self._layer(named.kernels_2, named.bias_2, hidden, two)
        inputs = hidden.reshape(named.dense.shape[1], x.shape[0])
        return named.dense @ inputs + named.bias[:, None]

    def _layer(
        self,
        kernels: Float[Array, "D C K K"],
        bias: Float[Array, " D"],
        images: Float[Array, "C H W S"],
        noise: Float[Array, "D h w S"] | None = None,
    ) -> Float[Array, "D H_out W_out S"]:
        """Convolves, rectifies and pools.

        The maximum precedes bias and ReLU, which keep the order of numbers: the result
        is the same, from four times fewer numbers.
        """
        sums = convolve(images, kernels)
        if noise is not None:
            sums = sums + noise
        shift = bias[:, None, None, None]
        return jax.nn.relu(pool(sums) + shift)
