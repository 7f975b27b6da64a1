"""A decoder-only transformer, whose weights are one flat vector."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Key

from ....problem.models.flat import FlatNetwork
from ....problem.models.parts import Shapes, size
from .part import Transformer

SMALL = 1e-5
"""Keeps the root of a variance from zero."""
DEVIATION = 0.02
"""Standard deviation of the weights at the start."""
OF_LAYER = 8
"""Number of arrays of a layer."""


@dataclass(frozen=True)
class TransformerNetwork(FlatNetwork):
    """Embeddings, layers of causal attention and a perceptron, and logits; per token.

    Attributes:
        config: Options: layers, heads, width.
        num_outputs: Number of logits of a token, `C`.
        num_features: Number of tokens of a row, `L`.
        last: Whether only the last token of a row has logits.

    Source: as `Transformer`.
    """

    config: Transformer
    num_outputs: int
    num_features: int
    last: bool = False

    @property
    def shapes(self) -> Shapes:
        return self.config.shapes(self.num_features, self.num_outputs)

    @property
    def hidden_matrices(self) -> tuple[bool, ...]:
        """Whether each array is a matrix of attention or of a perceptron."""
        end = 2 + OF_LAYER * self.config.layers
        return tuple(
            2 <= n < end and len(shape) == 2 for n, shape in enumerate(self.shapes)
        )

    @property
    def num_noised(self) -> int:
        """Number of the embeddings' weights, of tokens and positions."""
        return size(self.shapes[:2])

    def init(self, key: Key[Array, ""]) -> Float[Array, " P"]:
        """Draws matrices normally with deviation 0.02; gains are 1.

        The last matrix of attention and of each perceptron, whose outputs are added up,
        has a deviation less by the root of twice the number of layers. Values are
        single precision in all runs.

        Source: Radford et al. (2019), section 2.3; 0.02: their published code.
        """
        added = DEVIATION / math.sqrt(2 * self.config.layers)
        deviations = [DEVIATION if len(shape) > 1 else 0.0 for shape in self.shapes]
        for layer in range(self.config.layers):
            first = 2 + OF_LAYER * layer
            deviations[first + 4] = deviations[first + 7] = added
        sizes = [math.prod(shape) for shape in self.shapes]
        wide = np.repeat(np.array(deviations, np.float32), sizes)
        gains = np.repeat([np.float32(len(shape) == 1) for shape in self.shapes], sizes)
        drawn = jax.random.normal(key, wide.shape, jnp.float32)
        return jnp.asarray(wide) * drawn + gains

    def _outputs(
        self,
        parts: Sequence[Float[Array, "..."]],
        x: Float[Array, "S L"],
        noise: Sequence[Float[Array, "..."]] = (),
    ) -> Float[Array, "C SL"]:
        """Returns the logits after all tokens of the first row, then of the second, ...

        After the last token of each row alone, `[C, S]`, if `last` says so. Tokens are
        given by their numbers.
        """
        assert not noise  # it says of no layer what it computes
        embedding, positions = parts[:2]
        # A product, since the gradient of a look-up would add rows one by one.
        tokens, dtype = x.astype(jnp.int32), embedding.dtype
        which = jax.nn.one_hot(tokens, len(embedding), dtype=dtype)
        hidden = which @ embedding + positions[None]
        for layer in range(self.config.layers):
            first, *attention, second, enter, leave = parts[2 + OF_LAYER * layer :][
                :OF_LAYER
            ]
            hidden = hidden + self._attention(normalised(hidden, first), attention)
            units = jax.nn.gelu(normalised(hidden, second) @ enter.T)
            hidden = hidden + units @ leave.T
        if self.last:
            hidden = hidden[:, -1:]
        last = 2 + OF_LAYER * self.config.layers
        hidden = normalised(hidden, parts[last]).reshape(-1, self.config.width)
        return (parts[-1] if len(parts) > last + 1 else embedding) @ hidden.T

    def _attention(
        self, x: Float[Array, "S L D"], matrices: Sequence[Float[Array, "D D"]]
    ) -> Float[Array, "S L D"]:
        *inner, leave = matrices
        S, L, width = x.shape
        heads = (S, L, self.config.heads, width // self.config.heads)
        query, key, value = (
            jnp.reshape(part, heads)
            for part in jnp.split(x @ jnp.concatenate(inner).T, 3, axis=-1)
        )
        score = jnp.einsum("slhe,smhe->shlm", query, key) / math.sqrt(heads[-1])
        earlier = np.tril(np.ones((1, 1, L, L), bool))
        share = jax.nn.softmax(jnp.where(earlier, score, -jnp.inf))
        taken = jnp.einsum("shlm,smhe->slhe", share, value)
        return taken.reshape(x.shape) @ leave.T


def normalised(
    x: Float[Array, "S L D"], gain: Float[Array, " D"]
) -> Float[Array, "S L D"]:
    """Returns each token's numbers with mean 0 and variance 1, times gains.

    Source: Ba, Kiros and Hinton, Layer Normalization (2016).
    """
    centred = x - x.mean(axis=-1, keepdims=True)
    variance = jnp.mean(centred**2, axis=-1, keepdims=True)
    return centred * jax.lax.rsqrt(variance + SMALL) * gain[None, None]
