"""Forbidden operations of a custom model, found before a run starts."""

from collections.abc import Callable
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jax.tree_util import KeyPath
from jaxtyping import PyTree

from ....parts import functions as of_user
from ....parts.functions import UserFunction
from ...data.outputs import OutputForm
from .. import purity
from .libraries import Functions

ROWS = 11, 13
"""Numbers of rows that a model is looked at with; their axis is known by them."""


def look(
    named: UserFunction,
    model: Functions,
    form: OutputForm,
    example: Callable[[int], PyTree],
) -> tuple[PyTree, PyTree, bool]:
    """Checks a model without computing anything.

    Returns:
        Shapes and types of its weights, in their tree; those of its statistics; and
        whether training draws random numbers.

    Raises:
        ScenarioError: It cannot be used here; the message has the reason.
    """
    with jax.enable_x64(False):
        key = jax.random.key(0)
        _check_start(named, model, key, example(1))
        weights, statistics = of_user.calling(
            *named, lambda: jax.eval_shape(model.init, key, example(1))
        )
        _check_weights(named, weights)
        takes_key = _draws(named, model, (weights, statistics), example(ROWS[0]))
        for training in (False, True):
            drawn = key if training and takes_key else None
            for num_rows in ROWS:
                _check_outputs(
                    named, model, (weights, statistics), example(num_rows), drawn,
                    training=training, form=form, num_rows=num_rows,
                )  # fmt: skip
            run = partial(model.apply, x=example(ROWS[0]), key=drawn, training=training)
            purity.check(named, run, weights, statistics)
    return weights, statistics, takes_key


def _check_start(named: UserFunction, model: Functions, key: PyTree, x: PyTree) -> None:
    one, two = (of_user.calling(*named, lambda: model.init(key, x)) for _ in range(2))
    if jax.tree.structure(one) != jax.tree.structure(two):
        raise named.refused(
            f"must start from the same weights whenever it gets the same key, "
            f"got other ones from {named}; draw them from the key alone"
        )
    for path, leaf in jax.tree.leaves_with_path(one[0]):
        if not isinstance(leaf, jax.Array | np.ndarray | float):
            raise named.refused(
                f"must have weights that are arrays of floating numbers, got "
                f"{type(leaf).__name__} at {_place(path)} of {named}; keep it "
                f"elsewhere"
            )
    for (path, leaf), other in zip(
        jax.tree.leaves_with_path(one), jax.tree.leaves(two), strict=True
    ):
        if not np.array_equal(_plain(leaf), _plain(other), equal_nan=True):
            raise named.refused(
                f"must start from the same weights whenever it gets the same "
                f"key, got other ones at {_place(path)} of {named}; draw them from "
                f"the key alone"
            )
        if not np.isfinite(_plain(leaf)).all():
            raise named.refused(
                f"must start from finite weights, got NaN or infinity at "
                f"{_place(path)} of {named}; change its start"
            )


def _plain(leaf: PyTree) -> np.ndarray:
    """Returns the numbers of an array; those of half precision as float32."""
    array = jnp.asarray(leaf)
    half = jnp.issubdtype(array.dtype, jnp.floating) and array.dtype.itemsize < 4
    return np.asarray(array.astype(jnp.float32) if half else array)


def _check_weights(named: UserFunction, weights: PyTree) -> None:
    leaves = jax.tree.leaves_with_path(weights)
    for path, leaf in leaves:
        if leaf.dtype not in (jnp.float32, jnp.float64):
            raise named.refused(
                f"must have weights of type float32, got {leaf.dtype} at "
                f"{_place(path)} of {named}; convert them, or keep what is not "
                f"learned elsewhere"
            )
    if not leaves:
        raise named.refused(
            f"must have weights to learn, got none in {named}; return them from init"
        )


def _draws(
    named: UserFunction, model: Functions, trees: tuple[PyTree, PyTree], x: PyTree
) -> bool:
    """Says whether a model draws random numbers in training: it fails without a key.

    Functions that take a key may do without one, and tell by it that they are measured.
    """
    if model.asks_for_key:
        return True
    try:
        jax.eval_shape(lambda *t: model.apply(*t, x, None, True), *trees)
    except Exception:  # each library has its own error for a key that is missing
        key = jax.random.key(0)
        of_user.calling(
            *named,
            lambda: jax.eval_shape(lambda *t: model.apply(*t, x, key, True), *trees),
        )
        return True
    return False


def _check_outputs(
    named: UserFunction,
    model: Functions,
    trees: tuple[PyTree, PyTree],
    x: PyTree,
    key: PyTree,
    *,
    training: bool,
    form: OutputForm,
    num_rows: int,
) -> None:
    outputs, after = of_user.calling(
        *named,
        lambda: jax.eval_shape(lambda *t: model.apply(*t, x, key, training), *trees),
    )
    leaves = jax.tree.leaves(outputs)
    wanted = " or ".join(_shape(shape) for shape in form.shapes())
    loss = f"for the loss {form.loss}" if form.loss else "of a party"
    if not form.is_own and (len(leaves) != 1 or not hasattr(outputs, "shape")):
        raise named.refused(
            f"must give one array of outputs {wanted} {loss}, got "
            f"{len(leaves)} arrays from {named}; return one, or take a loss of your "
            f"own"
        )
    for leaf in leaves:
        if leaf.shape[:1] != (num_rows,) or not form.fits(leaf.shape[1:]):
            got = "[" + ", ".join(
                "S" if not i and size == num_rows else str(size)
                for i, size in enumerate(leaf.shape)
            ) + "]"  # fmt: skip
            wants = wanted if not form.is_own else "[S, ...]"
            raise named.refused(
                f"must give outputs of the shape {wants} {loss}, got {got} "
                f"from {named}; change the model, or problem.loss"
            )
        if form.is_own:
            continue
        if leaf.dtype != jnp.float32:
            raise named.refused(
                f"must give outputs of the type of its weights, float32, got "
                f"{leaf.dtype} from {named}; convert them back at its end"
            )
    before = [(leaf.shape, leaf.dtype) for leaf in jax.tree.leaves(trees[1])]
    if before != [(leaf.shape, leaf.dtype) for leaf in jax.tree.leaves(after)]:
        raise named.refused(
            f"must keep statistics of the same shapes and types, got others "
            f"after a batch from {named}; convert them back"
        )


def _place(path: KeyPath) -> str:
    return jax.tree_util.keystr(path) or "its top"


def _shape(shape: tuple[int, ...]) -> str:
    return f"[{', '.join(['S', *map(str, shape)])}]"
