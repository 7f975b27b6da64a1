"""A model without a network: initial weights, and no outputs."""

from dataclasses import dataclass
from functools import lru_cache
from typing import NoReturn

import jax
import numpy as np
from jaxtyping import Array, Bool, Float, Key
from numpy.typing import ArrayLike

from ....parts import functions
from ....parts.errors import ScenarioError
from ....parts.functions import UserFunction
from ....problem.models.base import Plain


@dataclass(frozen=True)
class VectorNetwork(Plain):
    """Weights of a model that is the user's alone.

    Attributes:
        named: Name of the weights.
        size: Number of them, `P`.
    """

    named: UserFunction
    size: int

    @property
    def num_noised(self) -> int:
        """All weights: no layer is known to be the first."""
        return self.size

    def init(self, key: Key[Array, ""]) -> Float[Array, " P"]:
        """Returns the weights at the start, which Python makes."""
        dtype = jax.dtypes.canonicalize_dtype(float)

        def made(numbers: ArrayLike) -> Float[np.ndarray, " P"]:
            return start(self.named, int(np.asarray(numbers)[-1])).astype(dtype)

        shape = jax.ShapeDtypeStruct((self.size,), dtype)
        return jax.pure_callback(made, shape, jax.random.key_data(key))

    def regularised(self) -> Bool[np.ndarray, " P"]:
        """Returns whether each weight is regularised: none is."""
        return np.zeros(self.size, bool)

    def apply(self, weights: Float[Array, " P"], x: Float[Array, "S F"]) -> NoReturn:
        raise ScenarioError(
            "problem.model must be one that gives outputs, for a loss, metric or "
            "constant that is computed here, got 'vector'; give numbers, or leave it "
            "to problem.model.evaluate"
        )


def start(named: UserFunction, seed: int) -> Float[np.ndarray, " P"]:
    """Returns the weights by their name.

    Args:
        named: Name of a vector, or of a function of a seed.
        seed: The seed, below 2**32.

    Raises:
        ScenarioError: They are no vector of finite floating numbers.
    """
    found = functions.resolve(*named)
    made = functions.calling(
        *named, lambda: np.asarray(found(seed) if callable(found) else found)
    )
    if made.ndim != 1 or not made.size or made.dtype.kind != "f":
        raise named.refused(
            f"must be a vector of floating numbers, got {list(made.shape)} "
            f"{made.dtype} from {named}; lay the arrays end to end"
        )
    if not np.isfinite(made).all():
        raise named.refused(
            f"must be finite, got NaN or infinity from {named}; change the start"
        )
    return made


@lru_cache(maxsize=8)
def vector(named: UserFunction) -> VectorNetwork:
    """Returns the model without a network.

    Raises:
        ScenarioError: As `start`.
    """
    return VectorNetwork(named, start(named, 0).size)
