"""Compressors: a few of the numbers, fewer levels of each, signs, and low rank."""

from math import ceil, prod, sqrt
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

from pydantic import Field

from ...engine.algorithm import FLOAT_BYTES
from ...parts.base import Rule
from ...parts.lazy import Late
from ...problem.models.parts import ProblemShape, Shapes
from .stages import Compressor

if TYPE_CHECKING:
    import jax
    import jax.numpy as jnp
    from jaxtyping import Array, PyTree

    from ...problem.models import flat
else:
    jax, jnp = Late("jax"), Late("jax.numpy")
    flat = Late("...problem.models.flat", __package__)
    Array = PyTree = Any

Keep = Annotated[
    Annotated[int, Field(ge=1)] | Annotated[float, Field(gt=0, lt=1)],
    Rule("a whole number of weights >= 1, or a share of them below 1", "100 or 0.01"),
]
MOST_LEVELS = 2**15 - 1
"""Levels of numbers of 16 bits; more of them are no better than single precision."""


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
        size, count = shape.num_weights, self.count(shape.num_weights)
        return FLOAT_BYTES * count + ceil(count * (size - 1).bit_length() / 8)

    def __call__(
        self, values: Array, state: PyTree, key: PyTree, arrays: PyTree
    ) -> tuple[Array, PyTree]:
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
        return size / self.count(size) - 1

    def num_bytes(self, shape: ProblemShape) -> int:
        return FLOAT_BYTES * self.count(shape.num_weights)

    def __call__(
        self, values: Array, state: PyTree, key: PyTree, arrays: PyTree
    ) -> tuple[Array, PyTree]:
        count = self.count(values.size)
        places = jax.random.uniform(key, values.shape, values.dtype)
        _, kept = jax.lax.top_k(places, count)
        sent = values[kept] * (values.size / count)
        return jnp.zeros_like(values).at[kept].set(sent), state


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
        d, s = self._bucket(size), self.levels
        return min(d / s**2, sqrt(d) / s)

    def num_bytes(self, shape: ProblemShape) -> int:
        size, bits = shape.num_weights, (2 * self.levels).bit_length()
        return ceil(size * bits / 8) + FLOAT_BYTES * ceil(size / self._bucket(size))

    def __call__(
        self, values: Array, state: PyTree, key: PyTree, arrays: PyTree
    ) -> tuple[Array, PyTree]:
        bucket = self._bucket(values.size)
        rows = jnp.pad(values, (0, -values.size % bucket)).reshape(-1, bucket)
        norm = jnp.sqrt((rows**2).sum(axis=1, keepdims=True))
        level = self.levels * jnp.abs(rows) / jnp.where(norm > 0, norm, 1)
        drawn = jax.random.uniform(key, rows.shape, rows.dtype)
        rounded = jnp.floor(level) + (drawn < level - jnp.floor(level))
        made = jnp.sign(rows) * norm * rounded / self.levels
        return made.reshape(-1)[: values.size], state


class Signs(Compressor):
    """Sends signs, times the mean size of all numbers; zero counts as positive.

    The error is |x|^2 - |x|_1^2 / n: it contracts by alpha = |x|_1^2 / (n |x|^2). A
    message is one bit for each number, and a scale of 4 bytes.

    Source: Karimireddy et al., Error Feedback Fixes SignSGD (2019), Lemma 8.
    """

    kind: Literal["signs"] = "signs"

    def num_bytes(self, shape: ProblemShape) -> int:
        return ceil(shape.num_weights / 8) + FLOAT_BYTES

    def __call__(
        self, values: Array, state: PyTree, key: PyTree, arrays: PyTree
    ) -> tuple[Array, PyTree]:
        scale = jnp.abs(values).mean()
        return jnp.where(values < 0, -scale, scale), state


class LowRank(Compressor):
    """Sends each matrix M [m, n] as P Q' of rank r, by one step of a power iteration.

    P is an orthonormal basis of M Q, and Q' becomes P' M, with which the client's next
    message begins; its first begins with normal numbers, the same for all, and after
    zeros alone the next begins as they did. A kernel of
    more axes is a matrix of its first one and the others. A message is 4 r (m + n)
    bytes for each matrix that this makes smaller; all other arrays are sent as they
    are. Each client's own message is compressed, as a server gets it: sums over workers
    of P and of Q, as the paper's all-reduce has them, are not.

    Source: Vogels, Karimireddy and Jaggi, PowerSGD (2019), Algorithm 1; its Algorithm 2
    with `feedback: ef`.
    """

    kind: Literal["low_rank"] = "low_rank"
    by_arrays: ClassVar[bool] = True
    rank: Annotated[int, Field(ge=1)]
    """r."""

    def _sides(self, arrays: Shapes) -> list[tuple[int, int] | None]:
        """Returns the sides of each array as a matrix; None of one sent as it is."""
        matrices = [
            (shape[0], prod(shape[1:])) if shape else (1, 1) for shape in arrays
        ]
        return [(m, n) if self.rank * (m + n) < m * n else None for m, n in matrices]

    def num_bytes(self, shape: ProblemShape) -> int:
        arrays = shape.arrays
        assert arrays is not None
        each = zip(arrays, self._sides(arrays), strict=True)
        numbers = [
            self.rank * sum(sides) if sides else prod(array) for array, sides in each
        ]
        return FLOAT_BYTES * sum(numbers)

    def start(self, values: Array, arrays: PyTree) -> PyTree:
        found = [sides for sides in self._sides(arrays) if sides]
        keys = jax.random.split(jax.random.key(0), len(found))
        return tuple(
            jax.random.normal(key, (n, self.rank), values.dtype)
            for key, (_, n) in zip(keys, found, strict=True)
        )

    def __call__(
        self, values: Array, state: PyTree, key: PyTree, arrays: PyTree
    ) -> tuple[Array, PyTree]:
        made, after, factors = [], [], iter(state)
        each = zip(flat.split(values, arrays), self._sides(arrays), strict=True)
        for array, sides in each:
            if sides is None:
                made.append(array.reshape(-1))
                continue
            matrix = array.reshape(sides)
            before = next(factors)
            basis, _ = jnp.linalg.qr(matrix @ before)
            found = matrix.T @ basis
            after.append(jnp.where((found != 0).any(), found, before))
            made.append((basis @ found.T).reshape(-1))
        return jnp.concatenate(made), tuple(after)
