"""Checks shapes and dtypes as the annotations say.

For the option `--jaxtyping-packages` of jaxtyping's plugin: see `.ci/shapes`.
"""

from collections.abc import Callable
from typing import Any, TypeVar, get_args

from beartype import BeartypeConf, beartype
from jaxtyping import AbstractArray

F = TypeVar("F", bound=Callable[..., Any])
CONF = BeartypeConf(is_pep484_tower=True)
"""An int is a float, as type checkers have it."""


def checked(function: F) -> F:
    """Lets a function check its arguments and result, where arrays are among them.

    Types of all other functions are Pyright's part.
    """
    hints = getattr(function, "__annotations__", {})
    return beartype(function, conf=CONF) if shaped([*hints.values()]) else function


def shaped(hint: Any) -> bool:
    """Says whether a type has an array with a shape somewhere in it."""
    if isinstance(hint, type) and issubclass(hint, AbstractArray):
        return True
    return any(map(shaped, hint if isinstance(hint, list) else get_args(hint)))
