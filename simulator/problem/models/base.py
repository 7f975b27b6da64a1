"""Interfaces of networks: a classifier of rows, and the embedding of a party."""

from typing import Protocol, runtime_checkable

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Key

STATISTICS_KEPT = 0.9
"""Part of running statistics that a step keeps; the rest is the batch's."""


@runtime_checkable
class Classifier(Protocol):
    """A model of a horizontally divided problem: one array of weights, and logits.

    One array is faster than a tree of them, and its copies are registers. Where rows
    have frames, logits are of all frames of the first row, then of the second's.
    """

    @property
    def num_noised(self) -> int:
        """Number of leading weights that noise may be limited to."""
        ...

    @property
    def num_statistics(self) -> int:
        """Number of trailing weights that are measured, not learned."""
        ...

    def init(self, key: Key[Array, ""]) -> Float[Array, "..."]:
        """Returns the weights at the start."""
        ...

    def features(self, x: Float[np.ndarray, "N F"]) -> Float[np.ndarray, "N P"]:
        """Returns the inputs of the model, made of a data set's features."""
        ...

    def apply(
        self, weights: Float[Array, "..."], x: Float[Array, "S P"]
    ) -> Float[Array, "C S"]:
        """Returns the logits of some rows; measured numbers are used unchanged."""
        ...

    def train(
        self,
        weights: Float[Array, "..."],
        x: Float[Array, "S P"],
        key: Key[Array, ""] | None = None,
    ) -> tuple[Float[Array, "C S"], Float[Array, " Q"]]:
        """Returns the logits of a batch, and its measured numbers (often none).

        A model gets a key only if it `takes_key`, for its draws.
        """
        ...

    def regularised(self) -> Bool[np.ndarray, "..."]:
        """Returns which weights are regularised: all but biases; broadcasts to them."""
        ...


class Plain:
    """A classifier that takes features as they are, and measures nothing of a batch."""

    num_statistics = 0

    def features(self, x: Float[np.ndarray, "N F"]) -> Float[np.ndarray, "N P"]:
        """Returns the features as they are."""
        return x

    def apply(
        self, weights: Float[Array, "..."], x: Float[Array, "S P"]
    ) -> Float[Array, "C A"]:
        """Returns the logits of some rows."""
        raise NotImplementedError

    def train(
        self,
        weights: Float[Array, "..."],
        x: Float[Array, "S P"],
        key: Key[Array, ""] | None = None,
    ) -> tuple[Float[Array, "C A"], Float[Array, " 0"]]:
        """Returns the logits of a batch, and no statistics of it."""
        return self.apply(weights, x), jnp.zeros(0, weights.dtype)


@runtime_checkable
class Embedding(Protocol):
    """A party's model."""

    @property
    def num_outputs(self) -> int:
        """Number of outputs for a sample, `C`."""
        ...

    def init(self, key: Key[Array, ""], num_features: int) -> Float[Array, "*P"]:
        """Returns the weights at the start.

        Args:
            key: Key of the party.
            num_features: Number of columns that the party holds, without padding.
        """
        ...

    def apply(
        self, weights: Float[Array, "*P"], x: Float[Array, "S F"]
    ) -> Float[Array, "C S"]:
        """Returns the outputs for some rows."""
        ...
