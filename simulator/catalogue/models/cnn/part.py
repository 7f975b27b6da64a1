"""Two convolutions with pools, and a fully connected layer."""

from typing import TYPE_CHECKING, Annotated, ClassVar, Literal

from pydantic import Field

from ....parts.errors import ScenarioError
from ....problem.data.images import image_shape
from ....problem.models.parts import Model, Shapes, size

if TYPE_CHECKING:
    from .network import CnnNetwork

POOL = 2
"""Height and width of a pool, and its stride."""


class Cnn(Model):
    """Two convolutions, each with ReLU and 2x2 pooling, and a fully connected layer.

    Source: MAPA, section 9; widths by the later public code (M-29).
    """

    kind: Literal["cnn"] = "cnn"
    families: ClassVar[tuple[str, ...]] = ("horizontal",)
    channels: tuple[Annotated[int, Field(ge=1)], Annotated[int, Field(ge=1)]] = (10, 10)
    """Channels of each convolution."""
    kernel: Annotated[int, Field(ge=1)] = 5
    """Width and height of a kernel, in pixels."""
    image: tuple[int, int, int] | None = None
    """Height, width and depth of the images; by default square ones, grey or of three
    colours."""

    @property
    def num_layers(self) -> int:
        return 3

    def num_weights(self, num_features: int, num_outputs: int) -> int:
        image = image_shape(num_features, self.image)
        return size(shapes(image, self.channels, self.kernel, num_outputs))

    def make(self, num_outputs: int, num_features: int, family: str) -> "CnnNetwork":
        from .network import CnnNetwork

        height, width, depth = image_shape(num_features, self.image)
        channels, kernel = self.channels, self.kernel
        return CnnNetwork(height, width, depth, channels, kernel, num_outputs)


def shapes(
    image: tuple[int, int, int],
    channels: tuple[int, int],
    kernel: int,
    num_outputs: int,
) -> Shapes:
    """Returns the shapes of kernels or matrix, and biases, of each layer in turn.

    Args:
        image: Height, width and depth of an image, pixels.
        channels: Numbers of channels of the two convolutions.
        kernel: Height and width of their kernels, pixels.
        num_outputs: Number of outputs, `C`.

    Raises:
        ScenarioError: The images are too small.
    """
    height, width, depth = image
    first, second = channels
    _, (rows, columns) = sizes(height, width, kernel)
    return (
        (first, depth, kernel, kernel),
        (first,),
        (second, first, kernel, kernel),
        (second,),
        (num_outputs, second * rows * columns),
        (num_outputs,),
    )


def sizes(
    height: int, width: int, kernel: int
) -> tuple[tuple[int, int], tuple[int, int]]:
    """Returns height and width after the first pool and after the second.

    A convolution takes `kernel - 1` pixels (it pads nothing); a pool halves and drops
    an odd row or column at the end.

    Raises:
        ScenarioError: Nothing would be left.
    """
    after = []
    rows, columns = height, width
    for _ in range(2):
        rows, columns = ((side - kernel + 1) // POOL for side in (rows, columns))
        after.append((rows, columns))
    if kernel < 1 or min(rows, columns) < 1:
        least = POOL * (POOL + kernel - 1) + kernel - 1
        raise ScenarioError(
            f"images must be at least {least} x {least} pixels for two convolutions "
            f"of {kernel} x {kernel} and their pools, got {height} x {width}; lower "
            "problem.model.kernel"
        )
    return after[0], after[1]
