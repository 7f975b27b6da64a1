"""A model of a user's own as the networks of this package are: one flat vector."""

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

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
from ..flat import split
from ..parts import Shapes
from . import checks
from .functions import model_of
from .libraries import Functions

BLOCK = 1024
"""Rows that are measured at once."""
REMEMBERED = 16
"""Models that a process keeps, so that their programs are compiled once."""


class Layout(NamedTuple):
    """The places of some arrays in a vector.

    Attributes:
        structure: Tree that they stand in.
        shapes: Their shapes.
        types: Their types.
    """

    structure: PyTree
    shapes: tuple[tuple[int, ...], ...]
    types: tuple[np.dtype, ...]

    @classmethod
    def of(cls, tree: PyTree) -> "Layout":
        """Returns the layout of a tree of arrays, or of their shapes and types."""
        leaves, structure = jax.tree.flatten(tree)
        shapes = tuple(leaf.shape for leaf in leaves)
        return cls(structure, shapes, tuple(leaf.dtype for leaf in leaves))

    @property
    def size(self) -> int:
        """Length of the vector."""
        return sum(map(math.prod, self.shapes))

    def tree(self, arrays: Sequence[Array]) -> PyTree:
        """Returns arrays in their tree."""
        return jax.tree.unflatten(self.structure, list(arrays))

    def given(self, vector: Float[Array, " Q"]) -> PyTree:
        """Returns the tree of a vector in the types of the arrays; counts are rounded.

        Numbers have the type of the vector, which is the precision of the run.
        """
        found = [
            array
            if jnp.issubdtype(dtype, jnp.floating)
            else jnp.round(array).astype(dtype)
            for array, dtype in zip(split(vector, self.shapes), self.types, strict=True)
        ]
        return self.tree(found)


def vector(tree: PyTree, dtype: DTypeLike) -> Float[Array, " Q"]:
    """Returns all numbers of a tree of arrays, one after the other."""
    leaves = [jnp.ravel(leaf).astype(dtype) for leaf in jax.tree.leaves(tree)]
    return jnp.concatenate(leaves) if leaves else jnp.zeros(0, dtype)


class OwnNetwork:
    """A model of the user's own, of clients or of a party.

    Each is a network of its own: two are equal only if they are one object.

    Attributes:
        form: Outputs that the loss takes.
        takes_key: Whether training draws random numbers.
        weights: Layout of what is learned, the beginning of the vector.
        statistics: Layout of what is measured, its end.
    """

    def __init__(
        self,
        named: UserFunction,
        functions: Functions,
        form: OutputForm,
        rows: tuple[Field, ...],
    ) -> None:
        """Looks at a model once, without computing anything.

        Args:
            named: Name of the model, for messages.
            functions: The model.
            form: Outputs that the loss takes.
            rows: Inputs of a row.

        Raises:
            ScenarioError: The model cannot be used here.
        """
        self._functions, self.form, self._rows = functions, form, rows
        found = checks.look(named, functions, form, self._example)
        weights, statistics, self.takes_key = found
        self.weights, self.statistics = Layout.of(weights), Layout.of(statistics)

    @property
    def num_outputs(self) -> int:
        """Number of outputs of a row, or of a position, `C`."""
        return self.form.num_outputs

    @property
    def num_weights(self) -> int:
        """Length of the vector, statistics included."""
        return self.weights.size + self.statistics.size

    @property
    def inputs_first(self) -> bool:
        """Whether its library has matrices as `[inputs, outputs]`."""
        return self._functions.inputs_first

    @property
    def leaf_shapes(self) -> Shapes:
        """Shapes of the arrays in the vector: the tree's leaves, not layer by layer."""
        return (*self.weights.shapes, *self.statistics.shapes)

    @property
    def num_noised(self) -> int:
        """Number of all learned weights: no layer is known to be the first."""
        return self.weights.size

    @property
    def num_statistics(self) -> int:
        """Number of measured numbers at the vector's end."""
        return self.statistics.size

    def init(
        self, key: Key[Array, ""], num_features: int | None = None
    ) -> Float[Array, " P"]:
        """Returns the weights and statistics at the start, in single precision.

        Args:
            key: Key of the run, or of the party.
            num_features: Columns of a party; all have the network of the widest.
        """
        # Runs in double precision start from the same numbers.
        with jax.enable_x64(False):
            weights, statistics = self._functions.init(key, self._example(1))
            parts = vector(weights, jnp.float32), vector(statistics, jnp.float32)
            return jnp.concatenate(parts)

    def features(self, x: Float[np.ndarray, "*N F"]) -> Float[np.ndarray, "*N F"]:
        """Returns the features as they are."""
        return x

    def regularised(self) -> Bool[np.ndarray, " P"]:
        """Says of each number whether it is regularised: of a matrix or kernel."""
        learned = [
            np.full(math.prod(shape), len(shape) > 1) for shape in self.weights.shapes
        ]
        return np.concatenate([*learned, np.zeros(self.statistics.size, bool)])

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

        Args:
            weights: Vector of the model.
            x: Rows of the batch.
            key: Key of what is drawn; None of a model that draws nothing.

        Returns:
            The outputs; and the statistics of which a step takes a part into the
            running ones, such that these become what the model itself makes of them.
        """
        if not self.statistics.size and key is None:
            return self.apply(weights, x), jnp.zeros(0, weights.dtype)
        tree, statistics = self._trees(weights)
        outputs, after = self._functions.apply(
            tree, statistics, self._given(x, weights.dtype), key, True
        )
        before = lax.stop_gradient(weights[self.weights.size :])
        new = lax.stop_gradient(vector(after, weights.dtype))
        share = 1 - STATISTICS_KEPT
        return self._laid_out(outputs), before + (new - before) / share

    def _trees(self, weights: Float[Array, " P"]) -> tuple[PyTree, PyTree]:
        """Returns weights and statistics as the model has them."""
        learned, measured = jnp.split(weights, [self.weights.size])
        return (
            self.weights.tree(split(learned, self.weights.shapes)),
            self.statistics.given(lax.stop_gradient(measured)),
        )

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


@lru_cache(maxsize=REMEMBERED)
def python_network(
    named: UserFunction, form: OutputForm, rows: tuple[Field, ...]
) -> OwnNetwork:
    """Returns the network that a scenario names.

    Args:
        named: Name of the model.
        form: Outputs that the loss takes.
        rows: Inputs of a row.

    Raises:
        ScenarioError: There is no such model, or it cannot be used here.
    """
    shapes = {field.name: field.shape for field in rows}
    facts = {
        "num_outputs": form.num_outputs,
        "shape": shapes.get("", shapes),
        "num_features": sum(field.width for field in rows),
    }
    return OwnNetwork(named, model_of(named, facts), form, rows)
