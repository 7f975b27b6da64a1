"""The stand-in of USPS: scikit-learn's digits, enlarged to the same shape."""

import numpy as np
from jaxtyping import Float64, Int

from .. import digits, names
from ..base import Dataset
from ..parts import Data
from ..split import divided

TIMES = 2
SIDE = TIMES * digits.SIDE


def usps_standin(config: Data) -> Dataset:
    """Returns 1,797 real images of digits, 16x16 pixels in [0, 1], in ten classes.

    They are scikit-learn's of 8x8 pixels, each pixel repeated in a square of 2x2: the
    shape of USPS, but a quarter of its information, a fifth of its rows, and other
    writers. They are divided as `digits` are: 1,437 training and 360 test rows, where
    `test_fraction` has its default.

    Raises:
        ScenarioError: The limit or the test fraction is too high, or the classes do not
            exist.

    Source: UCI 80, Optical Recognition of Handwritten Digits, its test part.
    """
    return divided(
        config,
        "usps-standin",
        generate(),
        num_classes=10,
        columns=names.pixels(SIDE, SIDE),
        largest=1.0,
    )


def generate() -> tuple[Float64[np.ndarray, "N P"], Int[np.ndarray, " N"]]:
    """Returns images in [0, 1] and their digits, in scikit-learn's order."""
    pixels, shown = digits.read()
    images = pixels.reshape(-1, digits.SIDE, digits.SIDE) / digits.LARGEST
    enlarged = images.repeat(TIMES, axis=1).repeat(TIMES, axis=2)
    return enlarged.reshape(len(images), -1), shown
