"""Medians between two numbers, one of which may be infinite."""

import numpy as np
import pytest

from stalesim.analysis.bounds import exact
from stalesim.analysis.claims.verdict import near

SPREAD = np.linspace(-0.1, 0.1, 20)


@pytest.mark.parametrize("mean", [-1.0, 1.0])
def test_an_infinite_end_excludes_nothing(mean: float) -> None:
    """A ratio of at most twice 1 has no least logarithm."""
    sample = exact(mean + SPREAD)
    found, mirrored = near(sample, -np.inf, 0.0), near(sample, 0.0, np.inf)
    true = found if mean < 0 else mirrored
    false = mirrored if mean < 0 else found
    # All 20 lie on one side.
    assert true.for_it < 1e-4
    assert true.against > 0.99
    assert false.against < 1e-4
    assert false.for_it > 0.99
