"""Models. Their weights are counted here, without JAX, for what messages weigh."""

import math
from itertools import pairwise
from typing import Annotated, ClassVar, Literal

from pydantic import Field

from simulator.config.errors import ScenarioError
from simulator.config.parts import Part
from simulator.problems import architectures, images


class Model(Part):
    """What every model says of itself."""

    families: ClassVar[tuple[str, ...]]
    """Divisions of the data that it is for: `horizontal`, `vertical`, `transfer`."""
    is_linear: ClassVar[bool] = False
    """Whether outputs are linear in features and weights."""
    transfers: ClassVar[bool] = False
    """Whether it has hidden units that transfer learning aligns."""
    sequential: ClassVar[bool] = False
    """Whether its rows are sequences of `frames` frames, each with a class."""

    @property
    def normalises_batches(self) -> bool:
        """Whether the samples of a batch are normalised together."""
        return False


class Linear(Model):
    """Linear: embeddings `x @ w` of a vertical party, or `x @ w + b` of a client."""

    kind: Literal["linear"] = "linear"
    is_linear: ClassVar[bool] = True
    made_by: ClassVar[str] = "simulator.problems.models:linear"
    families: ClassVar[tuple[str, ...]] = ("horizontal", "vertical")

    def num_weights(self, num_features: int, num_outputs: int) -> int:
        """Returns the number of weights of a client's model, biases included."""
        return (num_features + 1) * num_outputs

    def work(self, num_features: int, num_outputs: int) -> int:
        """Returns the multiplications for the logits of one sample."""
        return num_features * num_outputs


class Mlp(Model):
    """One hidden layer, as a party's model: its outputs are added to the others'.

    In transfer learning, the hidden units themselves are what a party makes of a
    sample.
    """

    kind: Literal["mlp"] = "mlp"
    transfers: ClassVar[bool] = True
    made_by: ClassVar[str] = "simulator.problems.embeddings:mlp"
    families: ClassVar[tuple[str, ...]] = ("vertical",)
    hidden: Annotated[int, Field(ge=1)] = 64
    activation: Literal["relu", "tanh"] = "tanh"

    def num_weights(self, num_features: int, num_outputs: int) -> int:
        """Returns the number of weights of a party's model, biases included."""
        return self.hidden * (num_features + 1 + num_outputs)

    def work(self, num_features: int, num_outputs: int) -> int:
        """Returns the multiplications for the outputs of one sample."""
        return self.hidden * (num_features + num_outputs)


class Dense(Model):
    """Fully connected layers, of clients that hold all columns."""

    kind: Literal["dense"] = "dense"
    made_by: ClassVar[str] = "simulator.problems.dense:dense"
    families: ClassVar[tuple[str, ...]] = ("horizontal",)
    hidden: Annotated[tuple[Annotated[int, Field(ge=1)], ...], Field(min_length=1)] = (
        128,
        64,
    )
    """Units of each hidden layer."""
    activation: Literal["relu", "tanh"] = "relu"

    def num_weights(self, num_features: int, num_outputs: int) -> int:
        """Returns the number of weights, biases included."""
        sizes = (num_features, *self.hidden, num_outputs)
        return sum((a + 1) * b for a, b in pairwise(sizes))

    def work(self, num_features: int, num_outputs: int) -> int:
        """Returns the multiplications for the logits of one sample."""
        sizes = (num_features, *self.hidden, num_outputs)
        return sum(a * b for a, b in pairwise(sizes))


class ViewCnn(Model):
    """Two convolutions and a dense layer on a party's part of every image.

    Source: FedBCD, section 7 (MNIST-CNN); no pools and no padding (F-11).
    """

    kind: Literal["view_cnn"] = "view_cnn"
    made_by: ClassVar[str] = "simulator.problems.embeddings:view_cnn"
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


class Cnn(Model):
    """Two convolutions, each with ReLU and 2x2 pooling, and a fully connected layer.

    Source: MAPA, section 9; widths by the later public code (M-29).
    """

    kind: Literal["cnn"] = "cnn"
    made_by: ClassVar[str] = "simulator.problems.cnn:cnn"
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


class CifarNet(Model):
    """One of nine networks for CIFAR-10, as `simulator.problems.architectures` says.

    Batch normalisation mixes the samples of a batch, so that no sample's own gradient
    exists to be clipped; group normalisation does not, and keeps nothing between
    batches. It is the default for that reason, though the paper's networks have the
    other.

    Source: A(DP)2SGD, Tables 1 and 2.
    """

    kind: Literal["cifar_net"] = "cifar_net"
    made_by: ClassVar[str] = "simulator.problems.zoo:cifar_net"
    families: ClassVar[tuple[str, ...]] = ("horizontal",)
    name: architectures.Name = "resnet18"
    norm: architectures.Norm = "group"
    groups: Annotated[int, Field(ge=1)] = 16
    """Of channels, at most, that `norm: group` takes together; fewer where this many do
    not divide the channels, or would leave groups of less than four."""
    width: Annotated[float, Field(gt=0)] = 1.0
    """Multiplies the numbers of channels, which are rounded to multiples of four."""
    image: tuple[int, int, int] | None = None
    """Height, width and depth of the images; by default square ones, grey or of three
    colours."""

    @property
    def normalises_batches(self) -> bool:
        """Whether the samples of a batch are normalised together."""
        return self.norm == "batch"

    def num_weights(self, num_features: int, num_outputs: int) -> int:
        """Returns the number of weights, running statistics included.

        Raises:
            ScenarioError: the features are no images, or too small ones.
        """
        counted = self._tally(num_features, num_outputs)
        return counted.num_parameters + counted.num_statistics

    def work(self, num_features: int, num_outputs: int) -> int:
        """Returns the multiplications for the logits of one sample."""
        return self._tally(num_features, num_outputs).work

    def _tally(self, num_features: int, num_outputs: int) -> architectures.Tally:
        shape = images.image_shape(num_features, self.image)
        return architectures.tally(self.name, shape, num_outputs, self.width, self.norm)


class Lstm(Model):
    """Bidirectional LSTM layers and a linear projection; logits for every frame.

    By default the acoustic model of A(DP)²SGD: with 260 features a frame and 32,000
    states it has 43,154,944 weights, the 164.62 MB (of 2**20 bytes) of its Table 2.

    Source: A(DP)²SGD, section 5 (SWB300).
    """

    kind: Literal["lstm"] = "lstm"
    made_by: ClassVar[str] = "simulator.problems.lstm:lstm"
    families: ClassVar[tuple[str, ...]] = ("horizontal",)
    sequential: ClassVar[bool] = True
    """It is for data with a class for every frame, and for no other."""
    layers: Annotated[int, Field(ge=1, le=100)] = 6
    cells: Annotated[int, Field(ge=1)] = 512
    """Of each direction, in each layer."""
    projection: Annotated[int, Field(ge=1)] = 256
    """Outputs of the linear layer between the last of the LSTM and the logits."""
    frames: Annotated[int, Field(ge=1, le=10_000)] = 21
    """Of a row, which holds their features one frame after the other."""

    def shapes(
        self, num_features: int, num_outputs: int
    ) -> tuple[tuple[int, ...], ...]:
        """Returns the shapes of all weights, in the order of the flat vector.

        Of each layer those from its inputs, those from its own outputs and two biases,
        as PyTorch has them, all of both directions and four gates: input, forget,
        cell, output. Then matrix and bias of the projection, and of the logits.

        Args:
            num_features: columns of a row.
            num_outputs: logits of a frame.

        Raises:
            ScenarioError: the columns are not so many frames of equal width.
        """
        width, rest = divmod(num_features, self.frames)
        if rest or not width:
            raise ScenarioError(
                f"problem.model.frames must divide the {num_features} columns of the "
                f"data, got {self.frames}; make it the number of frames in a row"
            )
        gates = 4 * self.cells
        layers = [
            ((2, gates, inputs), (2, gates, self.cells), (2, gates), (2, gates))
            for inputs in (width, *[2 * self.cells] * (self.layers - 1))
        ]
        return (
            *(shape for layer in layers for shape in layer),
            (self.projection, 2 * self.cells),
            (self.projection,),
            (num_outputs, self.projection),
            (num_outputs,),
        )

    def num_weights(self, num_features: int, num_outputs: int) -> int:
        """Returns the number of weights, biases included.

        Raises:
            ScenarioError: the columns are not so many frames of equal width.
        """
        return sum(map(math.prod, self.shapes(num_features, num_outputs)))

    def work(self, num_features: int, num_outputs: int) -> int:
        """Returns the multiplications for the logits of all frames of one sample."""
        shapes = self.shapes(num_features, num_outputs)
        *layers, projection, _, logits, _ = shapes
        matrices = (*(s for s in layers if len(s) == 3), projection, logits)
        return self.frames * sum(map(math.prod, matrices))
