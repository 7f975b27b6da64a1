"""A vertically divided problem: parties hold columns of all, or of common, samples."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, Key, Num, PyTree

from . import losses
from .data.base import Dataset
from .horizontal import targets
from .models.base import Embedding
from .models.party import PartyNetwork
from .models.server.network import OwnServerNetwork, ServerNetwork

Model = tuple[Float[Array, "M ..."], Float[Array, " P0"] | None]
"""The parties' weights and the server's, None where the server has no model: its bias,
or the weights of its network."""
Server = ServerNetwork | OwnServerNetwork


class VerticalProblem(eqx.Module):
    """Features of all parties, padded with zero columns to the widest, and labels.

    Attributes:
        x: Training features.
        y: Training targets: classes, or numbers of any shape.
        x_test: Test features.
        y_test: Test targets.
        l2: Coefficient of each party's regulariser.
        minimum: Least value of the objective, NaN where no metric needs it.
        embedding: Model that a party applies to its features.
        loss: Loss of a sample, from its logits.
        reduction: Way to combine the losses of a batch, `mean` or `sum`.
        num_features: Number of columns of each party, without padding.
        server: The server's network over the embeddings; None where these are logits,
            which are added up.
    """

    x: Float[Array, "M N P"]
    y: Num[Array, " N *T"]
    x_test: Float[Array, "M N_test P"]
    y_test: Num[Array, " N_test *T"]
    l2: Float[Array, ""]
    minimum: Float[Array, ""]
    embedding: Embedding = eqx.field(static=True)
    loss: losses.Loss = eqx.field(static=True)
    reduction: str = eqx.field(static=True)
    num_features: tuple[int, ...] = eqx.field(static=True)
    server: Server | None = eqx.field(static=True, default=None)

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

    @property
    def num_outputs(self) -> int:
        """Number of logits, `C`."""
        return (self.server or self.embedding).num_outputs

    def start_server(self, key: Key[Array, ""]) -> Float[Array, " P0"]:
        """Returns the server's weights at the start: biases of zero, or a network's."""
        if self.server is None:
            return jnp.zeros(self.num_outputs, self.x.dtype)
        # The keys before this one are the parties'.
        own = jax.random.fold_in(key, self.num_parties)
        return self.server.init(own).astype(self.x.dtype)

    def head(
        self, server: Float[Array, " P0"] | None, h: Float[Array, "M D S"]
    ) -> PyTree:
        """Returns the outputs: the network's, or the embeddings' sum and a bias.

        They are `[C, S]`, but for a custom model as its loss takes them.
        """
        if self.server is None:
            return added(server, h)
        assert server is not None
        return self.server.apply(server, h)

    def batch_loss(
        self, outputs: PyTree, y: Num[Array, " S *L"], present: Bool[Array, " S"]
    ) -> Float[Array, ""]:
        """Returns the loss of a batch's outputs, without the regulariser."""
        each = losses.per_sample(self.loss, outputs, y)
        return losses.reduce(self.reduction, each, present)

    def first(self, count: int) -> "VerticalProblem":
        """Returns the problem of the first training rows alone."""
        few = (self.x[:, :count], self.y[:count])
        return eqx.tree_at(lambda p: (p.x, p.y), self, few)

    def outputs(self, model: Model) -> PyTree:
        """Returns the outputs of all training rows, as `head`."""
        weights, server = model
        return self.head(server, jax.vmap(self.embedding.apply)(weights, self.x))

    def objective(self, model: Model) -> Float[Array, ""]:
        """Returns F of VAFL's equation (1) on all training samples."""
        weights, _ = model
        losses_ = losses.per_sample(self.loss, self.outputs(model), self.y)
        return losses_.mean() + 0.5 * self.l2 * jnp.sum(weights**2)

    def evaluate(self, model: Model, metrics: tuple[str, ...]) -> dict[str, Array]:
        """Returns the requested metrics of a model."""
        weights, server = model
        h = jax.vmap(self.embedding.apply)(weights, self.x_test)
        logits = self.head(server, h)
        return losses.measure(self, model, logits, metrics)


def added(
    bias: Float[Array, " C"] | None, h: Float[Array, "M C S"]
) -> Float[Array, "C S"]:
    """Combines the embeddings of all parties: their sum and a bias (V-13)."""
    total = h.sum(axis=-3)
    return total if bias is None else total + bias[:, None]


def stack(
    x: Float[np.ndarray, "N P_all"],
    columns: list[Int[np.ndarray, " _"]],
    pieces: int = 1,
) -> Float[np.ndarray, "M N P"]:
    """Returns each party's columns, padded with zero columns to the widest party.

    Args:
        x: Features of all parties.
        columns: Columns of each party.
        pieces: Number of equal pieces of a party's columns, such as frames, each of
            which is padded by itself.
    """
    width = max(part.size for part in columns) // pieces
    stacked = np.zeros((len(columns), x.shape[0], pieces, width), x.dtype)
    for party, part in enumerate(columns):
        own = x[:, part].reshape(x.shape[0], pieces, -1)
        stacked[party, :, :, : own.shape[2]] = own
    return stacked.reshape(len(columns), x.shape[0], -1)


def build(
    dataset: Dataset,
    columns: list[Int[np.ndarray, " _"]],
    embedding: Embedding,
    *,
    loss: losses.Loss,
    reduction: str,
    l2: float,
    dtype: str,
    server: Server | None = None,
    pieces: int = 1,
) -> VerticalProblem:
    """Puts a data set and its division into columns on the device."""
    x, x_test = (
        stack(part, columns, pieces) for part in (dataset.x_train, dataset.x_test)
    )
    if isinstance(embedding, PartyNetwork):
        x, x_test = embedding.features(x), embedding.features(x_test)
    return VerticalProblem(
        x=jnp.asarray(x, dtype),
        y=targets(dataset.y_train, dtype),
        x_test=jnp.asarray(x_test, dtype),
        y_test=targets(dataset.y_test, dtype),
        l2=jnp.asarray(l2, dtype),
        minimum=jnp.asarray(jnp.nan, dtype),
        embedding=embedding,
        loss=loss,
        reduction=reduction,
        num_features=tuple(int(part.size) for part in columns),
        server=server,
    )


OTHER, LABELLED = 0, 1
"""Numbers of the two parties."""


class TransferProblem(VerticalProblem):
    """The objective of transfer learning on a vertically divided data set.

    The labelled party uses all training samples for Phi. The losses are taken over the
    samples `common`, which both parties hold.

    Attributes:
        common: Ids of the samples that both hold.
        alpha: Weight of the label loss relative to the alignment loss.
    """

    common: Int[Array, " N_c"] = eqx.field(kw_only=True)
    alpha: Float[Array, ""] = eqx.field(kw_only=True)

    @classmethod
    def of(
        cls, vertical: VerticalProblem, common: Int[Array, " N_c"], alpha: float
    ) -> "TransferProblem":
        """Returns the objective on a vertically divided data set."""
        weight = jnp.asarray(alpha, vertical.x.dtype)
        return cls(**vars(vertical), common=common, alpha=weight)

    def embed(
        self, party: int, weights: Float[Array, " P"], samples: Int[Array, " S"]
    ) -> Float[Array, "H S"]:
        """Returns u of some samples at one party."""
        x = self.x[party].at[samples].get(mode="fill", fill_value=0)
        return self.embedding.apply(weights, x)

    def prototype(self, weights: Float[Array, " P"]) -> Float[Array, " H"]:
        """Returns Phi at some weights of the labelled party."""
        u = self.embedding.apply(weights, self.x[LABELLED])
        signs = (2 * self.y - 1).astype(u.dtype)
        return u @ signs / self.num_samples

    def common_loss(
        self,
        prototype: Float[Array, " H"],
        labelled: Float[Array, "H S"],
        other: Float[Array, "H S"],
        y: Num[Array, " S"],
        present: Bool[Array, " S"],
    ) -> Float[Array, ""]:
        """Returns the loss of common samples, without the regulariser.

        Args:
            prototype: Mean Phi of the labelled party, as `prototype` returns it.
            labelled: Numbers u of the party with labels.
            other: Numbers u of the other party.
            y: Labels, 0 or 1.
            present: Whether a sample is no padding.
        """
        scores = (prototype @ other)[None]
        each = self.alpha * losses.per_sample("taylor", scores, y)
        each = each - (labelled * other).sum(axis=0) / prototype.shape[0]
        return losses.reduce(self.reduction, each, present)

    def objective(self, model: Model) -> Float[Array, ""]:
        """Returns the regularised loss of all common samples."""
        weights, _ = model
        labelled, other = (
            self.embed(party, weights[party], self.common)
            for party in (LABELLED, OTHER)
        )
        y = self.y[self.common]
        phi = self.prototype(weights[LABELLED])
        loss = self.common_loss(phi, labelled, other, y, jnp.ones(y.shape, bool))
        return loss + 0.5 * self.l2 * jnp.sum(weights**2)

    def evaluate(self, model: Model, metrics: tuple[str, ...]) -> dict[str, Array]:
        """Returns the metrics of the other party's scores of the test rows."""
        weights, _ = model
        x = self.x_test[OTHER]
        u = self.embedding.apply(weights[OTHER], x)
        phi = jax.lax.stop_gradient(self.prototype(weights[LABELLED]))
        return losses.measure(self, model, (phi @ u)[None], metrics)
