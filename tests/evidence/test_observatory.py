"""The observatory: worlds by their number, judgement, and blocks of them."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from evidence.studies.observatory import methods, ratios, worlds
from evidence.studies.observatory.methods import checks


@pytest.fixture(scope="module")
def found() -> pd.DataFrame:
    """Checks of two worlds of each kind."""
    rows = [
        (kind, number, made.size, *check)
        for kind in worlds.KINDS
        for number in (1, 2)
        for made in [worlds.world(kind, number)]
        for check in checks(made)
    ]
    return pd.DataFrame(rows, columns=list(ratios.FIELDS))


def test_ratios_lie_in_their_intervals(found) -> None:
    """Worlds 1 and 2 of 1,000; a mean is wrong by chance once in 200 at most."""
    judged = ratios.judged(found)
    assert judged["violations"].sum() == 0
    assert {"ASGD", "Rennala", "MindFlayer", "Ringleader"} <= {*judged["method"]}


def test_what_is_beyond_its_interval_is_a_violation(found) -> None:
    forged = found.copy()
    bound = forged["quantity"] == "R commits / t(R)"
    forged.loc[bound, "ratio"] *= 4
    exact = forged["quantity"] == "round / exact time"
    forged.loc[exact, "ratio"] *= 1 + 1e-6
    mean = forged["quantity"] == "time of a commit x throughput"
    forged.loc[mean, "p"] = 1e-9
    judged = ratios.judged(forged).set_index("quantity")["violations"]
    for quantity in (
        "R commits / t(R)",
        "round / exact time",
        "time of a commit x throughput",
    ):
        assert (judged[quantity] > 0).all(), quantity


def test_rounds_that_wait_for_times_without_a_mean_are_cut(monkeypatch) -> None:
    """After 4,000 jobs the first round of world 576 still waits for a second job."""
    monkeypatch.setattr(methods, "MOST", 4000)
    found = [*methods._ringleader(worlds.world("heavy", 576))]
    assert [(check.quantity, check.ratio) for check in found] == [(methods.CUT, 0.0)]


def test_chances_of_rounds_are_those_of_order_statistics() -> None:
    """Of alike clients: that of the m-th of n uniforms at F(t) is beta."""
    law = worlds.HeavyLaw("weibull_min", 0.5, 0.2, 1.5)
    made = worlds.world("heavy", 0)._replace(laws=(law,) * 5, tau=np.ones(5))
    times = np.array([0.1, 0.3, 1.0, 4.0, 40.0])
    for m in (1, 3, 5):
        wanted = stats.beta.cdf(law.cdf(times), m, 6 - m)
        np.testing.assert_allclose(methods._chance(made, m, times), wanted, atol=1e-12)


def test_blocks_that_are_there_are_not_played_again(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(ratios, "BLOCK", 1)
    block = (tmp_path / "fixed-00000.csv", "fixed", 1, 2)
    ratios._play(block)
    first = block[0].read_bytes()
    block[0].unlink()
    ratios._play(block)
    assert block[0].read_bytes() == first
    block[0].write_text("kept")
    ratios._play(block)
    assert block[0].read_text() == "kept"
