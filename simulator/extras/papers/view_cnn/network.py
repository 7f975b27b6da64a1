"""Two convolutions and a dense layer, as the model of a party with part of an image.

The weights of parties are stacked: all networks have the size of the widest party's.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float, Key

from ....problem.models.convolution import convolve
from ....problem.models.flat import LayeredNetwork, by_inputs, drawn
from ....problem.models.parts import Shapes
from .part import Image, ViewCnn

BLOCK = 64
"""Samples that are evaluated at once where there are many: they stay in the cache, so
that 1,984 take half the time (64 channels). The gradient of 256 is faster whole."""


@dataclass(frozen=True)
class ViewCnnNetwork(LayeredNetwork):
    """Two convolutions and a dense layer, each with ReLU, then a linear output.

    Nothing is pooled or padded (F-11), and the outputs have no biases, since they are
    added up: 256 units of each of two parties meet in one layer of 512 parameters.

    Source: FedBCD, section 7 (NUS-FTL).
    """

    config: ViewCnn
    image: Image
    num_outputs: int

    @property
    def shapes(self) -> Shapes:
        return self.config.shapes(self.image, self.num_outputs)

    @property
    def hidden_shapes(self) -> Shapes:
        """Shapes of each hidden layer's output for a sample."""
        (height, width, _), cut = self.image, self.config.kernel - 1
        first, second = self.config.channels
        once = (first, height - cut, width - cut)
        twice = (second, height - 2 * cut, width - 2 * cut)
        return once, twice, (self.config.dense,)

    def init(self, key: Key[Array, ""], num_features: int) -> Float[Array, " P"]:
        """Draws all but the last layer as in PyTorch; outputs start at zero."""
        return drawn(key, self.shapes, [*by_inputs(self.shapes)[:-1], 0.0])

    def init_sent(self, key: Key[Array, ""], num_features: int) -> Float[Array, " P"]:
        """Draws all layers as in PyTorch, for outputs that a server's network takes."""
        return drawn(key, self.shapes, by_inputs(self.shapes))

    def _outputs(
        self,
        parts: Sequence[Float[Array, "..."]],
        x: Float[Array, "S F"],
        noise: Sequence[Float[Array, "... S"]] = (),
    ) -> Float[Array, "C S"]:
        samples = x.shape[1]
        if samples > 8 * BLOCK and not noise:
            padded = jnp.pad(x, ((0, 0), (0, -samples % BLOCK)))
            blocks = padded.reshape(len(x), -1, BLOCK).swapaxes(0, 1)
            outputs = lax.map(lambda block: self._outputs(parts, block), blocks)
            return outputs.swapaxes(0, 1).reshape(-1, padded.shape[1])[:, :samples]

        def act(sums: Array, layer: int) -> Array:
            return jax.nn.relu(sums + noise[layer] if noise else sums)

        one, bias_1, two, bias_2, dense, bias, out = parts
        height, width, depth = self.image
        images = x.T.reshape(depth, height, width, x.shape[0])
        hidden = act(convolve(images, one) + bias_1[:, None, None, None], 0)
        hidden = act(convolve(hidden, two) + bias_2[:, None, None, None], 1)
        flat = hidden.reshape(dense.shape[1], x.shape[0])
        return out @ act(dense @ flat + bias[:, None], 2)
