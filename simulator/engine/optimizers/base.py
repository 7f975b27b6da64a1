"""What all optimisers are to kernels: a direction of a gradient, and a state."""

from abc import abstractmethod
from typing import Any

import equinox as eqx
from jaxtyping import Array, Float, Int

from .arrays import ModelArrays


class UpdateRule(eqx.Module):
    """Makes a direction of a gradient, to be multiplied by a step size."""

    def scaled(self, step_size: Array, count: Int[Array, "*W"]) -> Array:
        """Returns the step size of an update: the one that it is given.

        Args:
            step_size: What multiplies the direction.
            count: Updates that were made.
        """
        return step_size

    @abstractmethod
    def init(self, weights: Float[Array, "..."], arrays: ModelArrays | None) -> Any:
        """Returns the state before the first update of some weights.

        Args:
            weights: An array, or a flat vector of some.
            arrays: Arrays in the vector, if they are known.
        """

    @abstractmethod
    def update(
        self,
        gradient: Float[Array, "..."],
        state: Any,
        weights: Float[Array, "..."],
        count: Int[Array, ""],
        arrays: ModelArrays | None,
    ) -> tuple[Float[Array, "..."], Any]:
        """Returns the direction against which weights move, and the state after it.

        Args:
            gradient: Gradient, as large as the weights; of a server, the difference
                between what a client read and what it made of it.
            state: State before.
            weights: Weights that it moves.
            count: Updates that were made.
            arrays: As in `init`.
        """

    def ahead(
        self, weights: Float[Array, "..."], state: Any, step_size: Float[Array, ""]
    ) -> Float[Array, "..."]:
        """Returns what clients read: the model, or where an optimiser leads it."""
        return weights
