"""Fewer levels for each number."""

from math import ceil, sqrt
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field

from ....learning.shape import ProblemShape
from ...part import FLOAT_BYTES
from .part import Compressor

MOST_LEVELS = 2**15 - 1
"""Levels of numbers of 16 bits; more of them say no more than single precision does."""


class Qsgd(Compressor):
    """Rounds each number at random to one of s levels of its bucket's norm: unbiased.

    omega = min(d / s^2, sqrt(d) / s), d being the size of a bucket. A message is a norm
    of 4 bytes for each bucket, and ceil(log2(2 s + 1)) bits for each number: codes of a
    fixed length, in place of the paper's Elias codes, so that bytes do not depend on
    values.

    Source: Alistarh et al., QSGD (2017), section 3.1 and Lemma 3.1; buckets, section 4.
    """

    kind: Literal["qsgd"] = "qsgd"
    draws: ClassVar[bool] = True
    levels: Annotated[int, Field(ge=1, le=MOST_LEVELS)]
    """s: levels besides zero, of either sign."""
    bucket: Annotated[int, Field(ge=1)] | None = None
    """Numbers that share a norm, the last bucket fewer; by default all."""

    def _bucket(self, size: int) -> int:
        return min(self.bucket or size, size)

    def variance(self, size: int) -> float:
        """Returns omega."""
        d, s = self._bucket(size), self.levels
        return min(d / s**2, sqrt(d) / s)

    def num_bytes(self, shape: ProblemShape) -> int:
        """Returns the bytes of all numbers and norms."""
        size, bits = shape.num_weights, (2 * self.levels).bit_length()
        return ceil(size * bits / 8) + FLOAT_BYTES * ceil(size / self._bucket(size))

    def __call__(
        self, values: Any, state: Any, key: Any, arrays: Any
    ) -> tuple[Any, Any]:
        """Returns the rounded numbers."""
        import jax  # only where a run needs it
        import jax.numpy as jnp

        del arrays
        bucket = self._bucket(values.size)
        rows = jnp.pad(values, (0, -values.size % bucket)).reshape(-1, bucket)
        norm = jnp.sqrt((rows**2).sum(axis=1, keepdims=True))
        level = self.levels * jnp.abs(rows) / jnp.where(norm > 0, norm, 1)
        drawn = jax.random.uniform(key, rows.shape, rows.dtype)
        rounded = jnp.floor(level) + (drawn < level - jnp.floor(level))
        made = jnp.sign(rows) * norm * rounded / self.levels
        return made.reshape(-1)[: values.size], state
