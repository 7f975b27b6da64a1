"""Parts that claims on final values share: pairs and remarks."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from .. import bounds
from ..bounds import Sample
from .numbers import Numbers, final, together

if TYPE_CHECKING:
    from .measured import Measured

DIFFERENCE = np.array([1.0, -1.0])
"""Weights of two sides in their difference."""


def difference(
    measured: "Measured", metric: str, one: str, other: str
) -> tuple[Sample, str]:
    """Returns the paired differences of final values, and what is to be said of them.

    That is who diverged and what that counts as, and who has no final value.
    """
    sides = [measured.of(final(metric), group) for group in (one, other)]
    return difference_of(sides, (one, other), "a final value")


def difference_of(
    sides: Sequence[Numbers], names: Sequence[str], called: str
) -> tuple[Sample, str]:
    """Returns the paired differences of two groups' numbers, and what is to be said.

    Args:
        sides: Numbers of the two groups.
        names: Names of the groups.
        called: What a run without a number lacks, in words.
    """
    said = (
        remarks(side, name, called) for side, name in zip(sides, names, strict=True)
    )
    return bounds.contrast(together(*sides), DIFFERENCE), "".join(said)


def of_group(measured: "Measured", metric: str, group: str) -> tuple[Sample, str]:
    """Returns the final values of a group, and remarks on runs that diverged."""
    return alone(measured.of(final(metric), group), group)


def alone(numbers: Numbers, group: str) -> tuple[Sample, str]:
    """Returns the numbers of a group, and remarks on runs that diverged."""
    known = numbers.known
    return Sample(numbers.low[known], numbers.high[known]), remarks(numbers, group)


def remarks(numbers: Numbers, group: str, called: str = "a final value") -> str:
    """Returns words on the runs of a group that diverged, and on those without value.

    None is left out of a comparison, or counts as something, in silence.
    """
    said = ""
    if numbers.diverged.any():
        first = int(np.flatnonzero(numbers.diverged)[0])
        low, high = numbers.low[first], numbers.high[first]
        at = f"at least {low:.4g}" if np.isposinf(high) else f"at most {high:.4g}"
        said += f"; {int(numbers.diverged.sum())} of {group} diverged, {at}"
    if missing := int((~numbers.known).sum()):
        said += f"; {missing} of {group} without {called}"
    return said
