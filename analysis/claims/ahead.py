"""Claims that one variant is ahead of another after some time."""

import numpy as np

from ...simulator.claims.ahead import Ahead
from ..instants import Instant, values_at
from .final_values import difference_of
from .measured import Frame, Measured, Numbers
from .verdict import Judged, judged, side


def quantities(claim: Ahead) -> dict[str, Frame]:
    """Returns the values at the claim's instant."""
    ((counted, at),) = claim.after.items()
    metric = claim.metric
    return {_at(claim): lambda study: values_at(study, metric, at, counted)}


def judge(measured: Measured, claim: Ahead, one: str, other: str) -> Judged:
    """Judges the median paired difference at an instant against `by`.

    It is turned so that more is better. A run that diverged before has the worst value,
    or a worse one; a pair of which one run ended before cannot be compared.
    """
    metric, lead = claim.metric, claim.by
    when = Instant(*next(iter(claim.after.items())))
    sides = [_diverged_by_then(measured.of(_at(claim), g)) for g in (one, other)]
    sample, said = difference_of(sides, (one, other), f"a value after {when}")
    rising = measured.metric(metric).higher_is_better
    better = sample if rising else sample.mirrored
    to = f" in {metric} after {when}" + (f", by {lead:g}" if lead else "")
    why = f"difference against {lead if rising else 0.0 - lead:g}{said}"
    of = f"difference of {metric} after {when}"
    return judged(to, of, sample, side(better, lead), why)


def _diverged_by_then(numbers: Numbers) -> Numbers:
    """Returns numbers of which those alone count as diverged that did so before."""
    is_lost = np.isinf(numbers.low) | np.isinf(numbers.high)
    return numbers._replace(diverged=numbers.diverged & is_lost)


def _at(claim: Ahead) -> str:
    """Returns the name of the value at the claim's instant."""
    ((counted, at),) = claim.after.items()
    return f"{claim.metric} at {counted} {at!r}"
