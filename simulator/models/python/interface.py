"""What a model of a user's own is here, whatever it was made with."""

from collections.abc import Callable
from typing import Any, NamedTuple

from jaxtyping import Array, Key


class Functions(NamedTuple):
    """A model.

    Attributes:
        init: Function of a key and some rows to weights and statistics, two trees of
            arrays; statistics are measured in training, not learned, and often nothing.
        apply: Function of weights, statistics, rows, a key (None where nothing is
            drawn) and whether it is training, to outputs and the next statistics.
        asks_for_key: Whether a function has an argument for a key, which it may do
            without; else a model draws random numbers if it fails without a key.
        inputs_first: Whether matrices are `[inputs, outputs]`, as in Flax and Haiku.
    """

    init: Callable[[Key[Array, ""], Any], tuple[Any, Any]]
    apply: Callable[..., tuple[Any, Any]]
    asks_for_key: bool = False
    inputs_first: bool = False
