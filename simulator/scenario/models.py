"""Models. Their weights are counted here, without JAX, for what messages weigh."""

import math
from typing import Annotated, ClassVar, Literal

from pydantic import Field

from simulator.scenario import images
from simulator.scenario.base import Config
from simulator.scenario.errors import ScenarioError


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


class Mlp(Config):
    """One hidden layer, as a party's model: its outputs are added to the others'.

    In transfer learning, the hidden units themselves are what a party makes of a
    sample.
    """

    kind: Literal["mlp"] = "mlp"
    families: ClassVar[tuple[str, ...]] = ("vertical",)
    hidden: Annotated[int, Field(ge=1)] = 64
    activation: Literal["relu", "tanh"] = "tanh"

    def num_weights(self, num_features: int, num_outputs: int) -> int:
        """Returns the number of weights of a party's model, biases included."""
        return self.hidden * (num_features + 1 + num_outputs)

    def work(self, num_features: int, num_outputs: int) -> int:
        """Returns the multiplications for the outputs of one sample."""
        return self.hidden * (num_features + num_outputs)


class ViewCnn(Config):
    """Two convolutions and a dense layer on a party's part of every image.

    Source: FedBCD, section 7 (MNIST-CNN); no pools and no padding (F-11).
    """

    kind: Literal["view_cnn"] = "view_cnn"
    families: ClassVar[tuple[str, ...]] = ("vertical",)
    channels: tuple[Annotated[int, Field(ge=1)], Annotated[int, Field(ge=1)]] = (64, 64)
    kernel: Annotated[int, Field(ge=1)] = 3
    dense: Annotated[int, Field(ge=1)] = 256
    image: tuple[int, int, int] | None = None
    """Height, width and depth of a party's part; by default a square."""

    def num_weights(self, num_features: int, num_outputs: int) -> int:
        """Returns the number of weights of a party's model, biases included.

        Raises:
            ScenarioError: the features are no images, or too small ones.
        """
        _, after_two, depth = self._sizes(num_features)
        one, two = self.channels
        convolutions = one * (depth * self.kernel**2 + 1)
        convolutions += two * (one * self.kernel**2 + 1)
        dense = self.dense * (two * math.prod(after_two) + 1)
        return convolutions + dense + num_outputs * self.dense

    def work(self, num_features: int, num_outputs: int) -> int:
        """Returns the multiplications for the outputs of one sample."""
        after_one, after_two, depth = self._sizes(num_features)
        one, two = self.channels
        convolutions = one * depth * math.prod(after_one)
        convolutions += two * one * math.prod(after_two)
        dense = self.dense * (two * math.prod(after_two) + num_outputs)
        return self.kernel**2 * convolutions + dense

    def _sizes(self, num_features: int) -> tuple[tuple[int, int], tuple[int, int], int]:
        """Returns the images after each convolution, and their planes."""
        height, width, depth = images.image_shape(num_features, self.image)
        check_view(height, width, self.kernel)
        cut = self.kernel - 1
        return (height - cut, width - cut), (height - 2 * cut, width - 2 * cut), depth


def check_view(height: int, width: int, kernel: int) -> None:
    """Refuses images that two convolutions without padding leave nothing of.

    Raises:
        ScenarioError: images too small.
    """
    least = 2 * (kernel - 1) + 1
    if min(height, width) < least:
        raise ScenarioError(
            f"images must be at least {least} x {least} pixels for two convolutions of "
            f"{kernel} x {kernel}, got {height} x {width}; lower problem.model.kernel"
        )


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
