"""Convolutions with ReLU and pools, and a fully connected layer."""

from abc import abstractmethod
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal

from pydantic import Field, model_validator

from ....parts.base import LocatedError
from ....parts.errors import ScenarioError
from ....problem.data.images import image_shape
from ....problem.models.parts import Model, Shapes, size

if TYPE_CHECKING:
    from .network import CnnNetwork, DeepCnnNetwork

POOL = 2
"""Height and width of a pool, and its stride."""
Image = tuple[int, int, int]
"""Height, width and depth."""
Positive = Annotated[int, Field(ge=1)]


class Convolutional(Model):
    """Common base: convolutions with ReLU, pools of 2 x 2 pixels, and a dense layer."""

    families: ClassVar[tuple[str, ...]] = ("horizontal",)
    per_pool: ClassVar[int]
    """Convolutions from one pool to the next."""
    padded: ClassVar[bool]
    """Whether images are padded, so that a convolution keeps their size."""
    if TYPE_CHECKING:
        channels: tuple[int, ...]
        kernel: int
        image: Image | None

    @property
    def num_layers(self) -> int:
        return len(self.channels) + 1

    @property
    def edge(self) -> int:
        """Pixels of padding on each side of an image."""
        return self.kernel // 2 if self.padded else 0

    @abstractmethod
    def too_small(self, image: Image) -> ScenarioError:
        """Returns the error of images of which nothing would be left."""

    def sizes(self, image: Image) -> tuple[tuple[int, int, int], ...]:
        """Returns channels, height and width of each convolution's output.

        The last entry is the dense layer's input. A pool halves, and drops an odd row
        or column at the end.

        Raises:
            ScenarioError: Nothing would be left of the images.
        """
        height, width, _ = image
        lost, found = 0 if self.padded else self.kernel - 1, []
        for number, channels in enumerate(self.channels, 1):
            height, width = height - lost, width - lost
            found.append((channels, height, width))
            if number % self.per_pool == 0:
                height, width = height // POOL, width // POOL
        if min(height, width) < 1:
            raise self.too_small(image)
        return (*found, (self.channels[-1], height, width))

    def shapes(self, image: Image, num_outputs: int) -> Shapes:
        """Returns the shapes of kernels or matrix, and biases, of each layer in turn.

        Raises:
            ScenarioError: The images are too small.
        """
        *_, (channels, height, width) = self.sizes(image)
        inputs = (image[2], *self.channels[:-1])
        kernels = [
            shape
            for inp, out in zip(inputs, self.channels, strict=True)
            for shape in ((out, inp, self.kernel, self.kernel), (out,))
        ]
        return (*kernels, (num_outputs, channels * height * width), (num_outputs,))

    def num_weights(self, num_features: int, num_outputs: int) -> int:
        return size(self.shapes(image_shape(num_features, self.image), num_outputs))


class Cnn(Convolutional):
    """Two convolutions, each with ReLU and 2x2 pooling, and a fully connected layer.

    Source: MAPA, section 9; widths by the later public code (M-29).
    """

    kind: Literal["cnn"] = "cnn"
    per_pool: ClassVar[int] = 1
    padded: ClassVar[bool] = False
    channels: tuple[Positive, Positive] = (10, 10)
    """Channels of each convolution."""
    kernel: Positive = 5
    """Width and height of a kernel, in pixels."""
    image: Image | None = None
    """Height, width and depth of the images; by default square ones, grey or of three
    colours."""

    def too_small(self, image: Image) -> ScenarioError:
        kernel = self.kernel
        least = POOL * (POOL + kernel - 1) + kernel - 1
        fits = 1 + (min(image[:2]) - POOL * POOL) // (POOL + 1)
        return ScenarioError(
            f"images must be at least {least} x {least} pixels for two convolutions "
            f"of {kernel} x {kernel} and their pools, got {image[0]} x {image[1]}; "
            f"lower problem.model.kernel{f' to {fits}' if fits > 0 else ''}"
        )

    def make(self, num_outputs: int, num_features: int, family: str) -> "CnnNetwork":
        from .network import CnnNetwork

        return CnnNetwork(self, image_shape(num_features, self.image), num_outputs)


class DeepCnn(Convolutional):
    """Convolutions with ReLU, a pool after every second one, and a dense layer.

    Images are padded, so that a convolution keeps their size; a pool takes the maximum
    of 2 x 2 pixels. By default the seven layers of VAFL's parties with 512 outputs.

    Source: VAFL, appendix G (ModelNet40); widths by V-27.
    """

    kind: Literal["deep_cnn"] = "deep_cnn"
    per_pool: ClassVar[int] = 2
    padded: ClassVar[bool] = True
    channels: Annotated[tuple[Positive, ...], Field(min_length=1, max_length=100)] = (
        32,
        32,
        64,
        64,
        128,
        128,
    )
    """Channels of each convolution."""
    kernel: Positive = 3
    """Height and width of the kernels, odd, pixels."""
    image: Image | None = None
    """Height, width and depth of the images; by default square ones, grey or of three
    colours."""

    @model_validator(mode="after")
    def _odd(self) -> "DeepCnn":
        if self.kernel % 2 == 0:
            raise LocatedError(
                f"kernel must be odd, so that images keep their size, got "
                f"{self.kernel}; take {self.kernel + 1}",
            )
        return self

    def too_small(self, image: Image) -> ScenarioError:
        num_pools = len(self.channels) // self.per_pool
        return ScenarioError(
            f"images must be at least {2**num_pools} x {2**num_pools} pixels for "
            f"{num_pools} pools, got {image[0]} x {image[1]}; take fewer "
            "problem.model.channels"
        )

    def make(
        self, num_outputs: int, num_features: int, family: str
    ) -> "DeepCnnNetwork":
        from .network import DeepCnnNetwork

        image = image_shape(num_features, self.image)
        _ = self.shapes(image, num_outputs)  # refuses images that are too small
        return DeepCnnNetwork(self, image, num_outputs)
