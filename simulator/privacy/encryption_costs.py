"""The cost of CKKS on this machine: the numbers of `algorithm.encryption`, measured."""

import time
from collections.abc import Callable
from typing import Any

import numpy as np

from .encrypted import make_keys, tenseal
from .encryption import Ckks, Costs


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
