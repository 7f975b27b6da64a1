"""Shapes of the arrays in the flat vector of a network's weights. No JAX here."""

import math

Shapes = tuple[tuple[int, ...], ...]
"""Shapes of all arrays, in the order of the flat vector."""


def size(shapes: Shapes) -> int:
    """Returns the length of the flat vector."""
    return sum(map(math.prod, shapes))
