"""Whether XLA, as this process has it, compiles a known risk in double precision.

LLVM 22 and 23 merge stores of doubles wrongly on x86 (docs/performance.md, "A wrong
gradient from the compiler"). `device.before_import` switches the merging off, which
comes too late where JAX has computed something before.
"""

import os
import time
from functools import cache
from importlib.metadata import version

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from simulator.config.errors import UserError
from simulator.engine.device import STORES_APART


def check(precision: str) -> None:
    """Refuses to compute in a precision in which programs are compiled wrongly here.

    Takes 0.1 s once a process in double precision on CPU, and nothing otherwise.

    Args:
        precision: Precision of a run, `float32` or `float64`.

    Raises:
        UserError: a program in double precision computes wrong numbers.
    """
    if precision != "float64" or stores_doubles_rightly():
        return
    flags = os.environ.get("XLA_FLAGS", "")
    got = "it too late" if STORES_APART in flags else repr(flags)
    raise UserError(
        f"XLA_FLAGS must contain {STORES_APART} before JAX first computes, got {got}: "
        f"jaxlib {version('jaxlib')} computes wrongly in double precision otherwise; "
        "set it before Python starts, or set engine.precision to float32"
    )


@cache
def stores_doubles_rightly() -> bool:
    """Says whether rows of five doubles, four at a time, land where they belong."""
    if jax.default_backend() != "cpu":
        return True
    a, b, c, d = np.random.default_rng(0).normal(size=(4, 2, 4, 5))
    # No two processes compile the same program: one from the cache says nothing.
    now = time.time_ns()
    with jax.enable_x64(True):
        found, _ = jax.jit(lambda *arrays: (_stacked(*arrays), now))(a, b, c, d)
    wanted = np.stack([a * a * c, b * c * c, d * d], axis=-2)
    return bool(np.array_equal(np.asarray(found), wanted))


def _stacked(
    a: Float[Array, "B 4 5"],
    b: Float[Array, "B 4 5"],
    c: Float[Array, "B 4 5"],
    d: Float[Array, "B 4 5"],
) -> Float[Array, "B 4 3 5"]:
    """Returns products, whose rows have gaps between them: see the reproduction."""
    return jnp.stack([a * a * c, b * c * c, d * d], axis=-2)
