"""Sets that come with scikit-learn: handwritten digits, breast cancer cases."""

import gzip
from importlib.util import find_spec
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np

from ...files.reading.published import Published
from ...parts.errors import DataError
from ...problem.data.base import Dataset
from ...problem.data.parts import Data, Scale
from ...problem.data.split import Samples, divided

LARGEST = 16.0
"""Value of a pixel that is all ink."""
FILE = Path("datasets", "data", "digits.csv.gz")
"""Where scikit-learn keeps them, in its package."""
DIGITS = Published(
    origin="UCI 80, Optical Recognition of Handwritten Digits, its test part",
    licence="CC BY 4.0",
    bundled="scikit-learn",
)
BREAST_CANCER = Published(
    origin="UCI 17, Breast Cancer Wisconsin (Diagnostic)",
    licence="CC BY 4.0",
    bundled="scikit-learn",
)


class Digits(Data):
    """scikit-learn's 1,797 real images of 8x8 pixels, ten classes."""

    kind: Literal["digits"] = "digits"
    published: ClassVar[Published | None] = DIGITS
    scale: Scale = "unit"

    def make(self) -> Dataset:
        return divided(
            self,
            "digits",
            read(),
            num_classes=10,
            columns=tuple(f"pixel_{i}_{j}" for i in range(8) for j in range(8)),
            largest=LARGEST,
        )


class BreastCancer(Data):
    """scikit-learn's 569 real cases with 30 features, two classes."""

    kind: Literal["breast_cancer"] = "breast_cancer"
    published: ClassVar[Published | None] = BREAST_CANCER
    scale: Scale = "unit"

    def make(self) -> Dataset:
        """Returns 569 rows of 30 features, 63 % benign.

        Class 0 is malignant, class 1 benign.
        """
        # It imports pandas as well, which other data sets do not need.
        from sklearn.datasets import load_breast_cancer

        bunch: Any = load_breast_cancer()
        return divided(
            self,
            "breast_cancer",
            (np.asarray(bunch.data), np.asarray(bunch.target)),
            num_classes=2,
            columns=tuple(str(name).replace(" ", "_") for name in bunch.feature_names),
        )


def read() -> Samples:
    """Returns images and their digits, as scikit-learn's `load_digits` has them.

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
    return table[:, :-1], table[:, -1].astype(np.int64)
