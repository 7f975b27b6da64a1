"""A model of a user's own as the server's network, over what the parties send."""

from dataclasses import dataclass
from typing import Any

import jax.numpy as jnp
from jaxtyping import Array, Float

from ...config.functions import UserFunction
from ...data.base import Field
from ...data.outputs import OutputForm
from ..around import Around
from ..python.network import python_network


@dataclass(frozen=True)
class OwnServerNetwork(Around):
    """A model whose rows are the vectors of all parties: `[M, width]`, or views too."""

    def apply(self, weights: Float[Array, " P0"], h: Float[Array, "M D S"]) -> Any:
        """Returns the outputs of some samples, as the loss takes them.

        Args:
            weights: Flat vector.
            h: What each party sent: the vectors of its views, one after the other.
        """
        rows = jnp.moveaxis(h, -1, 0).reshape(h.shape[-1], -1)
        return self.network.apply(weights, rows)


def own_network(named: UserFunction, form: OutputForm, sent: Field) -> OwnServerNetwork:
    """Returns the server's network that a scenario names.

    Args:
        named: Name of the model.
        form: Outputs that the loss takes.
        sent: What the parties send of a sample.

    Raises:
        ScenarioError: There is no such model, it cannot be used here, or it draws
            random numbers or keeps statistics of batches.
    """
    network = python_network(named, form, (sent,))
    if network.num_statistics or network.takes_key:
        what = "statistics of batches" if network.num_statistics else "dropout"
        raise named.refused(
            f"must be without {what}, for the server answers one query again and "
            f"again, got {named}; leave it out"
        )
    return OwnServerNetwork(network)
