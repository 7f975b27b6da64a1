"""Linear models. Weights are `[outputs, features]`: twice as fast as the transpose."""

import math
from dataclasses import dataclass
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Key

from ..base import Plain
from ..flat import drawn

ALIGNED = 16
"""Numbers of float32 in 64 bytes: a cache line, and the longest vector."""
WIDE = 256
"""Least number of features for which it pays to align rows."""


class LinearEmbedding(NamedTuple):
    """Embeds rows by `w @ x`; starts at zero.

    Attributes:
        num_outputs: Width of the embedding, `C`.
        num_features: Number of columns, padded to the widest party, `P`.
    """

    num_outputs: int
    num_features: int

    def init(self, key: Key[Array, ""], num_features: int) -> Float[Array, "C P"]:
        """Returns zeros."""
        return jnp.zeros((self.num_outputs, self.num_features))

    def init_sent(self, key: Key[Array, ""], num_features: int) -> Float[Array, "C P"]:
        """Draws all as in PyTorch, for outputs that a server's network takes.

        The law is uniform within ±1/sqrt(columns that the party holds).
        """
        held = np.arange(self.num_features) < num_features
        shape = (self.num_outputs, self.num_features)
        limit = np.where(held, 1 / math.sqrt(num_features), 0.0)
        return drawn(key, [shape], [limit]).reshape(shape)

    def apply(
        self, weights: Float[Array, "C P"], x: Float[Array, "S P"]
    ) -> Float[Array, "C S"]:
        """Returns the embeddings of some rows."""
        return weights @ x.T


@dataclass(frozen=True)
class LinearClassifier(Plain):
    """Logits `w @ x` of features and a last feature of one, whose weight is the bias.

    One flat matrix is faster than a matrix and a vector. Starts at zero.

    Attributes:
        num_outputs: Number of outputs, `C`.
        num_features: Number of features, without the last one.
    """

    num_outputs: int
    num_features: int

    @property
    def num_noised(self) -> int:
        """Number of all weights: there is one layer."""
        return self.num_outputs * (self.num_features + 1)

    @property
    def spare(self) -> int:
        """Number of columns of zeros that align the features of a sample."""
        columns = self.num_features + 1
        return -columns % ALIGNED if columns >= WIDE else 0

    def init(self, key: Key[Array, ""]) -> Float[Array, "C P"]:
        """Returns zeros."""
        return jnp.zeros((self.num_outputs, self.num_features + 1))

    def features(self, x: Float[np.ndarray, "N F"]) -> Float[np.ndarray, "N P"]:
        """Returns the features with a last column of ones."""
        return np.concatenate([x, np.ones((x.shape[0], 1), x.dtype)], axis=1)

    def apply(
        self, weights: Float[Array, "C P"], x: Float[Array, "S Q"]
    ) -> Float[Array, "C S"]:
        """Returns the logits of some rows, whose last columns may be spare."""
        return weights @ x[:, : weights.shape[1]].T

    def regularised(self) -> Bool[np.ndarray, " P"]:
        """Returns whether the weights of each column are regularised."""
        return np.arange(self.num_features + 1) < self.num_features
