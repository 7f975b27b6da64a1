"""Any number of convolutions in pairs, and a fully connected layer."""

from typing import TYPE_CHECKING, Annotated, ClassVar, Literal

from pydantic import Field, model_validator

from ....parts.base import LocatedError
from ....parts.errors import ScenarioError
from ....problem.data.images import image_shape
from ....problem.models.parts import Model, Shapes, size

if TYPE_CHECKING:
    from .network import DeepCnnNetwork

PER_POOL = 2
"""Number of convolutions between pools."""
Image = tuple[int, int, int]
"""Height, width and depth."""


class DeepCnn(Model):
    """Convolutions with ReLU, a pool after every second one, and a dense layer.

    Images are padded, so that a convolution keeps their size; a pool takes the maximum
    of 2 x 2 pixels. By default the seven layers of VAFL's parties with 512 outputs.

    Source: VAFL, appendix G (ModelNet40); widths by V-27.
    """

    kind: Literal["deep_cnn"] = "deep_cnn"
    families: ClassVar[tuple[str, ...]] = ("horizontal",)
    channels: Annotated[
        tuple[Annotated[int, Field(ge=1)], ...], Field(min_length=1, max_length=100)
    ] = (32, 32, 64, 64, 128, 128)
    """Channels of each convolution."""
    kernel: Annotated[int, Field(ge=1)] = 3
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

    @property
    def num_layers(self) -> int:
        return len(self.channels) + 1

    def sizes(self, image: Image) -> tuple[tuple[int, int, int], ...]:
        """Returns channels, height and width of what each convolution computes.

        Raises:
            ScenarioError: Nothing would be left of the images.
        """
        height, width, _ = image
        found = []
        for number, channels in enumerate(self.channels):
            if number and number % PER_POOL == 0:
                height, width = height // 2, width // 2
            found.append((channels, height, width))
        num_pools = len(self.channels) // PER_POOL
        if min(image[:2]) < 2**num_pools:
            raise ScenarioError(
                f"images must be at least {2**num_pools} x {2**num_pools} pixels for "
                f"{num_pools} pools, got {image[0]} x {image[1]}; take fewer "
                "problem.model.channels"
            )
        return tuple(found)

    def shapes(self, image: Image, num_outputs: int) -> Shapes:
        """Returns the shapes of kernels or matrix, and biases, of each layer in turn.

        Args:
            image: Height, width and depth of an image, pixels.
            num_outputs: Number of outputs, `C`.

        Raises:
            ScenarioError: The images are too small.
        """
        *_, (channels, height, width) = self.sizes(image)
        if len(self.channels) % PER_POOL == 0:
            height, width = height // 2, width // 2
        inputs = (image[2], *self.channels[:-1])
        kernels = [
            shape
            for inp, out in zip(inputs, self.channels, strict=True)
            for shape in ((out, inp, self.kernel, self.kernel), (out,))
        ]
        return (*kernels, (num_outputs, channels * height * width), (num_outputs,))

    def num_weights(self, num_features: int, num_outputs: int) -> int:
        return size(self.shapes(image_shape(num_features, self.image), num_outputs))

    def make(
        self, num_outputs: int, num_features: int, family: str
    ) -> "DeepCnnNetwork":
        from .network import DeepCnnNetwork

        image = image_shape(num_features, self.image)
        _ = self.shapes(image, num_outputs)  # refuses images that are too small
        return DeepCnnNetwork(self, image, num_outputs)
