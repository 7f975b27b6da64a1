"""The interface of an algorithm's kernel, and a row as the kernel sees it."""

from abc import abstractmethod
from collections.abc import Callable
from typing import TYPE_CHECKING, ClassVar, Generic, NamedTuple, TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, Key, PyTree

from ..files.timeline import NO_WORKER

if TYPE_CHECKING:
    from .step_rules import Schedule, Steps


class Event(NamedTuple):
    """One row of a timeline as the device sees it: no clock, no 64-bit number.

    Attributes:
        kind: A `Kind`.
        worker: Workers that take part, padded with `NO_WORKER`.
        job: Number of each worker's job; keys its randomness.
        version: Commits applied before this row.
        staleness: Versions since each worker's read.
        read_slot: Register with the state that each worker read.
        keep_slot: Register that the state before this row is written to, before
            anything is read; `NO_SLOT` if no worker reads it. Written so late,
            registers are never read before they are written within a row, which XLA
            would answer with a copy of all of them.
        samples: Sample ids of each worker, or of all (`V` is 1), padded with
            `NO_SAMPLE`.
    """

    kind: Int[Array, ""]
    worker: Int[Array, " W"]
    job: Int[Array, " W"]
    version: Int[Array, ""]
    staleness: Int[Array, " W"]
    read_slot: Int[Array, " W"]
    keep_slot: Int[Array, ""]
    samples: Int[Array, "V S"]

    def present(self) -> Bool[Array, " W"]:
        """Returns which workers are not padding."""
        return self.worker != NO_WORKER


TOGETHER = 256
"""Numbers that `summed` adds up by one product with ones, at least."""
Info = dict[str, Array]
"""Diagnostics of a row. A number is a column of the trace; `clients/NAME` `[K]` and
`workers/NAME` `[W]` are collected by the host in separate tables."""


ANSWER = "answer/"
"""Prefix of the names of values that a world needs of each worker, arrays `[W]`."""


ProblemT = TypeVar("ProblemT")
StateT = TypeVar("StateT")


class Kernel(eqx.Module, Generic[ProblemT, StateT]):
    """An update rule whose array fields are its hyper-parameters.

    It is one of a kind of problem, and of a state: a tree of arrays.
    """

    per_worker_models: ClassVar[bool] = False
    """Whether each worker has its own model, in its own register."""

    @abstractmethod
    def init(self, problem: ProblemT, key: Key[Array, ""]) -> StateT:
        """Returns the state before the first row."""

    @abstractmethod
    def step(
        self, problem: ProblemT, state: StateT, event: Event
    ) -> tuple[StateT, Info]:
        """Returns the state after a row, and diagnostics; `loss` is always there.

        A NULL row leaves the state bit-identical.
        """

    @abstractmethod
    def read_out(self, state: StateT) -> PyTree:
        """Returns the model to evaluate."""

    def evaluate(
        self, problem: PyTree, state: StateT, metrics: tuple[str, ...]
    ) -> dict[str, Array]:
        """Returns the metrics: numbers, or arrays with one value per worker."""
        return problem.evaluate(self.read_out(state), metrics)

    def refreshed(self, state: StateT) -> StateT:
        """Returns a state with the rounding errors of its diagnostics mended.

        Called before every stretch of rows that ends with an evaluation or a buffer.
        """
        return state

    def joined(self, problem: ProblemT) -> "Kernel | None":
        """Returns the same rule with one gradient for all workers of a row.

        It holds for rows whose workers have read the same version; by default None,
        where messages are needed one by one.
        """


class Probeable(Kernel[ProblemT, StateT]):
    """An algorithm whose messages are gradients, so that it can be probed."""

    @abstractmethod
    def reveal(
        self, problem: ProblemT, state: StateT, event: Event
    ) -> dict[str, Array]:
        """Returns a curious server's view of a row, and its origin.

        Each array has the axis of workers first: `message`, as it is sent; `gradient`,
        before clipping and noise; `state`, the weights it was taken at.
        """


def norm(*trees: PyTree) -> Float[Array, ""]:
    """Returns the Euclidean norm of everything in some trees of arrays together."""
    leaves = [leaf for tree in trees for leaf in jax.tree.leaves(tree)]
    return jnp.sqrt(sum(summed(lambda x: x**2, leaf) for leaf in leaves))


def summed(
    term: Callable[..., Array], *arrays: Float[Array, "..."]
) -> Float[Array, ""]:
    """Returns the sum of a term over all numbers of some arrays of one shape.

    By products with ones: XLA's sum on CPU adds numbers one by one, which takes two to
    four times as long (evidence/pages/speed.md, "Sums").

    Args:
        term: Of one number of each array, as arrays.
        arrays: Of one shape.
    """
    rows, rest = term(*arrays), jnp.zeros(0, arrays[0].dtype)
    if rows.ndim < 2 or rows.shape[-1] < TOGETHER:  # long rows stay where they are
        flat = rows.reshape(-1)
        whole = flat.size - flat.size % TOGETHER
        rows, rest = flat[:whole].reshape(-1, TOGETHER), flat[whole:]
    ones = jnp.ones(rows.shape[-1], rows.dtype)
    # GPUs would round the factors of a product.
    sums = jnp.matmul(rows, ones, precision=jax.lax.Precision.HIGHEST)
    return sums.sum() + rest.sum()


def norms_of(weights: Float[Array, "W ..."]) -> Float[Array, " W"]:
    """Returns the Euclidean norm of each worker's weights."""
    return jnp.sqrt(jnp.sum(weights**2, axis=tuple(range(1, weights.ndim))))


def broadcast_flags(flags: Array, weights: Float[Array, "W ..."]) -> Array:
    """Returns one flag or number per worker, shaped to broadcast to its weights."""
    return flags.reshape(-1, *(1,) * (weights.ndim - 1))


def on_device(schedule: "Schedule | Steps | float") -> PyTree:
    """Returns a number or a schedule as arrays, so that runs may differ in them."""
    if isinstance(schedule, int | float):
        return jnp.asarray(schedule, float)
    return type(schedule)(*(jnp.asarray(number, float) for number in schedule))
