"""Convolutional networks whose weights are one flat vector."""

from collections.abc import Sequence
from dataclasses import dataclass

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Key

from ....problem.models.convolution import convolve, pool
from ....problem.models.flat import FlatNetwork, by_inputs, drawn, glorot
from ....problem.models.parts import Shapes
from .part import Convolutional, Image


@dataclass(frozen=True)
class ConvolutionalNetwork(FlatNetwork):
    """Convolutions with ReLU and pools, then a dense layer.

    Attributes:
        config: Options: channels and kernel.
        image: Height, width and depth of an image, pixels.
        num_outputs: Number of outputs, `C`.
    """

    config: Convolutional
    image: Image
    num_outputs: int = 10

    @property
    def shapes(self) -> Shapes:
        return self.config.shapes(self.image, self.num_outputs)

    @property
    def hidden_shapes(self) -> Shapes:
        """Shapes of each convolution's output for a sample, before its pool."""
        return self.config.sizes(self.image)[:-1]

    @property
    def num_noised(self) -> int:
        """Number of the first convolution's kernels and biases (M-14)."""
        return self.config.channels[0] * (self.image[2] * self.config.kernel**2 + 1)

    def _outputs(
        self,
        parts: Sequence[Float[Array, "..."]],
        x: Float[Array, "S F"],
        noise: Sequence[Float[Array, "_ _ _ S"]] = (),
    ) -> Float[Array, "C S"]:
        height, width, depth = self.image
        hidden, edge = x.T.reshape(depth, height, width, x.shape[0]), self.config.edge
        for layer in range(len(self.config.channels)):
            kernels, bias = parts[2 * layer], parts[2 * layer + 1]
            if edge:
                hidden = jnp.pad(hidden, ((0, 0), (edge, edge), (edge, edge), (0, 0)))
            sums = convolve(hidden, kernels)
            if noise:
                sums = sums + noise[layer]
            # The maximum precedes bias and ReLU, which keep the order of numbers: the
            # result is the same, from four times fewer numbers.
            if (layer + 1) % self.config.per_pool == 0:
                sums = pool(sums)
            hidden = jax.nn.relu(sums + bias[:, None, None, None])
        matrix, bias = parts[-2:]
        return matrix @ hidden.reshape(matrix.shape[1], -1) + bias[:, None]


class CnnNetwork(ConvolutionalNetwork):
    """Twice convolution, ReLU and pool, then a dense layer.

    Source: Li, Yang, Ren and Zhao, Asynchronous Federated Learning with Differential
    Privacy for Edge Intelligence; M-29 in evidence/pages/decisions.md.
    """

    def init(self, key: Key[Array, ""]) -> Float[Array, " P"]:
        """Draws kernels and biases as in PyTorch."""
        return drawn(key, self.shapes, by_inputs(self.shapes))


class DeepCnnNetwork(ConvolutionalNetwork):
    """Convolutions with ReLU, pools between pairs of them, then a dense layer.

    Source: VAFL, appendix G (ModelNet40); V-27.
    """

    def init(self, key: Key[Array, ""]) -> Float[Array, " P"]:
        """Draws all as in Keras, the library of the paper (V-34); biases are zero."""
        return drawn(key, self.shapes, glorot(self.shapes))
