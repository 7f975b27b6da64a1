"""Large functions that a test calls once: compiled fast, not to be fast."""

from collections.abc import Callable
from typing import Any

import jax

# A fifth of the usual time; newer versions of XLA have no such choice of emitters.
OPTIONS: tuple[dict[str, bool | int], ...] = (
    {"xla_backend_optimization_level": 0, "xla_cpu_use_fusion_emitters": False},
    {"xla_backend_optimization_level": 0},
)


def lowest(lowered: jax.stages.Lowered) -> jax.stages.Compiled:
    """Compiles a function without optimisation."""
    for options in OPTIONS:
        try:
            return lowered.compile(compiler_options=options)
        except jax.errors.JaxRuntimeError as error:
            if "No such compile option" not in str(error):
                raise
    raise AssertionError("no options suit this version of XLA")


def plain(function: Callable[..., Any], *args: Any) -> jax.stages.Compiled:
    """Returns a function, compiled without optimisation for arrays like these."""
    return lowest(jax.jit(function).lower(*args))


def once(function: Callable[..., Any], *args: Any) -> Any:
    """Returns what a function makes of some arrays, compiled without optimisation."""
    return plain(function, *args)(*args)
