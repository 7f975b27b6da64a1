"""Final values along a sweep."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ...simulator.config.errors import StudyError
from ..bounds import Sample, contrast
from ..facts import short
from .numbers import final, together

if TYPE_CHECKING:
    from .measured import Measured


def swept(
    measured: "Measured", over: str, variant: str, groups: Sequence[str]
) -> dict[Any, str]:
    """Returns which of some groups has each swept value of a variant, in their order.

    Raises:
        StudyError: The key is not swept, or others are as well.
    """
    at: dict[Any, str] = {}
    mine = measured.groups(variant)
    for group in filter(mine.__contains__, groups):
        parameters = measured.parameters(group)
        if over not in parameters:
            raise StudyError(f"{over} is not swept for {variant}")
        value = short(parameters[over])
        if value in at:
            raise StudyError(f"more than {over} is swept for {variant}")
        at[value] = group
    if not at:
        raise StudyError(f"the study has no finished runs of {variant!r}")
    return at


def along(
    measured: "Measured", claim: Any, groups: tuple[str, ...]
) -> tuple[list[Any], Sample, str]:
    """Returns final values along a sweep, less those of a variant that is subtracted.

    Args:
        measured: Quantities of the study.
        claim: Claim with the entries `metric` and `over`.
        groups: Groups that it is about.

    Returns:
        The swept values, numbers in their order and words in that of the sweep; final
        values, `[replicates, swept values]`, of the replicates that have all of them;
        and words on those that have not.

    Raises:
        StudyError: The key is not swept, or others are as well.
    """
    metric, over = claim.metric, claim.over
    variants = [name for names in claim.variants().values() for name in names]
    sides = [swept(measured, over, name, groups) for name in variants]
    numbers = all(isinstance(value, int | float) for value in sides[0])
    names = sorted(sides[0]) if numbers else list(sides[0])
    if any({*side} != {*names} for side in sides):
        raise StudyError(f"{' and '.join(variants)} have different values of {over}")
    columns = [measured.of(final(metric), at[name]) for at in sides for name in names]
    sample = together(*columns)
    if len(sides) == 2:
        eye = np.eye(len(names))
        ends = [contrast(sample, row) for row in np.hstack([eye, -eye])]
        sample = Sample(*(np.column_stack(end) for end in zip(*ends, strict=True)))
    said = ""
    if lost := sum(int(column.diverged.sum()) for column in columns):
        said += f"; {lost} runs diverged and are as bad as the worst, or worse"
    every = set().union(*(column.replicates.tolist() for column in columns))
    if missing := len(every) - len(sample.low):
        said += f"; {missing} replicates without a final value at some {over}"
    return names, sample, said
