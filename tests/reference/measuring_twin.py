"""What is measured of contributions, number by number, from its formulas."""

import math
from collections.abc import Sequence


def effective(weights: Sequence[float]) -> float:
    """Returns (sum w)^2 / sum w^2 (Kish, 1965)."""
    total, squares = 0.0, 0.0
    for weight in weights:
        total += weight
        squares += weight * weight
    return total * total / squares


def cosine(a: Sequence[float], b: Sequence[float]) -> float:
    """Returns the cosine of the angle between two vectors; NaN if one is 0."""
    dot, of_a, of_b = 0.0, 0.0, 0.0
    for x, y in zip(a, b, strict=True):
        dot += x * y
        of_a += x * x
        of_b += y * y
    lengths = math.sqrt(of_a) * math.sqrt(of_b)
    return dot / lengths if lengths else math.nan
