"""Looks at a study, and many claims at once: levels and corrected p-values."""

import numpy as np
import pytest
import scipy.stats
from scipy.stats import norm

from analysis.claims.multiplicity import holm
from analysis.claims.sequential import (
    borders,
    information,
    nominal,
    overall,
    spent,
)

LOOKS = (5, 8, 12, 20)


def test_holm_by_hand() -> None:
    # Sorted: 0.01 x 4, 0.013 x 3 (not below the one before), 0.03 x 2, 0.04 x 1.
    found = holm(np.array([0.03, 0.01, 0.04, 0.013]))
    assert found == pytest.approx([0.06, 0.04, 0.06, 0.04])
    assert holm(np.array([0.02])) == pytest.approx([0.02])
    assert holm(np.array([0.02, np.nan])) == pytest.approx([0.04, 1.0])
    assert holm(np.zeros(0)).size == 0
    assert holm(np.array([0.9, 0.8])) == pytest.approx([1, 1])


@pytest.mark.parametrize(
    ("looks", "published"),
    [
        (2, [2.9626, 1.9686]),
        (3, [3.7103, 2.5114, 1.9930]),
        (4, [4.3326, 2.9631, 2.3590, 2.0141]),
        (5, [4.8769, 3.3569, 2.6803, 2.2898, 2.0310]),
    ],
)
def test_borders_of_equally_spaced_looks(looks: int, published: list[float]) -> None:
    # Of R's ldbounds and of Reboussin, DeMets, Kim and Lan (2000), to four digits.
    found = borders(0.05, tuple((k + 1) / looks for k in range(looks)))
    assert found == pytest.approx(published, abs=6e-4)


@pytest.mark.parametrize("error", [0.05, 0.05 / 6])
def test_a_plan_spends_its_error_and_no_more(error: float) -> None:
    # Against SciPy's normal probabilities of boxes; Cov(Z_i, Z_j) = sqrt(t_i / t_j).
    fractions = information(20, LOOKS)
    found = np.array(borders(error, fractions))
    covariance = np.array(
        [[(min(s, t) / max(s, t)) ** 0.5 for t in fractions] for s in fractions]
    )
    for k in range(1, 5):
        law = scipy.stats.multivariate_normal(
            np.zeros(k), covariance[:k, :k], abseps=1e-7, maxpts=1_000_000, seed=1
        )
        inside = law.cdf(found[:k], lower_limit=-found[:k])
        # Its own error is far below 1e-6 at k = 2, and some 1e-6 at k = 4.
        assert 1 - inside == pytest.approx(spent(error, fractions[k - 1]), abs=1e-5)
    assert spent(error, 1.0) == pytest.approx(error)


def test_little_is_spent_at_first_and_nearly_all_at_last() -> None:
    levels = nominal(0.05, information(20, LOOKS))
    assert levels[0] == pytest.approx(4 * norm.sf(norm.isf(0.0125) / 0.5), rel=1e-9)
    assert levels == sorted(levels)
    assert levels[0] < 1e-4
    assert 0.045 < levels[-1] < 0.05


@pytest.mark.parametrize("look", range(4))
@pytest.mark.parametrize("error", [0.9, 0.05, 0.001, 1e-8])
def test_a_nominal_level_is_worth_the_error_of_its_plan(
    look: int, error: float
) -> None:
    n = LOOKS[look]
    level = nominal(error, information(n, LOOKS))[look]
    assert overall(level, n, LOOKS) == pytest.approx(error, rel=1e-3)


def test_what_a_p_value_is_worth() -> None:
    assert overall(0.03, 7, ()) == 0.03  # of a study that was looked at once
    assert np.isnan(overall(float("nan"), 8, LOOKS))
    assert overall(1.0, 8, LOOKS) == 1
    assert overall(0.0, 20, LOOKS) < 1e-12
    worth = [overall(p, 12, LOOKS) for p in np.geomspace(1e-12, 1, 50)]
    assert worth == sorted(worth)
    # A last look is worth a little less than a single one.
    assert 0.04 < overall(0.04, 20, LOOKS) < 0.045


def test_looks_that_were_not_planned() -> None:
    assert information(10, LOOKS) == (0.25, 0.4, 0.5)
    assert information(20, LOOKS) == (0.25, 0.4, 0.6, 1)
    assert information(40, LOOKS) == (0.125, 0.2, 0.3, 0.5, 1)
    assert information(3, LOOKS) == (0.15,)
    # An early look that nobody planned spends little, too.
    assert overall(0.01, 10, LOOKS) > 0.05
