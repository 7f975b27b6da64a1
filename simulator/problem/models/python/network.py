"""A model of a user's own as the networks of this package are: one flat vector."""

import math
from functools import lru_cache

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.typing import DTypeLike
from jaxtyping import Array, Bool, Float, Key, Num, PyTree

from ....parts.functions import UserFunction
from ...data.base import Field, shaped
from ...data.outputs import OutputForm
from ..base import STATISTICS_KEPT
from ..flat import matrices, split
from ..parts import Shapes, size
from . import checks
from .functions import model_of

BLOCK = 1024
"""Rows that are measured at once."""
REMEMBERED = 16
"""Models that a process keeps, so that their programs are compiled once."""


def tree_of(vector: Float[Array, " Q"], like: PyTree) -> PyTree:
    """Returns the numbers of a vector as a tree of the arrays of another.

    Counts are rounded, and have their types. Other numbers have the type of the vector,
    which is the precision of the run.
    """
    leaves, structure = jax.tree.flatten(like)
    arrays = split(vector, _shapes(like))
    found = [
        array
        if jnp.issubdtype(leaf.dtype, jnp.floating)
        else jnp.round(array).astype(leaf.dtype)
        for array, leaf in zip(arrays, leaves, strict=True)
    ]
    return jax.tree.unflatten(structure, found)


def _shapes(tree: PyTree) -> Shapes:
    return tuple(leaf.shape for leaf in jax.tree.leaves(tree))


def vector(tree: PyTree, dtype: DTypeLike) -> Float[Array, " Q"]:
    """Returns all numbers of a tree of arrays, one after the other."""
    leaves = [jnp.ravel(leaf).astype(dtype) for leaf in jax.tree.leaves(tree)]
    return jnp.concatenate(leaves) if leaves else jnp.zeros(0, dtype)


class OwnNetwork:
    """A model of the user's own, of clients or of a party.

    Each is a separate network: two are equal only if they are one object.

    Attributes:
        form: Outputs that the loss takes.
        takes_key: Whether training draws random numbers.
        weights: Shapes and types of the weights, the beginning of the vector.
        statistics: Shapes and types of the running statistics, its end.
    """

    def __init__(
        self, named: UserFunction, form: OutputForm, rows: tuple[Field, ...]
    ) -> None:
        """Looks at a model once, without computing anything.

        Raises:
            ScenarioError: There is no such model, or it cannot be used here.
        """
        shapes = {field.name: field.shape for field in rows}
        facts = {
            "num_outputs": form.num_outputs,
            "shape": shapes.get("", shapes),
            "num_features": sum(field.width for field in rows),
        }
        self._functions, self.form, self._rows = model_of(named, facts), form, rows
        found = checks.look(named, self._functions, form, self._example)
        self.weights, self.statistics, self.takes_key = found

    @property
    def num_outputs(self) -> int:
        """Number of outputs of a row, or of a position, `C`."""
        return self.form.num_outputs

    @property
    def num_weights(self) -> int:
        """Length of the vector, statistics included."""
        return size(self.leaf_shapes)

    @property
    def inputs_first(self) -> bool:
        """Whether its library has matrices as `[inputs, outputs]`."""
        return self._functions.inputs_first

    @property
    def leaf_shapes(self) -> Shapes:
        """Shapes of the arrays in the vector: the tree's leaves, not layer by layer."""
        return (*_shapes(self.weights), *_shapes(self.statistics))

    @property
    def num_noised(self) -> int:
        """Number of all learned weights: no layer is known to be the first."""
        return size(_shapes(self.weights))

    @property
    def num_statistics(self) -> int:
        """Number of measured numbers at the vector's end."""
        return size(_shapes(self.statistics))

    def init(
        self, key: Key[Array, ""], num_features: int | None = None
    ) -> Float[Array, " P"]:
        """Returns the weights and statistics at the start, in single precision."""
        # Runs in double precision start from the same numbers.
        with jax.enable_x64(False):
            weights, statistics = self._functions.init(key, self._example(1))
            parts = vector(weights, jnp.float32), vector(statistics, jnp.float32)
            return jnp.concatenate(parts)

    def features(self, x: Float[np.ndarray, "*N F"]) -> Float[np.ndarray, "*N F"]:
        """Returns the features as they are."""
        return x

    def regularised(self) -> Bool[np.ndarray, " P"]:
        """Returns whether each number is regularised: those of matrices or kernels."""
        learned = matrices(_shapes(self.weights))
        return np.concatenate([learned, np.zeros(self.num_statistics, bool)])

    def apply(self, weights: Float[Array, " P"], x: Float[Array, "S F"]) -> PyTree:
        """Returns the outputs of some rows, however many: block by block."""
        tree, statistics = self._trees(weights)
        num_rows = x.shape[0]

        def outputs(block: Float[Array, "s F"]) -> PyTree:
            found, _ = self._functions.apply(
                tree, statistics, self._given(block, weights.dtype), None, False
            )
            return found

        if num_rows <= BLOCK:
            return self._laid_out(outputs(x))
        whole = num_rows // BLOCK * BLOCK
        blocks = x[:whole].reshape(-1, BLOCK, x.shape[1])
        # Otherwise a gradient would keep what all layers make of every block.
        found = lax.map(jax.checkpoint(outputs), blocks)
        found = jax.tree.map(lambda each: each.reshape(whole, *each.shape[2:]), found)
        if whole < num_rows:
            rest = outputs(x[whole:])
            found = jax.tree.map(lambda *two: jnp.concatenate(two), found, rest)
        return self._laid_out(found)

    def train(
        self,
        weights: Float[Array, " P"],
        x: Float[Array, "S F"],
        key: Key[Array, ""] | None = None,
    ) -> tuple[PyTree, Float[Array, " Q"]]:
        """Returns the outputs of a batch in training, and statistics of the batch.

        Returns:
            The outputs; and statistics such that a step, which mixes them into the
            running ones by a fraction, yields the model's own running statistics.
        """
        if not self.num_statistics and key is None:
            return self.apply(weights, x), jnp.zeros(0, weights.dtype)
        tree, statistics = self._trees(weights)
        outputs, after = self._functions.apply(
            tree, statistics, self._given(x, weights.dtype), key, True
        )
        before = lax.stop_gradient(weights[self.num_noised :])
        new = lax.stop_gradient(vector(after, weights.dtype))
        share = 1 - STATISTICS_KEPT
        return self._laid_out(outputs), before + (new - before) / share

    def _trees(self, weights: Float[Array, " P"]) -> tuple[PyTree, PyTree]:
        learned, measured = jnp.split(weights, [self.num_noised])
        statistics = tree_of(lax.stop_gradient(measured), self.statistics)
        return tree_of(learned, self.weights), statistics

    def _given(self, x: Float[Array, "S F"], dtype: DTypeLike) -> PyTree:
        """Returns rows in the shapes in which they were given, numbers in a type."""

        def converted(array: Array) -> Array:
            whole = jnp.issubdtype(array.dtype, jnp.integer)
            return array if whole else array.astype(dtype)

        return jax.tree.map(converted, shaped(self._rows, x))

    def _example(self, num_rows: int) -> PyTree:
        width = sum(field.width for field in self._rows)
        return self._given(jnp.zeros((num_rows, width), jnp.float32), jnp.float32)

    def _laid_out(self, outputs: PyTree) -> PyTree:
        """Returns outputs as the loss takes them: `[C, S]`, but of a loss of one's own.

        Positions of a row stand one after the other.
        """
        if self.form.is_own:
            return outputs
        return columns_of(outputs, self.form)


def columns_of(outputs: Num[Array, " S *o"], form: OutputForm) -> Num[Array, "C SL"]:
    """Returns outputs `[S, ...]` as `[C, S]`, or `[C, S L]` of `L` positions."""
    samples = outputs.shape[0] * math.prod(form.positions)
    return outputs.reshape(samples, -1).T


python_network = lru_cache(maxsize=REMEMBERED)(OwnNetwork)
"""Returns the network that a scenario names."""
