"""Real data sets that come with scikit-learn and need no files of the user."""

from typing import Any

import numpy as np
from sklearn.datasets import load_breast_cancer, load_digits

from simulator.problems.data.base import Dataset
from simulator.problems.data.dividing import divided
from simulator.problems.data.parts import BreastCancer, Digits


def digits(config: Digits) -> Dataset:
    """Returns scikit-learn's handwritten digits: 1,797 images, 64 pixels of 0 to 16.

    Raises:
        ScenarioError: too high a limit or test fraction.

    Source: UCI 80, Optical Recognition of Handwritten Digits, its test part.
    """
    bunch: Any = load_digits()
    return divided(
        config,
        "digits",
        (np.asarray(bunch.data), np.asarray(bunch.target)),
        num_classes=10,
        columns=tuple(map(str, bunch.feature_names)),
        largest=16.0,
    )


def breast_cancer(config: BreastCancer) -> Dataset:
    """Returns scikit-learn's breast cancer cases: 569 rows, 30 features, 63 % benign.

    Class 0 is malignant, class 1 benign.

    Raises:
        ScenarioError: too high a limit or test fraction.

    Source: UCI 17, Breast Cancer Wisconsin (Diagnostic).
    """
    bunch: Any = load_breast_cancer()
    return divided(
        config,
        "breast_cancer",
        (np.asarray(bunch.data), np.asarray(bunch.target)),
        num_classes=2,
        columns=tuple(str(name).replace(" ", "_") for name in bunch.feature_names),
    )
