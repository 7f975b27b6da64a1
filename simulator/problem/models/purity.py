"""Whether a function of a user's own depends on its arguments alone.

A program is traced once and then run again and again: its Python inputs and side
effects belong to that one time.
"""

import re
from collections.abc import Callable, Iterator

import jax
import jax.numpy as jnp
import numpy as np
from jax.extend.core import Jaxpr, jaxprs_in_params
from jaxtyping import PyTree

from ...parts import functions
from ...parts.functions import UserFunction

CALLBACKS = ("callback", "debug_print")
"""Parts of the names of JAX's primitives that call Python while a program runs."""
ADDRESS = re.compile(r"0x[0-9a-f]+")


def check(named: UserFunction, run: Callable[..., PyTree], *arguments: PyTree) -> None:
    """Refuses calls of Python while a program runs, and state outside the arguments.

    Raises:
        ScenarioError: With the fault.
    """

    def traced() -> PyTree:
        with jax.checking_leaks():
            return jax.make_jaxpr(lambda *given: run(*given))(*arguments)

    try:
        one, two = traced(), traced()
    except Exception as error:  # of the user's code, or JAX's plain one for a leak
        if "Leak" not in str(error):
            functions.calling(*named, traced)
            return
        raise named.refused(
            f"must keep nothing outside its arguments, got a function that keeps "
            f"an array of one call ({named}); return it with the outputs"
        ) from error
    for name in _primitives(one.jaxpr):
        if any(part in name for part in CALLBACKS):
            raise named.refused(
                f"must not call Python while it runs, got {name} in {named}; "
                f"remove jax.debug.print and callbacks"
            )
    alike = ADDRESS.sub("", str(one)) == ADDRESS.sub("", str(two))
    if not alike or not _same(one.consts, two.consts):
        raise named.refused(
            f"must depend on its arguments alone, got another program at the "
            f"second look at {named}; take counters and numpy.random out of it"
        )


def _same(one: list[PyTree], two: list[PyTree]) -> bool:
    return len(one) == len(two) and all(
        a is b or np.array_equal(_bits(a), _bits(b))
        for a, b in zip(one, two, strict=True)
    )


def _bits(constant: PyTree) -> np.ndarray:
    if isinstance(constant, jax.Array) and jnp.issubdtype(
        constant.dtype, jax.dtypes.prng_key
    ):
        constant = jax.random.key_data(constant)
    return np.frombuffer(np.ascontiguousarray(constant).tobytes(), np.uint8)


def _primitives(jaxpr: Jaxpr) -> Iterator[str]:
    """Yields the names of all primitives of a program, in those within it too."""
    for equation in jaxpr.eqns:
        yield equation.primitive.name
        for inner in jaxprs_in_params(equation.params):
            yield from _primitives(inner)
