"""The ratio of what it takes two variants to reach a target."""

import numpy as np

from .. import bounds
from ..bounds import Sample
from ..statistics import LEVEL
from .final_values import DIFFERENCE
from .numbers import Numbers, together
from .verdict import Judged, judged, side

LEAST_PART = 100.0
"""Times as close as evaluations are that they are advised to be, at most."""
WHOLE = ("commits", "rounds")
"""Counts of which `evaluate.every` takes whole numbers alone."""


def ratio_to_target(
    one: str,
    other: str,
    sides: list[Numbers],
    to: str,
    words: str,
    least: float,
    *,
    counted: str = "commits",
) -> Judged:
    """Judges the ratio of times, or of counts, until something was reached.

    Args:
        one: Name of the faster group.
        other: Name of the slower group.
        sides: What it took either.
        to: Words that complete the claim.
        words: Words on the ratio.
        least: Smallest ratio.
        counted: Count that is compared.
    """
    if least != 1:
        to += f", {least:g} times"
    fast, slow = sides
    both = together(slow, fast)
    border = float(np.log(least))
    sample = bounds.contrast(bounds.logarithm(both), DIFFERENCE)
    evidence = side(sample, border)
    did_slow, did_fast = np.isfinite(both.high).sum(axis=0)
    n = sample.low.size
    why = f"ratio against {least:g}"
    if at_once := int((both.high <= 0).any(axis=1).sum()):
        why += f"; {at_once} pairs at the target before anything was learned"
    if did_slow < n or did_fast < n:
        late = [name for name, k in ((other, did_slow), (one, did_fast)) if k < n]
        why += f"; {' and '.join(late)} did not always reach the target"
    if min(evidence) > (1 - LEVEL) / 2:
        why += resolution(both, sample, border, counted)
    found = judged(to, words, sample, evidence, why, logs=True)
    if not n:
        return found
    reached = f"reached {did_fast}/{n} and {did_slow}/{n}"
    return found._replace(measured=f"{found.measured}; {reached}")


def resolution(both: Sample, ratios: Sample, border: float, counted: str) -> str:
    """Returns how far apart evaluations leave ratios open, and which would decide.

    Those of half of the ratios would: a period that leaves a ratio open by less than
    its middle lies from the border.

    Args:
        both: What it took the slower and the faster side.
        ratios: Logarithms of their ratios.
        border: Border of the claim, a logarithm.
        counted: Count that is compared, for the unit.
    """
    seen = np.isfinite(both.high).all(axis=1) & (both.high > 0).all(axis=1)
    mine = seen & (ratios.low <= border) & (ratios.high >= border)
    mine &= (both.low < both.high).any(axis=1)
    if not mine.any():
        return ""
    if np.isinf(both.low[mine]).any():
        return "; the evaluations before are not known"
    unit = "s" if counted == "time" else counted
    apart = float(np.median((both.high - both.low)[mine]))
    ends = np.exp([ratios.low[mine].min(), ratios.high[mine].max()])
    said = (
        f"; {mine.sum()} ratios may lie on either side: evaluations {apart:.3g} {unit} "
        f"apart leave {ends[0]:.3g} to {ends[1]:.3g}"
    )
    middles = (both.low + both.high)[mine] / 2
    away = np.abs(np.log(middles[:, 0] / middles[:, 1]) - border)
    needed = float(np.median(away / (1 / middles).sum(axis=1)))
    from ...simulator.scenario.scenario import Every  # which imports this to be read

    if needed < apart / LEAST_PART or counted not in Every.model_fields:
        return said
    if needed < 1 and counted in WHOLE:
        return f"{said}; evaluate.every of {{{counted}: 1}} is the finest"
    digit = 10.0 ** np.floor(np.log10(needed))
    period = float(f"{np.floor(needed / digit) * digit:.1g}")
    written = np.format_float_positional(period, trim="-")  # YAML reads no 2e-05
    return f"{said}; evaluate.every of {{{counted}: {written}}} may decide"
