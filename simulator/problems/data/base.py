"""What a loader of a data set returns."""

from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int


class Dataset(NamedTuple):
    """A data set, divided into training and test rows, its features scaled.

    Attributes:
        name: as every table and figure shows it; a stand-in is `NAME-standin`.
        x_train: features of the training rows, float32.
        y_train: classes from 0, int32: one a row, or one for each of its `L` frames.
        x_test: features of the test rows.
        y_test: classes of the test rows.
        num_classes: at least 2.
        columns: names of the features, in order.
    """

    name: str
    x_train: Float[np.ndarray, "N P"]
    y_train: Int[np.ndarray, " N *L"]
    x_test: Float[np.ndarray, "N_test P"]
    y_test: Int[np.ndarray, " N_test *L"]
    num_classes: int
    columns: tuple[str, ...]

    @property
    def num_frames(self) -> int | None:
        """Frames of a row, each with a class of its own, `L`; None for one a row."""
        return self.y_train.shape[1] if self.y_train.ndim == 2 else None
