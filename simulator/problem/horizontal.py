"""A horizontally divided problem: every client holds all columns of some samples."""

import math

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Key, Num, PyTree

from . import losses
from .data.base import Dataset
from .models.base import Classifier
from .models.linear.network import LinearClassifier


class HorizontalProblem(eqx.Module):
    """Features, labels and a model of all clients.

    Attributes:
        x: Training features of all clients, as inputs of the model.
        y: Training targets of any shape: classes, one per row or one for each of its
            `L` frames, or numbers.
        x_test: Test features.
        y_test: Test targets; of classes of frames frame after frame.
        l2: Coefficient of the regulariser of all weights but biases.
        minimum: Least value of the objective, NaN where no metric needs it.
        model: Model to learn.
        loss: Loss of a sample.
        reduction: Way to combine the losses of a batch, `mean` or `sum`.
        num_clients: Number of clients that share the samples.
        spare: Number of columns of zeros at the end of `x`, by which rows are aligned.
        answer: Frames at the end of a row that are its answer, if any are.
    """

    x: Float[Array, "N P"]
    y: Num[Array, " N *L"]
    x_test: Float[Array, "N_test P"]
    y_test: Num[Array, " labels *T"]
    l2: Float[Array, ""]
    minimum: Float[Array, ""]
    model: Classifier = eqx.field(static=True)
    loss: losses.Loss = eqx.field(static=True)
    reduction: str = eqx.field(static=True)
    num_clients: int = eqx.field(static=True)
    spare: int = eqx.field(static=True, default=0)
    answer: int = eqx.field(static=True, default=0)

    @property
    def takes_key(self) -> bool:
        """Whether training draws random numbers in the model, as dropout does."""
        return getattr(self.model, "takes_key", False)

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
        y: Num[Array, " S *L"],
        present: Bool[Array, " S"],
        key: Key[Array, ""] | None = None,
    ) -> Float[Array, ""]:
        """Returns the loss of one batch, without the regulariser.

        Where rows have frames, the mean is one over all frames.

        Args:
            weights: Weights of the model.
            x: Features of the batch.
            y: Targets.
            present: Whether a row is no padding.
            key: Random key of training, such as dropout; None for a model without any,
                and where the model is only measured.
        """
        if key is None:
            return self._reduced(self.model.apply(weights, x), y, present)
        return self.training_loss(weights, x, y, present, key)[0]

    def training_loss(
        self,
        weights: Float[Array, "..."],
        x: Float[Array, "S P"],
        y: Num[Array, " S *L"],
        present: Bool[Array, " S"],
        key: Key[Array, ""] | None = None,
    ) -> tuple[Float[Array, ""], Float[Array, " statistics"]]:
        """Returns the loss that training differentiates, and statistics of the batch.

        It differs from `batch_loss` where layers are normalised by the batch.
        """
        drawn = {} if key is None else {"key": key}
        outputs, statistics = self.model.train(weights, x, **drawn)
        return self._reduced(outputs, y, present), statistics

    def batch_losses(
        self,
        weights: Float[Array, "..."],
        x: Float[Array, "S P"],
        y: Num[Array, " S *L"],
        present: Bool[Array, " S"],
        number: int,
    ) -> Float[Array, " number"]:
        """Returns the losses of some batches of one size, as `batch_loss` does.

        Args:
            weights: Weights of a model that draws and measures nothing in training.
            x: Features of all batches, one after the other.
            y: Targets.
            present: Whether a row is no padding.
            number: Number of batches.
        """
        outputs = self.model.apply(weights, x)
        each, present = self._each(outputs, y, present)
        batches = each.reshape(number, -1), present.reshape(number, -1)
        return losses.reduce(self.reduction, *batches)

    def _reduced(
        self,
        outputs: PyTree,
        y: Num[Array, " S *L"],
        present: Bool[Array, " S"],
    ) -> Float[Array, ""]:
        return losses.reduce(self.reduction, *self._each(outputs, y, present))

    def _each(
        self, outputs: PyTree, y: Num[Array, " S *L"], present: Bool[Array, " S"]
    ) -> tuple[Float[Array, " samples"], Bool[Array, " samples"]]:
        """Returns the loss of each row or frame, and whether it is no padding."""
        if losses.by_position(self.loss):
            y, present = in_frames(y, present)
        return losses.per_sample(self.loss, outputs, y), present

    def first(self, count: int) -> "HorizontalProblem":
        """Returns the problem of the first training rows alone."""
        return eqx.tree_at(lambda p: (p.x, p.y), self, (self.x[:count], self.y[:count]))

    def outputs(self, weights: Float[Array, "..."]) -> PyTree:
        """Returns the model's outputs of all training rows."""
        return self.model.apply(weights, self.x)

    def objective(self, weights: Float[Array, "..."]) -> Float[Array, ""]:
        """Returns the regularised mean loss of all training samples."""
        outputs = self.outputs(weights)
        y = self.y.reshape(-1) if losses.by_position(self.loss) else self.y
        each = losses.per_sample(self.loss, outputs, y)
        kept = jnp.where(self.model.regularised(), weights, 0)
        return each.mean() + 0.5 * self.l2 * jnp.sum(kept**2)

    def evaluate(
        self, weights: Float[Array, "..."], metrics: tuple[str, ...]
    ) -> dict[str, Array]:
        """Returns the requested metrics of a model."""
        return losses.measure(
            self, weights, self.model.apply(weights, self.x_test), metrics
        )


def in_frames(
    y: Num[Array, " S *L"], present: Bool[Array, " S"]
) -> tuple[Num[Array, " labels"], Bool[Array, " labels"]]:
    """Returns the label of every frame, and whether its row is no padding."""
    if y.ndim == 1:
        return y, present
    return y.reshape(-1), jnp.repeat(present, math.prod(y.shape[1:]))


def targets(y: Num[np.ndarray, " N *L"], dtype: str) -> Num[Array, " N *L"]:
    """Returns targets on the device: whole numbers as they are, others in `dtype`."""
    return jnp.asarray(y, dtype if y.dtype.kind == "f" else None)


def build(
    dataset: Dataset,
    model: Classifier,
    num_clients: int,
    *,
    loss: losses.Loss,
    reduction: str,
    l2: float,
    dtype: str,
) -> HorizontalProblem:
    """Puts a data set on the device, as inputs of a model."""
    y_test = dataset.y_test
    if losses.by_position(loss):
        y_test = y_test.reshape(-1)
    spare = model.spare if isinstance(model, LinearClassifier) else 0

    def inputs(x: Float[np.ndarray, "N F"]) -> Float[Array, "N P"]:
        return jnp.asarray(np.pad(model.features(x), ((0, 0), (0, spare))), dtype)

    return HorizontalProblem(
        x=inputs(dataset.x_train),
        y=targets(dataset.y_train, dtype),
        x_test=inputs(dataset.x_test),
        y_test=targets(y_test, dtype),
        l2=jnp.asarray(l2, dtype),
        minimum=jnp.asarray(jnp.nan, dtype),
        model=model,
        loss=loss,
        reduction=reduction,
        num_clients=num_clients,
        spare=spare,
        answer=dataset.answer,
    )
