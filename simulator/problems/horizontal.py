"""A horizontally divided problem: every client holds all columns of some samples."""

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, Key

from simulator.problems import losses
from simulator.problems.data.base import Dataset
from simulator.problems.metrics import measure
from simulator.problems.models.base import Classifier
from simulator.problems.models.linear.network import LinearClassifier


class HorizontalProblem(eqx.Module):
    """Features, labels and a model of all clients.

    Attributes:
        x: Training features of all clients, as inputs of the model.
        y: Training labels: one a row, or one for each of its `L` frames.
        x_test: Test features.
        y_test: Test labels, frame after frame.
        l2: Coefficient of the regulariser of all weights but biases.
        minimum: Least value of the objective, NaN where no metric needs it.
        model: Model to learn.
        loss: Loss of a sample.
        reduction: Way to combine the losses of a batch, `mean` or `sum`.
        num_clients: Number of clients that share the samples.
        spare: Number of columns of zeros at the end of `x`, by which rows are aligned.
    """

    x: Float[Array, "N P"]
    y: Int[Array, " N *L"]
    x_test: Float[Array, "N_test P"]
    y_test: Int[Array, " labels"]
    l2: Float[Array, ""]
    minimum: Float[Array, ""]
    model: Classifier = eqx.field(static=True)
    loss: losses.Loss = eqx.field(static=True)
    reduction: str = eqx.field(static=True)
    num_clients: int = eqx.field(static=True)
    spare: int = eqx.field(static=True, default=0)

    def start(self, key: Key[Array, ""]) -> Float[Array, "..."]:
        """Returns the weights at the start of a run, in the problem's precision."""
        return self.model.init(key).astype(self.x.dtype)

    def penalised(self, weights: Float[Array, "*w"]) -> Float[Array, "*w"]:
        """Returns the regulariser's gradient."""
        return self.l2 * jnp.where(self.model.regularised(), weights, 0)

    def registers(
        self, num_registers: int, weights: Float[Array, "..."]
    ) -> Float[Array, "R ..."]:
        """Returns registers with some weights in the first, as wide as `x`.

        A model may be applied to weights of either width: wide ones are faster.
        """
        *rows, columns = weights.shape
        shape = (num_registers, *rows, columns + self.spare)
        at_first = jnp.index_exp[0, ..., :columns]
        return jnp.zeros(shape, weights.dtype).at[at_first].set(weights)

    def narrowed(self, weights: Float[Array, "..."]) -> Float[Array, "..."]:
        """Returns weights without those of spare columns, if they have any."""
        return weights[..., : self.x.shape[-1] - self.spare] if self.spare else weights

    def batch_loss(
        self,
        weights: Float[Array, "..."],
        x: Float[Array, "S P"],
        y: Int[Array, " S *L"],
        present: Bool[Array, " S"],
    ) -> Float[Array, ""]:
        """Returns the loss of one batch, without the regulariser.

        Where rows have frames, the mean is one over all frames.
        """
        return self._reduced(self.model.apply(weights, x), y, present)

    def training_loss(
        self,
        weights: Float[Array, "..."],
        x: Float[Array, "S P"],
        y: Int[Array, " S *L"],
        present: Bool[Array, " S"],
    ) -> tuple[Float[Array, ""], Float[Array, " statistics"]]:
        """Returns the loss that training differentiates, and statistics of the batch.

        It differs from `batch_loss` where layers are normalised by the batch.
        """
        logits, statistics = self.model.train(weights, x)
        return self._reduced(logits, y, present), statistics

    def _reduced(
        self,
        logits: Float[Array, "C labels"],
        y: Int[Array, " S *L"],
        present: Bool[Array, " S"],
    ) -> Float[Array, ""]:
        y, present = in_frames(y, present)
        each = losses.per_sample(self.loss, logits, y)
        return losses.reduce(self.reduction, each, present)

    def objective(self, weights: Float[Array, "..."]) -> Float[Array, ""]:
        """Returns the regularised mean loss of all training samples."""
        logits = self.model.apply(weights, self.x)
        each = losses.per_sample(self.loss, logits, self.y.reshape(-1))
        kept = jnp.where(self.model.regularised(), weights, 0)
        return each.mean() + 0.5 * self.l2 * jnp.sum(kept**2)

    def evaluate(
        self, weights: Float[Array, "..."], metrics: tuple[str, ...]
    ) -> dict[str, Array]:
        """Returns the asked metrics of a model."""
        return measure(self, weights, self.model.apply(weights, self.x_test), metrics)


def in_frames(
    y: Int[Array, " S *L"], present: Bool[Array, " S"]
) -> tuple[Int[Array, " labels"], Bool[Array, " labels"]]:
    """Returns the label of every frame, and whether its row is no padding."""
    if y.ndim == 1:
        return y, present
    return y.reshape(-1), jnp.repeat(present, y.shape[1])


def build(
    dataset: Dataset,
    model: Classifier,
    num_clients: int,
    *,
    loss: losses.Loss,
    reduction: str,
    l2: float,
    minimum: float,
    dtype: str,
) -> HorizontalProblem:
    """Puts a data set on the device, as inputs of a model."""
    spare = model.spare if isinstance(model, LinearClassifier) else 0

    def inputs(x: Float[np.ndarray, "N F"]) -> Float[Array, "N P"]:
        return jnp.asarray(np.pad(model.features(x), ((0, 0), (0, spare))), dtype)

    return HorizontalProblem(
        x=inputs(dataset.x_train),
        y=jnp.asarray(dataset.y_train),
        x_test=inputs(dataset.x_test),
        y_test=jnp.asarray(dataset.y_test.reshape(-1)),
        l2=jnp.asarray(l2, dtype),
        minimum=jnp.asarray(minimum, dtype),
        model=model,
        loss=loss,
        reduction=reduction,
        num_clients=num_clients,
        spare=spare,
    )
