"""Networks that compute in a short type, from weights and to outputs in a long one."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Key

from .parts import Shapes
from .party import PartyNetwork, hidden_shapes


@dataclass(frozen=True)
class Around:
    """A network in the place of another: what is asked of it, the inner one answers.

    Attributes:
        network: The inner network.
    """

    network: Any

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
        """Shapes of the arrays in the vector, where the network says them."""
        return self.network.shapes

    def init(self, key: Key[Array, ""], *num_features: int) -> Float[Array, "*P"]:
        """Returns the weights at the start."""
        return self.network.init(key, *num_features)


SHORT = jnp.bfloat16


@dataclass(frozen=True)
class MixedEmbedding(Around):
    """A party's or a server's network that computes in bfloat16.

    The gradient of the conversion is one, too, so that gradients of weights come in the
    weights' own type.

    Attributes:
        converts_rows: Whether rows are converted as well; numbers of tokens are not.
    """

    converts_rows: bool

    @property
    def hidden_shapes(self) -> tuple[tuple[int, ...], ...]:
        """Shapes of what each hidden layer computes of a sample."""
        return hidden_shapes(self.network)

    def apply(self, weights: Float[Array, "..."], x: Any, *rest: Any) -> Any:
        """Returns the outputs for some rows, in the type of the weights."""
        return self._mixed(self.network.apply, weights, x, *rest)

    def _mixed(self, call: Callable[..., Any], weights: Any, x: Any, *rest: Any) -> Any:
        short = _converted((weights, rest), SHORT)
        rows = _converted(x, SHORT) if self.converts_rows else x
        return _converted(call(short[0], rows, *short[1]), weights.dtype)


class MixedClassifier(MixedEmbedding):
    """A model of rows that computes in bfloat16."""

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

    def features(self, x: Float[np.ndarray, "N F"]) -> Float[np.ndarray, "N P"]:
        """Returns the inputs of the model, made of a data set's features."""
        return self.network.features(x)

    def regularised(self) -> Bool[np.ndarray, "..."]:
        """Says which weights are regularised."""
        return self.network.regularised()

    def train(self, weights: Float[Array, "..."], x: Any, *rest: Any) -> Any:
        """Returns the outputs of a batch in training, and no statistics of it."""
        return self._mixed(self.network.train, weights, x, *rest)


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


def _converted(tree: Any, dtype: Any) -> Any:
    """Returns a tree whose floating numbers have a type."""

    def of(leaf: Any) -> Any:
        floating = jnp.issubdtype(leaf.dtype, jnp.floating)
        return leaf.astype(dtype) if floating else leaf

    return jax.tree.map(of, tree)
