"""Rounds up and down what may be whole but for the rounding of floats.

`12 * 84 / 120 / 0.7` is 12, and 12.000000000000002 as floats: `ceil` makes it 13.
"""

from math import ceil, floor

SLACK = 1e-12
"""Part of a number, at least of 1: more than some products and quotients lose."""


def up(value: float) -> int:
    """Returns the least integer that is no less than a number, but for rounding.

    It may be a little below the number.
    """
    near = round(value)
    return near if _is_whole(value, near) else ceil(value)


def down(value: float) -> int:
    """Returns the largest integer that is no more than a number, but for rounding.

    It may be a little above the number.
    """
    near = round(value)
    return near if _is_whole(value, near) else floor(value)


def _is_whole(value: float, near: int) -> bool:
    return abs(value - near) <= SLACK * max(1.0, abs(value))
