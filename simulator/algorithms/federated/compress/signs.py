"""One bit for each number."""

from math import ceil
from typing import Any, Literal

from ....learning.shape import ProblemShape
from ...part import FLOAT_BYTES
from .part import Compressor


class Signs(Compressor):
    """Sends signs, times the mean size of all numbers; zero counts as positive.

    What is left is |x|^2 - |x|_1^2 / n: it contracts by alpha = |x|_1^2 / (n |x|^2). A
    message is one bit for each number, and a scale of 4 bytes.

    Source: Karimireddy et al., Error Feedback Fixes SignSGD (2019), Lemma 8.
    """

    kind: Literal["signs"] = "signs"

    def num_bytes(self, shape: ProblemShape) -> int:
        """Returns the bytes of the signs and of the scale."""
        return ceil(shape.num_weights / 8) + FLOAT_BYTES

    def __call__(
        self, values: Any, state: Any, key: Any, arrays: Any
    ) -> tuple[Any, Any]:
        """Returns the signs times the scale."""
        import jax.numpy as jnp  # only where a run needs it

        del key, arrays
        scale = jnp.abs(values).mean()
        return jnp.where(values < 0, -scale, scale), state
