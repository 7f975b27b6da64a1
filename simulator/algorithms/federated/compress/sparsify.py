"""A few of the numbers."""

from math import ceil
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field

from ....config.base import Rule
from ....learning.shape import ProblemShape
from ...part import FLOAT_BYTES
from .part import Compressor

Keep = Annotated[
    Annotated[int, Field(ge=1)] | Annotated[float, Field(gt=0, lt=1)],
    Rule("a whole number of weights >= 1, or a share of them below 1", "100 or 0.01"),
]


class Sparse(Compressor):
    """Common base: k of the n numbers are sent."""

    keep: Keep
    """k: numbers that are sent, or below 1 their share of all, rounded to the nearest
    whole number and at least 1: 0.1 of 72 is 7."""

    def count(self, size: int) -> int:
        """Returns k."""
        keep = self.keep
        return keep if isinstance(keep, int) else max(1, round(keep * size))


class TopK(Sparse):
    """Sends the k numbers of largest size: it contracts by alpha = k / n.

    A message is 4 bytes for each number, and its index in ceil(log2(n)) bits. Of equal
    sizes the first ones are sent.

    Source: Stich, Cordonnier and Jaggi, Sparsified SGD with Memory (2018), Definition
    2.1 and Lemma A.1.
    """

    kind: Literal["top_k"] = "top_k"

    def num_bytes(self, shape: ProblemShape) -> int:
        """Returns the bytes of numbers and indices."""
        size, count = shape.num_weights, self.count(shape.num_weights)
        return FLOAT_BYTES * count + ceil(count * (size - 1).bit_length() / 8)

    def __call__(
        self, values: Any, state: Any, key: Any, arrays: Any
    ) -> tuple[Any, Any]:
        """Returns the largest numbers, and zeros."""
        import jax  # only where a run needs it
        import jax.numpy as jnp

        del key, arrays
        _, kept = jax.lax.top_k(jnp.abs(values), self.count(values.size))
        return jnp.zeros_like(values).at[kept].set(values[kept]), state


class RandomK(Sparse):
    """Sends k numbers drawn at random, times n / k: unbiased, omega = n / k - 1.

    A message is 4 bytes for each number: both sides draw the indices by the client and
    the number of its job.

    Source: Stich, Cordonnier and Jaggi, Sparsified SGD with Memory (2018), Definition
    2.1, with the factor n / k.
    """

    kind: Literal["random_k"] = "random_k"
    draws: ClassVar[bool] = True

    def variance(self, size: int) -> float:
        """Returns omega."""
        return size / self.count(size) - 1

    def num_bytes(self, shape: ProblemShape) -> int:
        """Returns the bytes of the numbers."""
        return FLOAT_BYTES * self.count(shape.num_weights)

    def __call__(
        self, values: Any, state: Any, key: Any, arrays: Any
    ) -> tuple[Any, Any]:
        """Returns the drawn numbers, multiplied, and zeros."""
        import jax  # only where a run needs it
        import jax.numpy as jnp

        del arrays
        count = self.count(values.size)
        places = jax.random.uniform(key, values.shape, values.dtype)
        _, kept = jax.lax.top_k(places, count)
        sent = values[kept] * (values.size / count)
        return jnp.zeros_like(values).at[kept].set(sent), state
