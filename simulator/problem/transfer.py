"""Federated transfer learning: two parties that have only some samples in common.

The last party has labels and features of its own, the other features only. The network
of each computes h numbers of a sample, u. The labelled party knows of the classes by
Phi, the mean of its u times the labels +-1; the other's score of a sample is Phi . u.

Source: FedBCD, section 7; F-15 in evidence/pages/decisions.md.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, Key, Num

from . import losses
from .vertical import Model, VerticalProblem

OTHER, LABELLED = 0, 1
"""Numbers of the two parties."""


class TransferProblem(eqx.Module):
    """The objective of transfer learning on a vertically divided data set.

    The labelled party uses all training samples for Phi. The losses are taken over the
    samples `common`, which both parties hold.

    Attributes:
        vertical: Features, labels, the parties' networks and the regulariser.
        common: Ids of the samples that both hold.
        alpha: Weight of the label loss against that of alignment.
    """

    vertical: VerticalProblem
    common: Int[Array, " N_c"]
    alpha: Float[Array, ""]

    @property
    def num_parties(self) -> int:
        """Number of parties, 2."""
        return 2

    @property
    def num_samples(self) -> int:
        """Number of training samples, `N`."""
        return self.vertical.num_samples

    @property
    def y_test(self) -> Num[Array, " N_test *T"]:
        """Labels of the test rows."""
        return self.vertical.y_test

    @property
    def loss(self) -> losses.Loss:
        """Loss of a sample from its score."""
        return self.vertical.loss

    @property
    def minimum(self) -> Float[Array, ""]:
        """Least value of the objective: NaN, for it is not known."""
        return self.vertical.minimum

    def start(self, key: Key[Array, ""]) -> Float[Array, "M P"]:
        """Returns the parties' weights at the start of a run."""
        return self.vertical.start(key)

    def embed(
        self, party: int, weights: Float[Array, " P"], samples: Int[Array, " S"]
    ) -> Float[Array, "H S"]:
        """Returns u of some samples at one party."""
        x = self.vertical.x[party].at[samples].get(mode="fill", fill_value=0)
        return self.vertical.embedding.apply(weights, x)

    def prototype(self, weights: Float[Array, " P"]) -> Float[Array, " H"]:
        """Returns Phi at some weights of the labelled party."""
        u = self.vertical.embedding.apply(weights, self.vertical.x[LABELLED])
        signs = (2 * self.vertical.y - 1).astype(u.dtype)
        return u @ signs / self.num_samples

    def batch_loss(
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
        return losses.reduce(self.vertical.reduction, each, present)

    def objective(self, model: Model) -> Float[Array, ""]:
        """Returns the regularised loss of all common samples."""
        weights, _ = model
        labelled, other = (
            self.embed(party, weights[party], self.common)
            for party in (LABELLED, OTHER)
        )
        y = self.vertical.y[self.common]
        phi = self.prototype(weights[LABELLED])
        loss = self.batch_loss(phi, labelled, other, y, jnp.ones(y.shape, bool))
        return loss + 0.5 * self.vertical.l2 * jnp.sum(weights**2)

    def evaluate(self, model: Model, metrics: tuple[str, ...]) -> dict[str, Array]:
        """Returns the asked metrics of the other party's scores of the test rows."""
        weights, _ = model
        x = self.vertical.x_test[OTHER]
        u = self.vertical.embedding.apply(weights[OTHER], x)
        phi = jax.lax.stop_gradient(self.prototype(weights[LABELLED]))
        return losses.measure(self, model, (phi @ u)[None], metrics)
