"""Any network as a party's model: for its views, with its width, with noise inside."""

from collections.abc import Sequence
from typing import Any, Literal, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Key

from ...parts.errors import ScenarioError
from .base import Embedding
from .flat import split

Activation = Literal["relu", "tanh"]
ACTIVATIONS = {"relu": jax.nn.relu, "tanh": jnp.tanh}
Noises = Sequence[Float[Array, "..."]]
"""Noise of each hidden layer, samples last; none where the sequence is empty."""


class PartyNetwork(NamedTuple):
    """A network whose outputs, for all views of a party, are the party's message.

    A classifier's last layer gives as many outputs as the server expects and has the
    activation of the others, as in equation 10 of VAFL. The weights of parties are
    stacked, so each has the arrays of the widest party: a narrower party has a network
    of its width in their corner. The rest is zero, and stays so, since the columns are
    zero.

    Attributes:
        network: Network of a view: a `Classifier`, or the `Embedding` of a party.
        width: Number of its outputs.
        views: Number of views, to each of which it is applied.
        activation: Activation of its outputs; None if they are sent as they are.
        narrow: Networks of the narrower parties, by their number of columns.
    """

    network: Any
    width: int
    views: int = 1
    activation: Activation | None = None
    narrow: tuple[tuple[int, Any], ...] = ()

    @property
    def num_outputs(self) -> int:
        """Number of numbers that are sent of a sample, of all views."""
        return self.views * self.width

    @property
    def hidden_shapes(self) -> tuple[tuple[int, ...], ...]:
        """Shapes of each hidden layer's output for a sample, view by view."""
        return tuple((self.views, *shape) for shape in hidden_shapes(self.network))

    def features(self, x: Float[np.ndarray, "M N P"]) -> Float[np.ndarray, "M N Q"]:
        """Returns the network's inputs, made of the features of all parties."""
        if not hasattr(self.network, "features"):
            return x
        rows = x.reshape(x.shape[0] * x.shape[1] * self.views, -1)
        return self.network.features(rows).reshape(*x.shape[:2], -1)

    def init(self, key: Key[Array, ""], num_features: int) -> Float[Array, "*P"]:
        """Returns the weights at the start, of a network as wide as the party."""
        if not hasattr(self.network, "features"):
            # Logits that are added up start at zero; from there the ReLU of a network
            # that takes them would never leave zero.
            init = getattr(self.network, "init_sent", self.network.init)
            return init(key, num_features // self.views)
        own = dict(self.narrow).get(num_features)
        if own is None:
            return self.network.init(key)
        arrays = split(own.init(key), own.shapes)
        placed = [
            jnp.zeros(shape, array.dtype).at[tuple(map(slice, array.shape))].set(array)
            for shape, array in zip(self.network.shapes, arrays, strict=True)
        ]
        return jnp.concatenate([array.reshape(-1) for array in placed])

    def apply(
        self,
        weights: Float[Array, "*P"],
        x: Float[Array, "S F"],
        noise: Noises = (),
        last: Float[Array, "C S"] | None = None,
    ) -> Float[Array, "C S"]:
        """Returns the party's message for some rows, perturbed.

        Args:
            weights: Weights of the network.
            x: Rows: the views, one after the other.
            noise: Noise inside each hidden layer, of `hidden_shapes` and samples.
            last: Noise inside the last activation.

        Source: VAFL, equation 10.
        """
        samples, views, width = x.shape[0], self.views, self.width
        rows = x.reshape(samples * views, -1)
        inner = tuple(_by_row(layer, views) for layer in noise)
        sums = embedded(self.network, weights, rows, inner)
        if last is not None:
            sums = sums + _by_row(last.reshape(views, width, samples), views)
        if self.activation is not None:
            sums = ACTIVATIONS[self.activation](sums)
        if views == 1:
            return sums
        of_views = sums.reshape(width, samples, views).transpose(2, 0, 1)
        return of_views.reshape(views * width, samples)


def hidden_shapes(network: Any) -> tuple[tuple[int, ...], ...]:
    """Returns the shapes of each hidden layer's output for a sample.

    Nothing for a network without a place for noise in its layers.
    """
    return getattr(network, "hidden_shapes", ())


def embedded(
    embedding: Any,
    weights: Float[Array, "*P"],
    x: Float[Array, "S F"],
    noise: Noises = (),
    last: Float[Array, "C S"] | None = None,
) -> Float[Array, "C S"]:
    """Returns the output of any party model for some rows, perturbed."""
    if isinstance(embedding, PartyNetwork):
        return embedding.apply(weights, x, noise, last)
    # A plug-in's network knows no noise.
    h = embedding.apply(weights, x, noise) if noise else embedding.apply(weights, x)
    return h if last is None else h + last


def party_network(
    model: Any, sizes: Sequence[int], *, width: int, views: int, last: bool
) -> Embedding:
    """Builds the network of all parties.

    Raises:
        ScenarioError: The columns do not divide into views, or parties have different
            numbers of them and the network fits one number alone.
    """
    for size in sizes:
        if size % views:
            raise ScenarioError(
                f"problem.server.views must divide the columns of every party, got "
                f"{views} views of {size} columns; change the views or the partition"
            )
    widest = max(sizes)
    network = model.make(width, widest // views, "vertical")
    if "vertical" in model.families:
        return PartyNetwork(network, width, views)
    narrow = []
    for size in sorted({*sizes} - {widest}):
        own = model.make(width, size // views, "vertical")
        shapes = [getattr(each, "shapes", ((),)) for each in (own, network)]
        if shapes == [((),), ((),)] or not _fits(*shapes):
            raise ScenarioError(
                f"problem.partition must give all parties as many columns for the "
                f"model {model.kind!r}, got {size} and {widest}; take dense or lstm, "
                "or other parties"
            )
        narrow.append((size, own))
    activation = model.activation_of_party if last else None
    return PartyNetwork(network, width, views, activation, tuple(narrow))


def _fits(own: Sequence[tuple[int, ...]], whole: Sequence[tuple[int, ...]]) -> bool:
    """Says whether arrays differ in nothing but the columns of the first one."""
    first, other = own[0], whole[0]
    return own[1:] == whole[1:] and first[:-1] == other[:-1] and first[-1] <= other[-1]


def _by_row(noise: Float[Array, "V *n S"], views: int) -> Float[Array, "*n SV"]:
    """Returns noise of a party's views in the order of a network's rows."""
    if views == 1:
        return noise[0]
    last = jnp.moveaxis(noise, 0, -1)
    return last.reshape(*last.shape[:-2], -1)
