"""The arrays of a data set."""

from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int


class Dataset(NamedTuple):
    """A data set, divided into training and test rows, its features scaled.

    Attributes:
        name: Name in tables and figures; that of a stand-in ends in `-standin`.
        x_train: Features of the training rows, float32.
        y_train: Classes from 0, int32: one a row, or one for each of its `L` frames.
        x_test: Features of the test rows.
        y_test: Classes of the test rows.
        num_classes: Number of classes, at least 2.
        columns: Names of the features, in order.
        views: View that each feature belongs to, such as a kind of measurement, in the
            order of the columns; empty where a set has none.
        tokens: Whether features are numbers of tokens, one a frame, from 0 to
            `num_classes` - 1, and no measurements.
    """

    name: str
    x_train: Float[np.ndarray, "N P"]
    y_train: Int[np.ndarray, " N *L"]
    x_test: Float[np.ndarray, "N_test P"]
    y_test: Int[np.ndarray, " N_test *L"]
    num_classes: int
    columns: tuple[str, ...]
    views: tuple[str, ...] = ()
    tokens: bool = False

    @property
    def num_frames(self) -> int | None:
        """Number of frames of a row, `L`, each with a class; None for a class a row."""
        return self.y_train.shape[1] if self.y_train.ndim == 2 else None
