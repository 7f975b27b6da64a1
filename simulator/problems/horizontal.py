"""A horizontally divided problem: every client holds all columns of some samples."""

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from simulator.problems import losses
from simulator.problems.data.base import Dataset
from simulator.problems.models import LinearEmbedding
from simulator.problems.vertical import measure


class Horizontal(eqx.Module):
    """Features with a column of ones behind them, so that the bias is a weight.

    One flat matrix is faster than a matrix and a vector.

    Attributes:
        x: training features of all clients.
        y: training labels.
        x_test: test features.
        y_test: test labels.
        l2: coefficient of the regulariser of all weights but the bias.
        minimum: least value of the objective, NaN if it was not asked for.
        model: of the features and the ones.
        loss: of a sample.
        reduction: how a batch's losses combine.
        num_clients: who share the samples.
    """

    x: Float[Array, "N P"]
    y: Int[Array, " N"]
    x_test: Float[Array, "N_test P"]
    y_test: Int[Array, " N_test"]
    l2: Float[Array, ""]
    minimum: Float[Array, ""]
    model: LinearEmbedding = eqx.field(static=True)
    loss: losses.Loss = eqx.field(static=True)
    reduction: str = eqx.field(static=True)
    num_clients: int = eqx.field(static=True)

    def regularised(self) -> Bool[np.ndarray, " P"]:
        """Says of each column whether its weights are regularised."""
        return np.arange(self.x.shape[1]) < self.x.shape[1] - 1

    def batch_loss(
        self,
        weights: Float[Array, "C P"],
        x: Float[Array, "S P"],
        y: Int[Array, " S"],
        present: Bool[Array, " S"],
    ) -> Float[Array, ""]:
        """Returns the loss of one batch, without the regulariser."""
        logits = self.model.apply(weights, x)
        each = losses.cross_entropy(self.loss, logits, y)
        return losses.reduce(self.reduction, each, present)

    def objective(self, weights: Float[Array, "C P"]) -> Float[Array, ""]:
        """Returns the regularised mean loss of all training samples."""
        each = losses.cross_entropy(
            self.loss, self.model.apply(weights, self.x), self.y
        )
        kept = jnp.where(self.regularised(), weights, 0)
        return each.mean() + 0.5 * self.l2 * jnp.sum(kept**2)

    def evaluate(
        self, weights: Float[Array, "C P"], metrics: tuple[str, ...]
    ) -> dict[str, Array]:
        """Returns the asked metrics of a model."""
        return measure(self, weights, self.model.apply(weights, self.x_test), metrics)


def build(
    dataset: Dataset,
    model: LinearEmbedding,
    num_clients: int,
    *,
    loss: losses.Loss,
    reduction: str,
    l2: float,
    minimum: float,
    dtype: str,
) -> Horizontal:
    """Puts a data set on the device, a column of ones behind its features."""
    return Horizontal(
        x=jnp.asarray(with_ones(dataset.x_train), dtype),
        y=jnp.asarray(dataset.y_train),
        x_test=jnp.asarray(with_ones(dataset.x_test), dtype),
        y_test=jnp.asarray(dataset.y_test),
        l2=jnp.asarray(l2, dtype),
        minimum=jnp.asarray(minimum, dtype),
        model=model,
        loss=loss,
        reduction=reduction,
        num_clients=num_clients,
    )


def with_ones(x: Float[np.ndarray, "N P"]) -> Float[np.ndarray, "N P+1"]:
    """Returns the features with a column of ones behind them."""
    return np.concatenate([x, np.ones((x.shape[0], 1), x.dtype)], axis=1)
