"""Modules of Equinox and Flax as two functions.

A library is imported only where a model is of it.
"""

import inspect
from collections.abc import Callable
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Key, PyTree


class Functions(NamedTuple):
    """A model.

    Attributes:
        init: Function of a key and some rows to weights and statistics, two trees of
            arrays; statistics are measured in training, not learned, and often nothing.
        apply: Function of weights, statistics, rows, a key (None where nothing is
            drawn) and whether it is training, to outputs and the next statistics.
        asks_for_key: Whether a function has an argument for a key, which it may do
            without; else a model draws random numbers if it fails without a key.
        inputs_first: Whether matrices are `[inputs, outputs]`, as in Flax.
    """

    init: Callable[[Key[Array, ""], PyTree], tuple[PyTree, PyTree]]
    apply: Callable[..., tuple[PyTree, PyTree]]
    asks_for_key: bool = False
    inputs_first: bool = False


Again = Callable[[Key[Array, ""]], PyTree] | None
"""Makes a model of other weights, by a key."""
FLAGS = {
    "train": True,
    "training": True,
    "is_training": True,
    "deterministic": False,
    "inference": False,
    "use_running_average": False,
}
"""Arguments that put a model into training mode, and their values."""


def adapted(model: Any, again: Again) -> Functions | None:
    """Returns the functions of a library's model; None of any other thing."""
    if isinstance(model, eqx.Module):
        return of_equinox((model, None), again)
    pair = isinstance(model, tuple) and len(model) == 2
    if pair and isinstance(model[0], eqx.Module):
        return of_equinox(model, again)
    libraries = {base.__module__ for base in type(model).__mro__}
    if any(name.startswith("flax.linen") for name in libraries):
        return of_linen(model)
    if any(name.startswith("flax.nnx") for name in libraries):
        return of_nnx(model, again)
    return None


def of_equinox(made: tuple[eqx.Module, PyTree], again: Again) -> Functions:
    """Returns the functions of a module for one row, optionally with its state.

    All floating arrays of the module are weights.
    """
    module, state = made
    _, static = eqx.partition(module, eqx.is_inexact_array)
    takes_key = "key" in inspect.signature(module.__call__).parameters  # pyright: ignore

    def init(key: Key[Array, ""], x: PyTree) -> tuple[PyTree, PyTree]:
        new = made if again is None else again(key)
        new = new if isinstance(new, tuple) else (new, None)
        return eqx.filter(new[0], eqx.is_inexact_array), new[1]

    def apply(
        weights: PyTree, statistics: PyTree, x: PyTree, key: PyTree, training: bool
    ) -> tuple[PyTree, PyTree]:
        whole = eqx.nn.inference_mode(eqx.combine(weights, static), value=not training)
        num_rows = jax.tree.leaves(x)[0].shape[0]
        keys = None if key is None else jax.random.split(key, num_rows)

        def one(row: PyTree, key: PyTree) -> PyTree:
            named = {"key": key} if takes_key else {}
            if state is None:
                return whole(row, **named)
            return whole(row, statistics, **named)

        axes = None if keys is None else 0
        if state is None:
            return jax.vmap(one, in_axes=(0, axes))(x, keys), statistics
        batch = jax.vmap(one, in_axes=(0, axes), out_axes=(0, None), axis_name="batch")
        return batch(x, keys)

    return Functions(init, apply)


def of_linen(module: Any) -> Functions:
    """Returns the functions of a Flax linen module for a batch."""
    flags = _flags(module.__call__)

    def init(key: Key[Array, ""], x: PyTree) -> tuple[PyTree, PyTree]:
        drawn = dict(zip(("params", "dropout"), jax.random.split(key), strict=True))
        variables = dict(module.init(drawn, x, **flags(training=False)))
        return variables.pop("params", {}), variables

    def apply(
        weights: PyTree, statistics: PyTree, x: PyTree, key: PyTree, training: bool
    ) -> tuple[PyTree, PyTree]:
        variables = {"params": weights, **statistics}
        named = {"rngs": {"dropout": key}} if key is not None else {}
        if not training or not statistics:
            found = module.apply(variables, x, **flags(training=training), **named)
            return found, statistics
        outputs, new = module.apply(
            variables, x, **flags(training=True), **named, mutable=list(statistics)
        )
        return outputs, dict(new)

    return Functions(init, apply, inputs_first=True)


def of_nnx(module: Any, again: Again) -> Functions:
    """Returns the functions of a Flax NNX module for a batch.

    Its parameters are weights, its random streams restart at every key, and all its
    other variables are statistics.
    """
    from flax import nnx

    def divided(module: Any) -> tuple[PyTree, ...]:
        return nnx.split(module, nnx.Param, nnx.RngState, ...)

    graphs = {}
    for training in (False, True):
        copy = nnx.clone(module)
        (copy.train if training else copy.eval)()
        graphs[training] = divided(copy)[0]
    flags = _flags(type(module).__call__)
    streams = divided(module)[2]
    places = {id(leaf): place for place, leaf in enumerate(jax.tree.leaves(streams))}

    def init(key: Key[Array, ""], x: PyTree) -> tuple[PyTree, PyTree]:
        _, weights, _, rest = divided(module if again is None else again(key))
        return weights, rest

    def apply(
        weights: PyTree, statistics: PyTree, x: PyTree, key: PyTree, training: bool
    ) -> tuple[PyTree, PyTree]:
        if training and places and key is None:
            raise ValueError("its random streams need a key")

        def redrawn(leaf: Array) -> Array:
            if not jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key):
                return jnp.zeros_like(leaf)
            return leaf if key is None else jax.random.fold_in(key, places[id(leaf)])

        drawn = jax.tree.map(redrawn, streams)
        whole = nnx.merge(graphs[training], weights, drawn, statistics)
        outputs = whole(x, **flags(training=training))
        return outputs, divided(whole)[3]

    return Functions(init, apply, inputs_first=True)


def _flags(call: Callable[..., PyTree]) -> Callable[..., dict[str, bool]]:
    """Returns the arguments of a module's call that concern training, by name."""
    names = [name for name in inspect.signature(call).parameters if name in FLAGS]
    return lambda training: {name: FLAGS[name] == training for name in names}
