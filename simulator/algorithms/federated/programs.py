"""Stages as programs take them: trees of arrays, whose other attributes are static."""

from collections.abc import Iterable
from functools import cache, partial
from typing import Any, TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp

from .chain import StagePart

Some = TypeVar("Some", bound=StagePart)
Static = tuple[tuple[str, ...], tuple[tuple[str, Any], ...]]
"""Names of a stage's arrays, and its other attributes by name."""


def in_program(
    stage: Some, options: Iterable[str] | None, facts: dict[str, Any]
) -> Some:
    """Returns a stage whose numbers are arrays, with facts of the run.

    Args:
        stage: As a scenario has it.
        options: Those that it computes with; None for all. The others are their
            defaults, so that runs which differ in them share a program.
        facts: Values of private attributes: static ones, and trees of arrays.
    """
    kept = {*type(stage).model_fields} if options is None else {"kind", *options}
    attributes = {name: value for name, value in stage if name in kept} | facts
    numbers = {
        name: jnp.asarray(value, float)
        for name, value in stage.numbers.items()
        if name in kept
    }
    trees = [name for name, value in facts.items() if _is_tree(value)]
    return _made(type(stage), (*numbers, *trees), attributes | numbers)


def _is_tree(value: Any) -> bool:
    return all(eqx.is_array(leaf) for leaf in jax.tree.leaves(value))


def _made(
    kind: type[Some], arrays: tuple[str, ...], attributes: dict[str, Any]
) -> Some:
    _register(kind)
    options = {k: v for k, v in attributes.items() if k in kind.model_fields}
    stage = kind.model_construct(**options)
    private = {k: v for k, v in attributes.items() if k not in options}
    for name, value in (private | {"_arrays": arrays}).items():
        setattr(stage, name, value)
    return stage


@cache
def _register(kind: type[StagePart]) -> None:
    made = partial(_unflatten, kind)
    jax.tree_util.register_pytree_node(kind, _flatten, made)


def _flatten(stage: StagePart) -> tuple[list[Any], Static]:
    arrays = stage._arrays
    attributes = dict(stage) | (stage.__pydantic_private__ or {})
    rest = {k: v for k, v in attributes.items() if k not in (*arrays, "_arrays")}
    return [attributes[name] for name in arrays], (arrays, tuple(rest.items()))


def _unflatten(kind: type[Some], static: Static, values: Iterable[Any]) -> Some:
    arrays, rest = static
    return _made(kind, arrays, dict(rest) | dict(zip(arrays, values, strict=True)))
