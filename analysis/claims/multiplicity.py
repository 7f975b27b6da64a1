"""Many claims at once: what a p-value is worth among the others of its family."""

import numpy as np
from jaxtyping import Float


def holm(chances: Float[np.ndarray, " m"]) -> Float[np.ndarray, " m"]:
    """Returns p-values that hold for a whole family, by Holm's step-down correction.

    Deciding all claims whose corrected value is at most 0.05 decides any of them
    wrongly with a chance of at most 0.05, however the claims depend on each other.

    Args:
        chances: p-values of the family; NaN for a claim that could not be measured,
            which counts as one.

    Source: Holm, A simple sequentially rejective multiple test procedure (Scandinavian
    Journal of Statistics 1979).
    """
    known = np.nan_to_num(np.asarray(chances, np.float64), nan=1.0)
    order = np.argsort(known, kind="stable")
    factors = np.arange(known.size, 0, -1)
    stepped = np.minimum(1.0, np.maximum.accumulate(factors * known[order]))
    corrected = np.empty_like(known)
    corrected[order] = stepped
    return corrected
