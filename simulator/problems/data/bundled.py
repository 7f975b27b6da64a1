"""Real data that ships inside scikit-learn."""

import numpy as np

from simulator.problems.data.base import Dataset
from simulator.problems.data.scaling import finish, split
from simulator.scenario.problems import BreastCancer, Digits


def digits(config: Digits) -> Dataset:
    """Loads 1,797 images of 8x8 pixels with values 0-16, ten classes."""
    from sklearn.datasets import load_digits

    x, y = load_digits(return_X_y=True)
    columns = tuple(f"pixel_{i // 8}_{i % 8}" for i in range(64))
    parts = split(config, x, y.astype(np.int32))
    return finish(config, "digits", parts, columns, largest=16.0)


def breast_cancer(config: BreastCancer) -> Dataset:
    """Loads 569 cases with 30 features of very different ranges, two classes."""
    from sklearn.datasets import load_breast_cancer

    found = load_breast_cancer()
    columns = tuple(str(name).replace(" ", "_") for name in found.feature_names)
    parts = split(config, found.data, found.target.astype(np.int32))
    return finish(config, "breast_cancer", parts, columns, largest=None)
