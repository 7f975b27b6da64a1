"""Looks at a study, and many claims at once: levels and corrected p-values."""

import numpy as np
import pytest
import scipy.stats

from stalesim.analysis.claims.sequential import holm, least, overall

LOOKS = (10, 14, 20)


def test_holm_by_hand() -> None:
    # Sorted: 0.01 x 4, 0.013 x 3 (not below the one before), 0.03 x 2, 0.04 x 1.
    found = holm(np.array([0.03, 0.01, 0.04, 0.013]))
    assert found == pytest.approx([0.06, 0.04, 0.06, 0.04])
    assert holm(np.array([0.02])) == pytest.approx([0.02])
    assert holm(np.array([0.02, np.nan])) == pytest.approx([0.04, 1.0])
    assert holm(np.zeros(0)).size == 0
    assert holm(np.array([0.9, 0.8])) == pytest.approx([1, 1])


def _sign(count: int, n: int) -> float:
    return scipy.stats.binomtest(count, n, 0.5).pvalue


@pytest.mark.parametrize("looks", [(10, 14, 20), (5, 8, 12, 20), (8, 9, 10, 11, 12)])
@pytest.mark.parametrize("error", [0.05, 0.05 / 6])
def test_a_plan_errs_no_more_than_it_says(looks: tuple[int, ...], error: float) -> None:
    """Fair coins, path by path: the share that is decided at any look."""
    coins = np.random.default_rng(1).random((200_000, looks[-1])) < 0.5
    decided = np.zeros(len(coins), bool)
    for n in looks:
        counts = coins[:, :n].sum(axis=1)
        worth = np.array([overall(_sign(c, n), n, looks) for c in range(n + 1)])
        decided |= worth[counts] <= error
    # Four standard errors of such a share.
    assert decided.mean() <= error + 4 * (error / len(coins)) ** 0.5
    assert decided.mean() > error / 20  # and it decides something


def test_a_plan_of_one_look_is_that_look() -> None:
    for count in (20, 17, 15, 12):
        assert overall(_sign(count, 20), 20, (20,)) == pytest.approx(_sign(count, 20))
    assert overall(0.03, 7, ()) == 0.03


def test_what_a_p_value_is_worth() -> None:
    assert np.isnan(overall(float("nan"), 14, LOOKS))
    assert overall(1.0, 14, LOOKS) == 1
    worth = [overall(p, 14, LOOKS) for p in np.geomspace(1e-7, 1, 50)]
    assert worth == sorted(worth)
    # At the last look 15 of 20 still decide, as they do of a study with one look.
    assert _sign(15, 20) < overall(_sign(15, 20), 20, LOOKS) < 0.05
    # At the first all of 10 do.
    assert overall(_sign(10, 10), 10, LOOKS) < 0.05 < overall(_sign(9, 10), 10, LOOKS)


def test_the_least_of_several_times_their_number_is_covered() -> None:
    """Steps of a sweep: any of six coins, at any look, by Bonferroni."""
    coins = np.random.default_rng(2).random((20_000, 6, 20)) < 0.5
    decided = np.zeros(len(coins), bool)
    for n in LOOKS:
        counts = coins[:, :, :n].sum(axis=2)
        worth = np.array(
            [overall(min(1.0, 6 * _sign(c, n)), n, LOOKS) for c in range(n + 1)]
        )
        decided |= (worth[counts] <= 0.05).any(axis=1)
    assert decided.mean() <= 0.05 + 4 * (0.05 / len(coins)) ** 0.5


def test_the_least_replicates_that_decide() -> None:
    # 2 ** (1 - n) times the family, at most 0.05.
    assert [least(m) for m in (1, 2, 3, 6, 7, 20)] == [6, 7, 7, 8, 9, 10]
    assert least(1, LOOKS) == 10
    assert least(6, LOOKS) == 14
    assert least(3, (5, 6)) is None
