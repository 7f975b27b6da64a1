"""Rows of a data set as images. No JAX here.

A row holds planes one after the other: all pixels of the first channel row by row, then
those of the second, as CIFAR's files do (and unlike image libraries, which interleave
channels). Its shape is written `(height, width, depth)`.
"""

import math

from ...parts.errors import ScenarioError


def image_shape(
    num_features: int,
    image: tuple[int, ...] | None = None,
    key: str = "problem.model.image",
) -> tuple[int, int, int]:
    """Returns height, width and depth of a data set's images.

    Args:
        num_features: Number of columns of the data set.
        image: Entry of the scenario, `(height, width)` or `(height, width, depth)`.
            Without it a square of grey pixels is inferred (784 are 28 x 28), or three
            square planes (3072 are 3 x 32 x 32); no number is both.
        key: Key of the scenario's entry, for messages.

    Raises:
        ScenarioError: The columns are no such square, or the shape has another number
            of pixels.
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
