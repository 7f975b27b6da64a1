"""The cost of CKKS on this machine: the numbers of `algorithm.encryption`, measured."""

import time
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from ..config.extras import extra
from .encryption import Ckks, Costs

DIMENSION = 2 * Ckks.capacity
"""N of the ring: it holds half as many numbers."""
MODULI_BITS = (60, 40, 40, 60)
"""Bits of the coefficients; 200 in all, of 218 that are safe for N (128 bits)."""
SCALE = 1_099_511_480_321.0
"""Factor of numbers before they are rounded.

The largest prime below 2**40 that is 1 modulo 2 N, which is the modulus that the first
rescaling divides by: at 2**40 itself, every product would be off by 1.3e-7 of it.
"""


class Keys(NamedTuple):
    """The two halves of a pair of keys, as TenSEAL's contexts.

    Attributes:
        secret: Encrypts and decrypts.
        public: Computes with ciphertexts, and can decrypt nothing.
    """

    secret: Any
    public: Any


def tenseal() -> Any:
    """Imports and returns TenSEAL.

    Raises:
        UserError: it is not installed.
    """
    return extra("tenseal", "he", "encryption")


def make_keys() -> Keys:
    """Returns a new pair of keys for CKKS, for use on one thread.

    Raises:
        UserError: TenSEAL is not installed.
    """
    ts = tenseal()
    secret = ts.context(
        ts.SCHEME_TYPE.CKKS,
        poly_modulus_degree=DIMENSION,
        coeff_mod_bit_sizes=list(MODULI_BITS),
        n_threads=1,
    )
    secret.global_scale = SCALE
    public = secret.copy()
    public.make_context_public()
    return Keys(secret, public)


def measure(repeats: int = 30) -> Costs:
    """Measures each operation on a full ciphertext, on one thread.

    Times are medians of the processor's time, so that what else the machine does
    disturbs them little.

    Args:
        repeats: Measurements of each operation, >= 1.

    Raises:
        UserError: TenSEAL is not installed.
    """
    encrypt = tenseal().ckks_vector
    context = make_keys().secret
    drawn = np.random.default_rng(0).normal(size=(2, Ckks.capacity))
    plain, other = drawn.tolist()
    one, two = encrypt(context, plain), encrypt(context, other)
    operations: dict[str, Callable[[], Any]] = {
        "encrypt_s": lambda: encrypt(context, plain),
        "add_s": lambda: one + two,
        "multiply_s": lambda: one * other,
        "decrypt_s": one.decrypt,
    }
    seconds = {name: _median(do, repeats) for name, do in operations.items()}
    return Costs(**seconds, ciphertext_bytes=len(one.serialize()))


def _median(do: Callable[[], Any], repeats: int) -> float:
    """Returns the median of the seconds that something takes, but for a first time."""
    do()
    taken: list[float] = []
    for _ in range(repeats):
        started = time.process_time()
        do()
        taken.append(time.process_time() - started)
    return float(np.median(taken))
