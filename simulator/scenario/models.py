"""Models. Their weights are counted here, without JAX, for what messages weigh."""

import math
from typing import Annotated, ClassVar, Literal

from pydantic import Field

from simulator.scenario import images
from simulator.scenario.base import Config


class Linear(Config):
    """Linear: embeddings `x @ w` of a vertical party, or `x @ w + b` of a client."""

    kind: Literal["linear"] = "linear"
    families: ClassVar[tuple[str, ...]] = ("horizontal", "vertical")

    def num_weights(self, num_features: int, num_outputs: int) -> int:
        """Returns the number of weights of a client's model, biases included."""
        return (num_features + 1) * num_outputs

    def work(self, num_features: int, num_outputs: int) -> int:
        """Returns the multiplications for the logits of one sample."""
        return num_features * num_outputs


class Cnn(Config):
    """Two convolutions, each with ReLU and 2x2 pooling, and a fully connected layer.

    Source: MAPA, section 9; widths by the later public code (M-29).
    """

    kind: Literal["cnn"] = "cnn"
    families: ClassVar[tuple[str, ...]] = ("horizontal",)
    channels: tuple[Annotated[int, Field(ge=1)], Annotated[int, Field(ge=1)]] = (10, 10)
    kernel: Annotated[int, Field(ge=1)] = 5
    image: tuple[int, int, int] | None = None
    """Height, width and depth of the images; by default square ones, grey or of three
    colours."""

    def num_weights(self, num_features: int, num_outputs: int) -> int:
        """Returns the number of weights, biases included.

        Raises:
            ScenarioError: the features are no images, or too small ones.
        """
        shape = images.image_shape(num_features, self.image)
        return images.cnn_num_weights(*shape, self.channels, self.kernel, num_outputs)

    def work(self, num_features: int, num_outputs: int) -> int:
        """Returns the multiplications for the logits of one sample."""
        height, width, depth = images.image_shape(num_features, self.image)
        one, two = self.channels
        after_one, after_two = images.cnn_sizes(height, width, self.kernel)
        # Of the four numbers that become one of a pool.
        convolutions = one * depth * math.prod(after_one) + two * one * math.prod(
            after_two
        )
        dense = two * math.prod(after_two) * num_outputs
        return 4 * self.kernel**2 * convolutions + dense
