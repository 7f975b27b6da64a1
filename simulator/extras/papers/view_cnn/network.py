"""Two convolutions and a dense layer, as the model of a party with part of an image.

The weights of parties are stacked: all networks have the size of the widest party's.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import jax
from jaxtyping import Array, Float, Key

from ....data.images import image_shape
from ....models.convolution import convolve
from ....models.flat import by_inputs, drawn
from ....models.flat_network import LayeredNetwork
from ....models.parts import Shapes
from .part import ViewCnn, shapes


@dataclass(frozen=True)
class ViewCnnNetwork(LayeredNetwork):
    """Two convolutions and a dense layer, each with ReLU, then a linear output.

    Nothing is pooled or padded (F-11), and the outputs have no biases, since they are
    added up: 256 units of each of two parties meet in one layer of 512 parameters.

    Attributes:
        height: Height of a party's part of an image, pixels.
        width: Width of the part, pixels.
        depth: Number of planes, 1 if grey.
        channels: Numbers of channels of the two convolutions.
        kernel: Height and width of their kernels, pixels.
        dense: Number of units of the dense layer.
        num_outputs: Number of outputs, `C`.

    Source: FedBCD, section 7 (NUS-FTL).
    """

    height: int
    width: int
    depth: int
    channels: tuple[int, int]
    kernel: int
    dense: int
    num_outputs: int

    @property
    def shapes(self) -> Shapes:
        image = (self.height, self.width, self.depth)
        outputs = self.num_outputs
        return shapes(image, self.channels, self.kernel, self.dense, outputs)

    @property
    def hidden_shapes(self) -> Shapes:
        """Shapes of what each hidden layer computes of a sample."""
        cut = self.kernel - 1
        once, twice = (
            (self.channels[n - 1], self.height - n * cut, self.width - n * cut)
            for n in (1, 2)
        )
        return once, twice, (self.dense,)

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
        def act(sums: Array, layer: int) -> Array:
            return jax.nn.relu(sums + noise[layer] if noise else sums)

        one, bias_1, two, bias_2, dense, bias, out = parts
        images = x.T.reshape(self.depth, self.height, self.width, x.shape[0])
        hidden = act(convolve(images, one) + bias_1[:, None, None, None], 0)
        hidden = act(convolve(hidden, two) + bias_2[:, None, None, None], 1)
        flat = hidden.reshape(dense.shape[1], x.shape[0])
        return out @ act(dense @ flat + bias[:, None], 2)


def view_cnn(
    config: ViewCnn, num_outputs: int, num_features: int, family: str
) -> ViewCnnNetwork:
    """Builds the network of a party that holds a part of every image.

    Raises:
        ScenarioError: The features are no images, or too small ones.
    """
    height, width, depth = image_shape(num_features, config.image)
    channels, kernel, dense = config.channels, config.kernel, config.dense
    model = ViewCnnNetwork(height, width, depth, channels, kernel, dense, num_outputs)
    _ = model.shapes  # refuses images that are too small
    return model
