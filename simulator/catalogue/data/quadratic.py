"""Rows by which every client's objective is a quadratic with a known optimum."""

from typing import Annotated, Literal

import numpy as np
from jaxtyping import Float
from pydantic import Field, model_validator

from ...parts.base import LocatedError, NumClients
from ...parts.expressions import Quantity, per_client
from ...problem.data import base
from ...problem.data.base import Dataset, Grouping, features_type, generator
from ...problem.data.parts import Data, Scale

STREAM = 15
"""Number of the random stream; see `seeds`."""
MOST_NUMBERS = 50_000_000
"""Largest number of values: 200 MB in float32."""
COLUMN = "client"
"""Name of the column by which the partition `natural` divides the rows."""


class Quadratic(Data):
    """Rows by which client i's objective is sum_j a_j (w_j - b_ij)^2 / 2.

    For the model `diagonal`, the loss `squared` and the partition `natural` with as
    many clients. The gradient of one row is the objective's gradient plus noise, with
    mean zero and a mean square of exactly `noise` squared, for any w. The objective of
    all has its optimum at the mean of the b_i, the smoothness L = max a_j and the
    strong convexity min a_j. Test rows are the b_i, without noise.
    """

    kind: Literal["quadratic"] = "quadratic"
    scale: Scale = "raw"
    """Only `raw`: another scale would change the objectives."""
    clients: NumClients
    """Number of clients' objectives."""
    dimension: Annotated[int, Field(ge=1, le=10_000)] = 10
    """Number of weights, d."""
    condition: Annotated[float, Field(ge=1)] = 1.0
    """Condition number: a_1 = 1 down to a_d = 1 / condition, in geometric steps."""
    distance: Annotated[float, Field(ge=0)] = 1.0
    """Distance of the optimum from the start, which is zero."""
    heterogeneity: Annotated[float, Field(ge=0)] = 0.0
    """Root mean square of the distances of the b_i from their mean."""
    optima: Quantity | None = None
    """Every client's b_i, equal in all columns, in place of `distance` and
    `heterogeneity`."""
    noise: Annotated[float, Field(ge=0)] = 0.0
    """Root mean square norm of the noise of one row's gradient, sigma."""
    samples: Annotated[int, Field(ge=1)] = 1
    """Rows of each client; more than one where there is noise."""
    data_seed: Annotated[int, Field(ge=0)] = 0
    """Key of the optima and of the noise."""

    @model_validator(mode="after")
    def _fits(self) -> "Quadratic":
        if self.scale != "raw":
            raise LocatedError(
                "scale must be raw for the data set quadratic, because another one "
                f"would change its objectives, got {self.scale!r}; leave it out",
            )
        values = self.clients * self.samples * self.dimension
        if values > MOST_NUMBERS:
            raise LocatedError(
                f"clients x samples x dimension must be at most {MOST_NUMBERS:,}, got "
                f"{values:,}; lower one of them",
                ("samples",),
            )
        if self.noise and self.samples < 2:
            raise LocatedError(
                "samples must be at least 2 with noise, which differs from row to row, "
                "got 1; take 64",
            )
        if self.heterogeneity and self.clients == 1:
            raise LocatedError(
                "heterogeneity must be 0 with one client, got "
                f"{self.heterogeneity:g}; remove it or add clients",
            )
        return self

    def make(self) -> Dataset:
        """Returns features sqrt(d a_j / 2) and targets, with noise, of each client.

        The loss `squared` is a mean over d targets, and theory's objective half a sum:
        hence the factor d / 2.
        """
        d, n, rows = self.dimension, self.clients, self.samples
        draw = generator(self.data_seed, STREAM)
        curvature = np.geomspace(1, 1 / self.condition, d)
        optima = self._optima(draw)
        noise = np.zeros((n, rows, d))
        if self.noise:
            noise = draw.standard_normal((n, rows, d))
            noise -= noise.mean(axis=1, keepdims=True)
            noise /= np.sqrt((noise**2).mean(axis=1, keepdims=True))
            noise *= self.noise / np.sqrt(curvature.sum())
        half, root = np.sqrt(d / 2), np.sqrt(curvature)
        x = np.broadcast_to(half * root, (n, rows, d)).reshape(-1, d)
        y = half * (root * optima[:, None, :] + noise).reshape(-1, d)
        digits = len(str(n))
        owners = tuple(f"{i + 1:0{digits}d}" for i in range(n))
        return Dataset(
            name="quadratic",
            x_train=np.ascontiguousarray(x, features_type()),
            y_train=y.astype(features_type()),
            x_test=np.tile(half * root, (n, 1)).astype(features_type()),
            y_test=(half * root * optima).astype(features_type()),
            num_classes=0,
            columns=base.numbered(d),
            no_classes="targets of the data set quadratic are numbers; take the loss "
            "squared",
            groupings=(Grouping(COLUMN, owners, np.repeat(np.arange(n), rows)),),
        )

    def _optima(self, draw: np.random.Generator) -> Float[np.ndarray, "K d"]:
        d, n = self.dimension, self.clients
        if self.optima is not None:
            given = per_client(self.optima, n, "problem.data.optima")
            return np.tile(np.array([float(b) for b in given])[:, None], (1, d))
        mean = np.full(d, self.distance / np.sqrt(d))
        if not self.heterogeneity:
            return np.tile(mean, (n, 1))
        apart = draw.standard_normal((n, d))
        apart -= apart.mean(axis=0)
        apart *= self.heterogeneity / np.sqrt((apart**2).sum(axis=1).mean())
        return mean + apart
