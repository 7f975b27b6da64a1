"""Final values along a sweep."""

from collections.abc import Sequence
from typing import Any

from analysis.bounds import Sample
from analysis.claims.measured import Measured, final, together
from analysis.frames import short
from simulator.claims.monotone import Monotone
from simulator.claims.steady import Steady
from simulator.trace import StudyError


def swept(
    measured: Measured, over: str, variant: str, groups: Sequence[str]
) -> dict[Any, str]:
    """Returns the group of each swept value of a variant, in the order of the sweep.

    Raises:
        StudyError: The key is not swept, or others are as well.
    """
    at: dict[Any, str] = {}
    for group in groups:
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
    measured: Measured, claim: Monotone | Steady, groups: tuple[str, ...]
) -> tuple[list[Any], Sample, str]:
    """Returns final values along a sweep.

    Returns:
        The swept values, numbers in their order and words in that of the sweep; final
        values, `[replicates, swept values]`, of the replicates that have all of them;
        and words on those that have not.

    Raises:
        StudyError: The key is not swept, or others are as well.
    """
    metric, over = claim.metric, claim.over
    ((variant,),) = claim.variants().values()
    at = swept(measured, over, variant, groups)
    numbers = all(isinstance(value, int | float) for value in at)
    names = sorted(at) if numbers else list(at)
    columns = [measured.of(final(metric), at[name]) for name in names]
    sample = together(*columns)
    said = ""
    if lost := sum(int(column.diverged.sum()) for column in columns):
        said += f"; {lost} runs diverged and are as bad as the worst, or worse"
    every = set().union(*(column.replicates.tolist() for column in columns))
    if missing := len(every) - len(sample.low):
        said += f"; {missing} replicates without a final value at some {over}"
    return names, sample, said
