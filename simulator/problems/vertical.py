"""A vertically divided problem: every party holds some columns of all samples."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, Key

from simulator.problems import losses
from simulator.problems.data.base import Dataset
from simulator.problems.metrics import measure
from simulator.problems.models.base import Embedding

Model = tuple[Float[Array, "M ..."], Float[Array, " C"] | None]
"""The parties' weights and the server's bias, None where the server has no model."""


class VerticalProblem(eqx.Module):
    """Features of all parties, padded with zero columns to the widest, and labels.

    Attributes:
        x: Training features.
        y: Training labels.
        x_test: Test features.
        y_test: Test labels.
        l2: Coefficient of each party's regulariser.
        minimum: Least value of the objective, NaN where no metric needs it.
        embedding: Model that a party applies to its features.
        loss: Loss of a sample, from the sum of embeddings and the bias.
        reduction: Way to combine the losses of a batch, `mean` or `sum`.
        num_features: Number of columns of each party, without padding.
    """

    x: Float[Array, "M N P"]
    y: Int[Array, " N"]
    x_test: Float[Array, "M N_test P"]
    y_test: Int[Array, " N_test"]
    l2: Float[Array, ""]
    minimum: Float[Array, ""]
    embedding: Embedding = eqx.field(static=True)
    loss: losses.Loss = eqx.field(static=True)
    reduction: str = eqx.field(static=True)
    num_features: tuple[int, ...] = eqx.field(static=True)

    @property
    def num_parties(self) -> int:
        """Number of parties, `M`."""
        return self.x.shape[0]

    @property
    def num_samples(self) -> int:
        """Number of training samples, `N`."""
        return self.x.shape[1]

    def start(self, key: Key[Array, ""]) -> Float[Array, "M ..."]:
        """Returns the parties' weights at the start of a run."""
        parties = [
            self.embedding.init(jax.random.fold_in(key, party), held)
            for party, held in enumerate(self.num_features)
        ]
        return jnp.stack(parties).astype(self.x.dtype)

    def head(
        self, bias: Float[Array, " C"] | None, h: Float[Array, "*w M C S"]
    ) -> Float[Array, "*w C S"]:
        """Combines the embeddings of all parties: their sum and a bias (V-13)."""
        total = h.sum(axis=-3)
        return total if bias is None else total + bias[:, None]

    def objective(self, model: Model) -> Float[Array, ""]:
        """Returns F of VAFL's equation (1) on all training samples."""
        weights, bias = model
        h = jax.vmap(self.embedding.apply)(weights, self.x)
        losses_ = losses.per_sample(self.loss, self.head(bias, h), self.y)
        return losses_.mean() + 0.5 * self.l2 * jnp.sum(weights**2)

    def evaluate(self, model: Model, metrics: tuple[str, ...]) -> dict[str, Array]:
        """Returns the asked metrics of a model."""
        weights, bias = model
        h = jax.vmap(self.embedding.apply)(weights, self.x_test)
        logits = self.head(bias, h)
        return measure(self, model, logits, metrics)


def stack(
    x: Float[np.ndarray, "N P_all"], columns: list[Int[np.ndarray, " _"]]
) -> Float[np.ndarray, "M N P"]:
    """Returns each party's columns, padded with zero columns to the widest party."""
    width = max(part.size for part in columns)
    stacked = np.zeros((len(columns), x.shape[0], width), x.dtype)
    for party, part in enumerate(columns):
        stacked[party, :, : part.size] = x[:, part]
    return stacked


def build(
    dataset: Dataset,
    columns: list[Int[np.ndarray, " _"]],
    embedding: Embedding,
    *,
    loss: losses.Loss,
    reduction: str,
    l2: float,
    minimum: float,
    dtype: str,
) -> VerticalProblem:
    """Puts a data set and its division into columns on the device."""
    return VerticalProblem(
        x=jnp.asarray(stack(dataset.x_train, columns), dtype),
        y=jnp.asarray(dataset.y_train),
        x_test=jnp.asarray(stack(dataset.x_test, columns), dtype),
        y_test=jnp.asarray(dataset.y_test),
        l2=jnp.asarray(l2, dtype),
        minimum=jnp.asarray(minimum, dtype),
        embedding=embedding,
        loss=loss,
        reduction=reduction,
        num_features=tuple(int(part.size) for part in columns),
    )
