"""How rows of a data set are images, and what a network on them weighs; without JAX.

A row holds planes one after the other: all pixels of the first channel row by row, then
those of the second, as CIFAR's files do (and unlike image libraries, which interleave
channels). Its shape is written `(height, width, depth)`.
"""

import math

from simulator.config.errors import ScenarioError

POOL = 2
"""Height and width of a pool, and its stride."""


def image_shape(
    num_features: int,
    image: tuple[int, ...] | None = None,
    key: str = "problem.model.image",
) -> tuple[int, int, int]:
    """Returns height, width and depth of a data set's images.

    Args:
        num_features: columns of the data set.
        image: `(height, width)` or `(height, width, depth)` as the scenario gives it.
            Without it a square of grey pixels is inferred (784 are 28 x 28), or three
            square planes (3072 are 3 x 32 x 32); no number is both.
        key: of the scenario's entry, for messages.

    Raises:
        ScenarioError: no such square, or a shape of another number of pixels.
    """
    if image is None:
        return _inferred(num_features, key)
    if len(image) not in (2, 3) or min(image) < 1:
        raise ScenarioError(
            f"{key} must be (height, width) or (height, width, depth), "
            f"each >= 1, got {tuple(image)}"
        )
    if math.prod(image) != num_features:
        raise ScenarioError(
            f"{key} must have as many numbers as there are columns, {num_features}, "
            f"got {tuple(image)} with {math.prod(image)}"
        )
    height, width, *depth = image
    return height, width, depth[0] if depth else 1


def _inferred(num_features: int, key: str) -> tuple[int, int, int]:
    for depth in (1, 3):
        side = math.isqrt(num_features // depth)
        if side and depth * side * side == num_features:
            return side, side, depth
    raise ScenarioError(
        "columns must be a square image, grey or of three planes, "
        f"got {num_features} columns; set {key} to (height, width, depth)"
    )


def cnn_sizes(
    height: int, width: int, kernel: int
) -> tuple[tuple[int, int], tuple[int, int]]:
    """Returns height and width after the first pool and after the second.

    A convolution takes `kernel - 1` pixels (it pads nothing); a pool halves and drops
    an odd row or column at the end.

    Raises:
        ScenarioError: nothing would be left.
    """
    sizes = []
    rows, columns = height, width
    for _ in range(2):
        rows, columns = ((side - kernel + 1) // POOL for side in (rows, columns))
        sizes.append((rows, columns))
    if kernel < 1 or min(rows, columns) < 1:
        least = POOL * (POOL + kernel - 1) + kernel - 1
        raise ScenarioError(
            f"images must be at least {least} x {least} pixels for two convolutions "
            f"of {kernel} x {kernel} and their pools, got {height} x {width}; lower "
            "problem.model.kernel"
        )
    return sizes[0], sizes[1]


def cnn_num_weights(
    height: int,
    width: int,
    depth: int,
    channels: tuple[int, int],
    kernel: int,
    num_outputs: int,
) -> int:
    """Returns how many numbers the five-layer network has, biases included.

    Raises:
        ScenarioError: images too small for it.
    """
    first, second = channels
    _, (rows, columns) = cnn_sizes(height, width, kernel)
    area = kernel * kernel
    return (
        first * (depth * area + 1)
        + second * (first * area + 1)
        + num_outputs * (second * rows * columns + 1)
    )
