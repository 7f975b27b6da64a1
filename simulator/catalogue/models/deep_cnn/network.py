"""A convolutional network of any depth, whose weights are one flat vector."""

from collections.abc import Sequence
from dataclasses import dataclass

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Key

from ....problem.models.convolution import convolve, pool
from ....problem.models.flat import FlatNetwork, drawn, glorot
from ....problem.models.parts import Shapes
from .part import PER_POOL, DeepCnn, Image


@dataclass(frozen=True)
class DeepCnnNetwork(FlatNetwork):
    """Convolutions with ReLU, pools between pairs of them, then a dense layer.

    Attributes:
        config: Options: channels and kernel.
        image: Height, width and depth of an image, pixels.
        num_outputs: Number of outputs, `C`.

    Source: VAFL, appendix G (ModelNet40); V-27.
    """

    config: DeepCnn
    image: Image
    num_outputs: int

    @property
    def shapes(self) -> Shapes:
        return self.config.shapes(self.image, self.num_outputs)

    @property
    def hidden_shapes(self) -> Shapes:
        """Shapes of what each convolution computes of a sample, before its pool."""
        return self.config.sizes(self.image)

    @property
    def num_noised(self) -> int:
        """Number of the first convolution's kernels and biases."""
        return self.config.channels[0] * (self.image[2] * self.config.kernel**2 + 1)

    def init(self, key: Key[Array, ""]) -> Float[Array, " P"]:
        """Draws all as in Keras, the library of the paper (V-34); biases are zero."""
        return drawn(key, self.shapes, glorot(self.shapes))

    def _outputs(
        self,
        parts: Sequence[Float[Array, "..."]],
        x: Float[Array, "S F"],
        noise: Sequence[Float[Array, "_ _ _ S"]] = (),
    ) -> Float[Array, "C S"]:
        height, width, depth = self.image
        hidden = x.T.reshape(depth, height, width, x.shape[0])
        edge = self.config.kernel // 2
        for layer in range(len(self.config.channels)):
            kernels, bias = parts[2 * layer], parts[2 * layer + 1]
            padded = jnp.pad(hidden, ((0, 0), (edge, edge), (edge, edge), (0, 0)))
            sums = convolve(padded, kernels)
            if noise:
                sums = sums + noise[layer]
            # The maximum precedes bias and ReLU, which keep the order of numbers.
            if (layer + 1) % PER_POOL == 0:
                sums = pool(sums)
            hidden = jax.nn.relu(sums + bias[:, None, None, None])
        matrix, bias = parts[-2:]
        return matrix @ hidden.reshape(matrix.shape[1], -1) + bias[:, None]
