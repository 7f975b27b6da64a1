"""Two convolutions and a dense layer, as the model of a party with part of an image."""

from typing import TYPE_CHECKING, Annotated, ClassVar, Literal

from pydantic import Field

from ....parts.errors import ScenarioError
from ....problem.data.images import image_shape
from ....problem.models.parts import Model, Shapes, size

if TYPE_CHECKING:
    from .network import ViewCnnNetwork

Image = tuple[int, int, int]
"""Height, width and depth, pixels."""


class ViewCnn(Model):
    """Two convolutions and a dense layer on a party's part of every image.

    Source: FedBCD, section 7 (MNIST-CNN); no pools and no padding (F-11).
    """

    kind: Literal["view_cnn"] = "view_cnn"
    families: ClassVar[tuple[str, ...]] = ("vertical",)
    channels: tuple[Annotated[int, Field(ge=1)], Annotated[int, Field(ge=1)]] = (64, 64)
    """Channels of each convolution."""
    kernel: Annotated[int, Field(ge=1)] = 3
    """Width and height of a kernel, in pixels."""
    dense: Annotated[int, Field(ge=1)] = 256
    """Units of the dense layer."""
    image: Image | None = None
    """Height, width and depth of a party's part; by default a square."""

    @property
    def num_layers(self) -> int:
        return 4

    def shapes(self, image: Image, num_outputs: int) -> Shapes:
        """Returns the shapes of kernels or matrix, and biases, of each layer in turn.

        The last layer has no biases, since outputs of parties are added up.

        Raises:
            ScenarioError: The images are too small for two convolutions without
                padding.
        """
        (height, width, depth), kernel = image, self.kernel
        least = 2 * (kernel - 1) + 1
        if min(height, width) < least:
            raise ScenarioError(
                f"images must be at least {least} x {least} pixels for two "
                f"convolutions of {kernel} x {kernel}, got {height} x {width}; lower "
                "problem.model.kernel"
            )
        rows, columns = (side - 2 * (kernel - 1) for side in (height, width))
        first, second = self.channels
        return (
            (first, depth, kernel, kernel),
            (first,),
            (second, first, kernel, kernel),
            (second,),
            (self.dense, second * rows * columns),
            (self.dense,),
            (num_outputs, self.dense),
        )

    def num_weights(self, num_features: int, num_outputs: int) -> int:
        return size(self.shapes(image_shape(num_features, self.image), num_outputs))

    def make(
        self, num_outputs: int, num_features: int, family: str
    ) -> "ViewCnnNetwork":
        from .network import ViewCnnNetwork

        model = ViewCnnNetwork(self, image_shape(num_features, self.image), num_outputs)
        _ = model.shapes  # refuses images that are too small
        return model
