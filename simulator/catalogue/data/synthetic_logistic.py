"""Gaussian features with labels from a planted logistic model."""

from typing import Annotated, Literal

import numpy as np
from pydantic import Field, model_validator

from ...parts.base import LocatedError
from ...problem.data import base
from ...problem.data.base import Dataset, generator
from ...problem.data.parts import Data
from ...problem.data.split import divided

STREAM = 5
"""Number of the random stream; see `seeds`."""
NORM = 3.0
"""Euclidean norm of the planted weights: the logits' standard deviation."""
MOST_NUMBERS = 50_000_000
"""Largest number of values: 400 MB before they are rounded to float32."""


class SyntheticLogistic(Data):
    """Gaussian features with labels drawn from a planted logistic model."""

    kind: Literal["synthetic_logistic"] = "synthetic_logistic"
    num_samples: Annotated[int, Field(ge=2)] = 1250
    """Training and test rows together."""
    num_features: Annotated[int, Field(ge=1)] = 20
    """Number of features of a row."""
    data_seed: Annotated[int, Field(ge=0)] = 0
    """Seed of the data, the same for all replicates."""

    @model_validator(mode="after")
    def _in_memory(self) -> "SyntheticLogistic":
        if self.num_samples * self.num_features > MOST_NUMBERS:
            raise LocatedError(
                f"num_samples x num_features must be at most {MOST_NUMBERS:,}, got "
                f"{self.num_samples:,} x {self.num_features:,}; lower one of them",
            )
        return self

    def make(self) -> Dataset:
        """Returns standard normal features x and labels y ~ Bernoulli(sigmoid(x @ w)).

        The weights w have a uniformly random direction and the norm 3, with which the
        best classifier is right in 83 % of rows, whatever the number of features.
        """
        draw = generator(self.data_seed, STREAM)
        weights = draw.standard_normal(self.num_features)
        weights *= NORM / np.linalg.norm(weights)
        x = draw.standard_normal((self.num_samples, self.num_features))
        positive = 1 / (1 + np.exp(-(x @ weights)))
        y = draw.random(self.num_samples) < positive
        return divided(
            self,
            "synthetic_logistic",
            (x, y),
            num_classes=2,
            columns=base.numbered(self.num_features),
        )
