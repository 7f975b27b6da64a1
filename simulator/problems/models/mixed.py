"""Networks that compute in a short type, from weights and to outputs in a long one."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Key

from simulator.problems.models.party import PartyNetwork, hidden_shapes
from simulator.problems.models.shapes import Shapes

SHORT = jnp.bfloat16


class MixedEmbedding(NamedTuple):
    """A party's or a server's network that computes in bfloat16.

    The gradient of the conversion is one, too, so that gradients of weights come in the
    weights' own type.

    Attributes:
        network: The network.
        converts_rows: Whether rows are converted as well; numbers of tokens are not.
    """

    network: Any
    converts_rows: bool = True

    @property
    def num_outputs(self) -> int:
        """Number of outputs for a sample."""
        return self.network.num_outputs

    @property
    def num_weights(self) -> int:
        """Length of the flat vector."""
        return self.network.num_weights

    @property
    def shapes(self) -> Shapes:
        """Shapes of the arrays, where the network says them."""
        return self.network.shapes

    @property
    def hidden_shapes(self) -> tuple[tuple[int, ...], ...]:
        """Shapes of what each hidden layer computes of a sample."""
        return hidden_shapes(self.network)

    def init(self, key: Key[Array, ""], *num_features: int) -> Float[Array, "*P"]:
        """Returns the weights at the start."""
        return self.network.init(key, *num_features)

    def apply(self, weights: Float[Array, "*P"], x: Any, *rest: Any) -> Any:
        """Returns the outputs for some rows, in the type of the weights."""
        return _mixed(self.network.apply, self.converts_rows, weights, x, *rest)


class MixedClassifier(NamedTuple):
    """A model of rows that computes in bfloat16; attributes as of `MixedEmbedding`."""

    network: Any
    converts_rows: bool = True

    @property
    def num_noised(self) -> int:
        """Number of leading weights that noise may be limited to."""
        return self.network.num_noised

    @property
    def num_statistics(self) -> int:
        """None: statistics would be rounded."""
        return 0

    @property
    def takes_key(self) -> bool:
        """Whether training draws random numbers."""
        return getattr(self.network, "takes_key", False)

    @property
    def shapes(self) -> Shapes:
        """Shapes of the arrays, where the network says them."""
        return self.network.shapes

    @property
    def hidden_shapes(self) -> tuple[tuple[int, ...], ...]:
        """Shapes of what each hidden layer computes of a sample."""
        return hidden_shapes(self.network)

    def init(self, key: Key[Array, ""]) -> Float[Array, "..."]:
        """Returns the weights at the start."""
        return self.network.init(key)

    def features(self, x: Float[np.ndarray, "N F"]) -> Float[np.ndarray, "N P"]:
        """Returns the inputs of the model, made of a data set's features."""
        return self.network.features(x)

    def regularised(self) -> Bool[np.ndarray, "..."]:
        """Says which weights are regularised."""
        return self.network.regularised()

    def apply(self, weights: Float[Array, "..."], x: Any, *rest: Any) -> Any:
        """Returns the outputs of some rows, in the type of the weights."""
        return _mixed(self.network.apply, self.converts_rows, weights, x, *rest)

    def train(self, weights: Float[Array, "..."], x: Any, *rest: Any) -> Any:
        """Returns the outputs of a batch in training, and no statistics of it."""
        return _mixed(self.network.train, self.converts_rows, weights, x, *rest)


def mixed(network: Any, *, converts_rows: bool) -> Any:
    """Returns a network that computes in bfloat16.

    Args:
        network: A `Classifier`, an `Embedding` or a server's network.
        converts_rows: Whether rows are converted; those with numbers of tokens are not.
    """
    if isinstance(network, PartyNetwork):
        inner = mixed(network.network, converts_rows=converts_rows)
        return network._replace(network=inner)
    kind = MixedClassifier if hasattr(network, "features") else MixedEmbedding
    return kind(network, converts_rows)


def _mixed(
    call: Callable[..., Any], converts_rows: bool, weights: Any, x: Any, *rest: Any
) -> Any:
    short = _converted((weights, rest), SHORT)
    rows = _converted(x, SHORT) if converts_rows else x
    return _converted(call(short[0], rows, *short[1]), weights.dtype)


def _converted(tree: Any, dtype: Any) -> Any:
    """Returns a tree whose floating numbers have a type."""

    def of(leaf: Any) -> Any:
        floating = jnp.issubdtype(leaf.dtype, jnp.floating)
        return leaf.astype(dtype) if floating else leaf

    return jax.tree.map(of, tree)
