"""What a vertical party's model may be: its outputs are added to those of the others.

The weights of parties of one architecture are stacked, so each has as many numbers as
the widest party needs. Those of columns that a party does not hold start at zero, and
stay there, since the columns are zero.
"""

import math
from typing import Literal, NamedTuple, Protocol, runtime_checkable

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Key

from simulator.problems import model_parts as models
from simulator.problems.blockwise import in_blocks
from simulator.problems.convolution import convolve
from simulator.problems.flat import drawn, split
from simulator.problems.images import image_shape

Shapes = tuple[tuple[int, ...], ...]


@runtime_checkable
class Embedding(Protocol):
    """A party's model."""

    @property
    def num_outputs(self) -> int:
        """Numbers that it makes of a sample, `C`."""
        ...

    def init(self, key: Key[Array, ""], num_features: int) -> Float[Array, "*P"]:
        """Returns the weights at the start.

        Args:
            key: of the party.
            num_features: columns that it really holds.
        """
        ...

    def apply(
        self, weights: Float[Array, "*P"], x: Float[Array, "S F"]
    ) -> Float[Array, "C S"]:
        """Returns the outputs for some rows."""
        ...


class Mlp(NamedTuple):
    """One hidden layer; only it has biases, since outputs are added up.

    Attributes:
        num_outputs: `C`.
        num_features: columns, padded to the widest party.
        hidden: units.
        activation: of the hidden units.
        linear: whether outputs are a linear map of the hidden units, or they themselves
            (then `C` is `hidden`).
    """

    num_outputs: int
    num_features: int
    hidden: int
    activation: Literal["relu", "tanh"]
    linear: bool = True

    @property
    def shapes(self) -> Shapes:
        """Shapes of the parts."""
        first = ((self.hidden, self.num_features), (self.hidden,))
        return (*first, (self.num_outputs, self.hidden)) if self.linear else first

    def init(self, key: Key[Array, ""], num_features: int) -> Float[Array, " P"]:
        """Draws the hidden layer as PyTorch does; outputs start at zero.

        That is uniform within ±1/sqrt(inputs of a unit). What parties add up so starts
        at zero whatever their number, as that of linear models does.
        """
        first = 1 / math.sqrt(num_features)
        held = np.arange(self.num_features) < num_features
        limits = [np.where(held, first, 0.0), first, 0.0]
        return drawn(key, self.shapes, limits[: len(self.shapes)])

    def apply(
        self, weights: Float[Array, " P"], x: Float[Array, "S F"]
    ) -> Float[Array, "C S"]:
        """Returns the outputs for some rows."""
        parts = split(weights, self.shapes)
        act = jnp.tanh if self.activation == "tanh" else jax.nn.relu
        units = act(parts[0] @ x.T + parts[1][:, None])
        return parts[2] @ units if self.linear else units


class ViewCnn(NamedTuple):
    """Two convolutions and a dense layer, each with ReLU, then a linear output.

    Nothing is pooled or padded (F-11), and the outputs have no biases, since they are
    added up: 256 units of each of two parties meet in a layer of 512 parameters.

    Attributes:
        height: of a party's part of an image, pixels.
        width: of it, pixels.
        depth: planes, 1 if grey.
        channels: of the two convolutions.
        kernel: height and width of their kernels, pixels.
        dense: units of the dense layer.
        num_outputs: `C`.

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
        """Shapes of the parts."""
        first, second = self.channels
        rows, columns = (
            side - 2 * (self.kernel - 1) for side in (self.height, self.width)
        )
        square = (self.kernel, self.kernel)
        return (
            (first, self.depth, *square),
            (first,),
            (second, first, *square),
            (second,),
            (self.dense, second * rows * columns),
            (self.dense,),
            (self.num_outputs, self.dense),
        )

    def init(self, key: Key[Array, ""], num_features: int) -> Float[Array, " P"]:
        """Draws all but the last layer as PyTorch does; outputs start at zero.

        That is uniform within ±1/sqrt(inputs of a unit).
        """
        del num_features
        fans = [math.prod(shape[1:]) for shape in self.shapes[::2]]
        limits = [1 / math.sqrt(fans[part // 2]) for part in range(len(self.shapes))]
        return drawn(key, self.shapes, [*limits[:-1], 0.0])

    def apply(
        self, weights: Float[Array, " P"], x: Float[Array, "S F"]
    ) -> Float[Array, "C S"]:
        """Returns the outputs for some rows, however many.

        Args:
            weights: flat.
            x: images plane by plane, row by row.
        """
        parts = split(weights, self.shapes)
        return in_blocks(lambda block: self._outputs(parts, block), x)

    def _outputs(
        self, parts: list[Float[Array, "..."]], x: Float[Array, "S F"]
    ) -> Float[Array, "C S"]:
        one, bias_1, two, bias_2, dense, bias, out = parts
        images = x.T.reshape(self.depth, self.height, self.width, x.shape[0])
        hidden = jax.nn.relu(convolve(images, one) + bias_1[:, None, None, None])
        hidden = jax.nn.relu(convolve(hidden, two) + bias_2[:, None, None, None])
        flat = hidden.reshape(dense.shape[1], x.shape[0])
        return out @ jax.nn.relu(dense @ flat + bias[:, None])


def mlp(config: models.Mlp, num_outputs: int, num_features: int, family: str) -> Mlp:
    """Builds the network of a party; of transfer learning, its hidden layer alone."""
    linear = family != "transfer"
    outputs = num_outputs if linear else config.hidden
    return Mlp(outputs, num_features, config.hidden, config.activation, linear)


def view_cnn(
    config: models.ViewCnn, num_outputs: int, num_features: int, family: str
) -> ViewCnn:
    """Builds the network of a party that holds a part of every image.

    Raises:
        ScenarioError: the features are no images, or too small ones.
    """
    del family
    height, width, depth = image_shape(num_features, config.image)
    models.check_view(height, width, config.kernel)
    channels, dense = config.channels, config.dense
    return ViewCnn(height, width, depth, channels, config.kernel, dense, num_outputs)
