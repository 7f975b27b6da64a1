"""scikit-learn's breast cancer cases, which come with it."""

from typing import Any, ClassVar, Literal

import numpy as np

from ..storage.published import Published
from .base import Dataset
from .parts import Data, Scale
from .split import divided

PUBLISHED = Published(
    origin="UCI 17, Breast Cancer Wisconsin (Diagnostic)",
    licence="CC BY 4.0",
    bundled="scikit-learn",
)


class BreastCancer(Data):
    """scikit-learn's 569 real cases with 30 features, two classes."""

    kind: Literal["breast_cancer"] = "breast_cancer"
    published: ClassVar[Published | None] = PUBLISHED
    scale: Scale = "unit"

    def make(self) -> Dataset:
        """Returns 569 rows of 30 features, 63 % benign.

        Class 0 is malignant, class 1 benign.

        Source: UCI 17, Breast Cancer Wisconsin (Diagnostic).
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
