"""What a network must offer: a classifier of rows, or the embedding of a party."""

from typing import Protocol, runtime_checkable

import numpy as np
from jaxtyping import Array, Bool, Float, Key


@runtime_checkable
class Classifier(Protocol):
    """A model of a horizontally divided problem: one array of weights, and logits.

    One array is faster than a tree of them, and its copies are registers. Where rows
    have frames, logits are of all frames of the first row, then of the second's.
    """

    @property
    def num_noised(self) -> int:
        """Numbers at the weights' beginning that noise may be limited to."""
        ...

    @property
    def num_statistics(self) -> int:
        """Numbers at the weights' end that are measured, not learned."""
        ...

    def init(self, key: Key[Array, ""]) -> Float[Array, "..."]:
        """Returns the weights at the start."""
        ...

    def features(self, x: Float[np.ndarray, "N F"]) -> Float[np.ndarray, "N P"]:
        """Returns what the model is applied to, made of a data set's features."""
        ...

    def apply(
        self, weights: Float[Array, "..."], x: Float[Array, "S P"]
    ) -> Float[Array, "C S"]:
        """Returns the logits of some rows; measured numbers are taken as they stand."""
        ...

    def train(
        self, weights: Float[Array, "..."], x: Float[Array, "S P"]
    ) -> tuple[Float[Array, "C S"], Float[Array, " Q"]]:
        """Returns the logits of a batch, and what is measured of it (often nothing)."""
        ...

    def regularised(self) -> Bool[np.ndarray, "..."]:
        """Says which weights are regularised: all but biases; broadcasts to them."""
        ...


@runtime_checkable
class Embedding(Protocol):
    """A party's model."""

    @property
    def num_outputs(self) -> int:
        """Numbers that it makes of a sample, `C`."""
        ...

    def init(self, key: Key[Array, ""], num_features: int) -> Float[Array, "*P"]:
        """Returns the weights at the start.

        Args:
            key: of the party.
            num_features: columns that it really holds.
        """
        ...

    def apply(
        self, weights: Float[Array, "*P"], x: Float[Array, "S F"]
    ) -> Float[Array, "C S"]:
        """Returns the outputs for some rows."""
        ...
