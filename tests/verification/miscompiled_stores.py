"""A wrong result of XLA on CPU, without this program: JAX and NumPy alone.

    python tests/verification/miscompiled_stores.py [float32]

Prints what is computed wrongly, and exits with 1 if anything is. Rows of five doubles,
of which four are taken at once, are stored with gaps between them. LLVM loads all
twenty as one vector; the rows begin at elements 0, 5, 10 and 15 of it. In storing the
row that begins in the vector's middle, pairs of stores are merged, then both pairs;
the quadruple that is taken for them begins at 8, because 10 is no multiple of four:

    %v = load <20 x double>, ptr %p
    %w = fadd <20 x double> %v, %v
    ; %q + 248 and the three doubles behind it <- %w[10], [11], then [12], [13]
    ; with a store of another element of %w between the two pairs

    vmovupd  64(%rdi), %ymm0            ; elements 8 to 11
    vaddpd   %ymm0, %ymm0, %ymm0
    vmovupd  %ymm0, 248(%rsi)           ; wrong: these should be 10 to 13

Measured on x86 with AVX-512, in November 2026: wrong in LLVM 22.1.0 (by llvmlite 0.48
to 0.50) and in jaxlib 0.8.0, 0.9.0, 0.9.2, 0.10.1 and 0.10.2; right in LLVM 20.1.8 and
in jaxlib 0.7.0 and 0.7.2. For which vectors the generated code is wrong, with AVX2 or
AVX-512: n or n + 1 doubles with n = 12, 20, 28, ..., or single numbers with n = 24, 40,
56, ..., if a whole quadruple (octuple) is stored from element n / 2 on. With SSE alone
none is. XLA's loops lead to 20 doubles only, as far as a search found.
On an AMD EPYC that has AVX2 and no AVX-512, jaxlib 0.10.2 computes all of it rightly.

Right again with

    XLA_FLAGS=--xla_backend_extra_options=-combiner-store-merging=false
"""

import sys
from collections.abc import Callable
from itertools import product
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

Function = Callable[..., Any]


def joined(xp: Any, a: Any, b: Any, *_: Any) -> Any:
    return xp.concatenate([a * a, a * b], axis=-1)


def stacked(xp: Any, a: Any, b: Any, c: Any, d: Any, _: Any) -> Any:
    return xp.stack([a * a * c, b * c * c, d * d], axis=-2)


def gates(xp: Any, a: Any, b: Any, c: Any, d: Any, e: Any) -> Any:
    """Four parts with a common factor, as the gradients of an LSTM's gates are."""
    common = a * e
    parts = [common * b, common * c, common * d, common * e]
    return xp.concatenate(parts, axis=-1)


def grown(xp: Any, a: Any, b: Any, *_: Any) -> Any:
    """A column of ones behind features."""
    return xp.concatenate([a * b, xp.ones((*a.shape[:-1], 1), a.dtype)], axis=-1)


FUNCTIONS: tuple[Function, ...] = (joined, stacked, gates, grown)
ROWS, COLUMNS = (2, 3, 4, 5, 8), (2, 3, 4, 5, 6, 7, 8, 10)


def error(function: Function, rows: int, columns: int, dtype: str) -> float:
    """Returns the largest difference from NumPy, one of several arrays being taken."""
    shape = (5, 2, 2, rows, columns)
    arrays = np.random.default_rng(0).normal(size=shape).astype(dtype)

    @jax.jit
    def compiled(arrays: Any, which: Any) -> Any:
        taken = [
            jax.lax.dynamic_index_in_dim(array, which, keepdims=False)
            for array in arrays
        ]
        return function(jnp, *taken)

    found = np.asarray(compiled(tuple(arrays), 1))
    return float(np.abs(found - function(np, *(a[1] for a in arrays))).max())


def main(dtype: str) -> int:
    jax.config.update("jax_enable_x64", dtype == "float64")
    tolerance = 100 * np.finfo(dtype).eps
    wrong = 0
    for function, rows, columns in product(FUNCTIONS, ROWS, COLUMNS):
        if (by := error(function, rows, columns, dtype)) > tolerance:
            wrong += 1
            said = f"{function.__name__}, {rows} x {columns}: wrong by {by:.1e}\n"
            sys.stdout.write(said)
    sys.stdout.write(f"jaxlib {jax.lib.__version__}, {dtype}: {wrong} wrong\n")
    return wrong


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:] or ["float64"]) > 0)
