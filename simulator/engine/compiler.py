"""Whether XLA, as this process has it, compiles two known risks rightly.

LLVM 22 and 23 merge stores of doubles wrongly on x86, and YNNPACK gets some sums of
many rows wrong (evidence/pages/speed.md, "A wrong gradient from the compiler" and
"Wrong sums"). `device.before_import` switches both off, which comes too late where JAX
has computed something before.
"""

import os
import time
import warnings
from functools import cache
from importlib.metadata import version

import jax
import jax.numpy as jnp
import numpy as np

from ..files.study import StudyWarning
from ..parts.errors import UserError
from .device import STORES_APART, SUMS_OF_XLA


def check(precision: str) -> None:
    """Refuses to compute in a precision in which programs are compiled wrongly here.

    Takes 0.1 s once a process on CPU, and as much again in double precision. Of sums
    there is a warning alone: those of the built-in losses are right in any case.

    Raises:
        UserError: a program in double precision computes wrong numbers.
    """
    sums_rightly()
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
    """Returns whether rows of five doubles, four at a time, are written correctly."""
    if jax.default_backend() != "cpu":
        return True
    a, b, c, d = np.random.default_rng(0).normal(size=(4, 2, 4, 5))
    # No two processes compile the same program: one from the cache says nothing.
    now = time.time_ns()
    with jax.enable_x64(True):
        # Products whose rows have gaps between them: see the reproduction.
        stacked = jax.jit(
            lambda a, b, c, d: (jnp.stack([a * a * c, b * c * c, d * d], axis=-2), now)
        )
        found, _ = stacked(a, b, c, d)
    wanted = np.stack([a * a * c, b * c * c, d * d], axis=-2)
    return bool(np.array_equal(np.asarray(found), wanted))


@cache
def sums_rightly() -> bool:
    """Returns whether a sum over a product of many rows is right; warns if not.

    The first factor is one for two models, of ten outputs for 20,000 rows.
    """
    if jax.default_backend() != "cpu":
        return True
    one = np.eye(10, dtype=np.float32)[np.arange(20_000) % 10].T
    many = np.arange(2, dtype=np.float32)[:, None, None] + np.ones_like(one)
    now = time.time_ns() % 2**31  # as above
    summed = jax.jit(lambda one, many: ((one[None] * many).sum(axis=-2), now))
    found, _ = summed(one, many)
    right = bool(np.array_equal(np.asarray(found), (one * many).sum(axis=-2)))
    if not right:
        warnings.warn(
            f"jaxlib {version('jaxlib')} gets some sums of many rows wrong; set "
            f"XLA_FLAGS={SUMS_OF_XLA} before Python starts, or import stalesim before "
            f"JAX computes",
            StudyWarning,
            stacklevel=3,
        )
    return right
