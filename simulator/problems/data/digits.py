"""scikit-learn's handwritten digits, which come with it."""

from typing import Any, Literal

import numpy as np

from simulator.problems.data.base import Dataset
from simulator.problems.data.parts import Data
from simulator.problems.data.split import divided


class Digits(Data):
    """scikit-learn's 1,797 real images of 8x8 pixels, ten classes."""

    kind: Literal["digits"] = "digits"

    def make(self) -> Dataset:
        """Returns 1,797 images of 64 pixels of 0 to 16.

        Raises:
            ScenarioError: The limit or the test fraction is too high.

        Source: UCI 80, Optical Recognition of Handwritten Digits, its test part.
        """
        # It imports pandas as well, which other data sets do not need.
        from sklearn.datasets import load_digits

        bunch: Any = load_digits()
        return divided(
            self,
            "digits",
            (np.asarray(bunch.data), np.asarray(bunch.target)),
            num_classes=10,
            columns=tuple(map(str, bunch.feature_names)),
            largest=16.0,
        )
