"""A custom model as two functions: the start, and the outputs."""

import inspect
from collections.abc import Callable, Mapping

import jax
from jaxtyping import Array, Key, PyTree

from ....parts import functions
from ....parts.functions import UserFunction
from . import libraries
from .libraries import Again, Functions

KEYS = ("key", "rng", "rngs")
"""Names of arguments that are keys of random numbers."""


def model_of(named: UserFunction, facts: Mapping[str, object]) -> Functions:
    """Returns the model that a scenario names.

    Args:
        named: `"module:name"` of a function that makes the model, or of the model.
        facts: Possible arguments of such a function, by name.

    Raises:
        ScenarioError: There is none, or it is not a model that is known here.
    """
    found = functions.resolve(*named)
    model, again = found, None
    if inspect.isroutine(found) or inspect.isclass(found) or _is_partial(found):
        model, again = functions.calling(*named, lambda: _built(named, found, facts))
    adapted = libraries.adapted(model, again)
    if adapted is not None:
        return adapted
    if isinstance(model, tuple | list) and len(model) == 2:
        init, apply = model
    else:
        init, apply = getattr(model, "init", None), getattr(model, "apply", None)
    if not callable(init) or not callable(apply):
        got = f"{type(model).__module__}.{type(model).__qualname__}"
        raise named.refused(
            f"must give a pair of functions init and apply, or a model of "
            f"Equinox or Flax, got {got} from {named}; return one of these"
        )
    return plain(init, apply)


def plain(init: Callable[..., PyTree], apply: Callable[..., PyTree]) -> Functions:
    """Returns the model of two functions, `init(key)` and `apply(weights, x)`.

    `init` may take some rows as well, and `apply` a `key`, which is None but in
    training.
    """
    takes_rows = len(_required(init)) > 1
    named = next((name for name in KEYS if name in _names(apply)), None)

    def start(key: Key[Array, ""], x: PyTree) -> tuple[PyTree, PyTree]:
        return (init(key, x) if takes_rows else init(key)), ()

    def run(
        weights: PyTree, statistics: PyTree, x: PyTree, key: PyTree, training: bool
    ) -> tuple[PyTree, PyTree]:
        if named is None:
            return apply(weights, x), statistics
        return apply(weights, x, **{named: key}), statistics

    return Functions(start, run, named is not None)


def _is_partial(found: object) -> bool:
    return hasattr(found, "func") and hasattr(found, "keywords")


def _built(
    named: UserFunction, build: Callable[..., PyTree], facts: Mapping[str, object]
) -> tuple[PyTree, Again]:
    """Calls a function that makes a model with what it asks for."""
    names = _names(build)
    asked = {name: facts[name] for name in names if name in facts}
    key = next((name for name in KEYS if name in names), None)
    unknown = [n for n in _required(build) if n not in asked and n != key]
    if unknown:
        raise named.refused(
            f"must be a function that asks for {', '.join(facts)} or key, if "
            f"for anything, got one that asks for {unknown[0]!r}; give that a default"
        )
    if key is None:
        return build(**asked), None

    def again(drawn: Key[Array, ""]) -> PyTree:
        if key == "rngs":
            from flax import nnx

            return build(**asked, rngs=nnx.Rngs(drawn))
        return build(**asked, **{key: drawn})

    return again(jax.random.key(0)), again


def _parameters(function: Callable[..., PyTree]) -> Mapping[str, inspect.Parameter]:
    try:
        if not inspect.isclass(function):
            return inspect.signature(function).parameters
        # A library's own way to call a class may hide what the class asks for.
        own = list(inspect.signature(function.__init__).parameters.items())
        return dict(own[1:])
    except (TypeError, ValueError):  # of C, say
        return {}


def _names(function: Callable[..., PyTree]) -> list[str]:
    return list(_parameters(function))


def _required(function: Callable[..., PyTree]) -> list[str]:
    many = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    return [
        name
        for name, each in _parameters(function).items()
        if each.default is inspect.Parameter.empty and each.kind not in many
    ]
