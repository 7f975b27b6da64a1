"""scikit-learn's handwritten digits, which come with it."""

import gzip
from importlib.util import find_spec
from pathlib import Path
from typing import ClassVar, Literal, NamedTuple

import numpy as np
from jaxtyping import Float64, Int64

from ..config.errors import DataError
from ..storage.published import Published
from .base import Dataset
from .parts import Data, Scale
from .split import divided

SIDE = 8
"""Pixels of an image's side."""
LARGEST = 16.0
"""Value of a pixel that is all ink."""
FILE = Path("datasets", "data", "digits.csv.gz")
"""Where scikit-learn keeps them, in its package."""


PUBLISHED = Published(
    origin="UCI 80, Optical Recognition of Handwritten Digits, its test part",
    licence="CC BY 4.0",
    bundled="scikit-learn",
)


class Images(NamedTuple):
    """Images in scikit-learn's order.

    Attributes:
        pixels: Values 0 to 16, row by row.
        digits: What they show, 0 to 9.
    """

    pixels: Float64[np.ndarray, "N P"]
    digits: Int64[np.ndarray, " N"]


class Digits(Data):
    """scikit-learn's 1,797 real images of 8x8 pixels, ten classes."""

    kind: Literal["digits"] = "digits"
    published: ClassVar[Published | None] = PUBLISHED
    scale: Scale = "unit"

    def make(self) -> Dataset:
        """Returns 1,797 images of 64 pixels of 0 to 16.

        Raises:
            ScenarioError: The limit or the test fraction is too high.
            DataError: scikit-learn's file of them is missing.

        Source: UCI 80, Optical Recognition of Handwritten Digits, its test part.
        """
        sides = range(SIDE)
        return divided(
            self,
            "digits",
            read(),
            num_classes=10,
            columns=tuple(f"pixel_{row}_{column}" for row in sides for column in sides),
            largest=LARGEST,
        )


def read() -> Images:
    """Returns the images and their digits, as scikit-learn's `load_digits` has them.

    Its file is read without it: importing it takes a second of processor time, most of
    it for pandas and for parts of SciPy that nothing else here needs.

    Raises:
        DataError: The file is missing.
    """
    package = find_spec("sklearn")
    folders = package.submodule_search_locations if package else None
    files = [Path(folder, FILE) for folder in folders or ()]
    if not files or not files[0].exists():
        raise DataError(
            f"scikit-learn must come with {FILE}, which is not there; install it by "
            f"pip install --force-reinstall scikit-learn"
        )
    with gzip.open(files[0], "rt", encoding="utf-8") as lines:
        table = np.loadtxt(lines, delimiter=",")
    return Images(table[:, :-1], table[:, -1].astype(np.int64))
