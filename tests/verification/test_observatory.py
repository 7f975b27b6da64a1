"""The observatory: worlds by their number, judgement, and what is tuned."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from analysis.theory import expected_order_statistic
from benchmarks.observatory import borders, methods, ratios, tuned, worlds
from benchmarks.observatory.methods import checks
from simulator.protocols import Asynchronous
from simulator.timeline import Kind


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


@pytest.mark.parametrize(("batch", "noise"), [(1, 4.0), (8, 16.0), (16, 0.25)])
def test_rounds_to_the_target_are_counted_in_closed_form(batch, noise) -> None:
    """Mean and variance of each coordinate, step by step."""
    count, step = tuned.rounds_needed(batch, noise)
    mean, variance = tuned.START.copy(), np.zeros(tuned.D)
    squares = []
    for _ in range(count):
        mean = mean * (1 - step * tuned.CURVATURE)
        variance = variance * (1 - step * tuned.CURVATURE) ** 2
        variance = variance + step**2 * noise * tuned.EPSILON / tuned.D / batch
        squares.append(float(tuned.CURVATURE**2 @ (mean**2 + variance)))
    assert squares[-1] <= tuned.EPSILON
    assert min(squares[:-1], default=1.0) > tuned.EPSILON


def test_updates_are_replayed_with_what_their_clients_read() -> None:
    cell = tuned.TunedWorld(3, "exponential", 0.5, 1)
    ends, rows = cell.commits(Asynchronous(staleness_bound=2), 80)
    mean, variance = tuned.replayed(rows, 1)
    assert ends.size == 80 == len(mean)
    at = 5
    history = [tuned.START]
    for read in rows.read_version[rows.kind == Kind.COMMIT, 0]:
        old = history[int(read)]
        history.append(history[-1] - tuned.STEPS[at] * tuned.CURVATURE * old)
    slow = [float(tuned.CURVATURE**2 @ x**2) for x in history[1:]]
    np.testing.assert_allclose(mean[:, at], slow, rtol=1e-10)
    # After one step the variance is that of the noise: step^2 / D in each coordinate;
    # of 32 x 4 normal draws, weighted by a^4.
    wanted = tuned.STEPS**2 * (tuned.CURVATURE**2).sum() / tuned.D
    assert (np.abs(variance[0] / wanted - 1) < 4 * (2 / 32) ** 0.5).all()


def test_passing_the_target_is_not_reaching_it() -> None:
    mean = np.full((6, tuned.STEPS.size), 1e-5)
    mean[:2] = 1
    mean[4:, 0] = 1
    mean[5, 1] = np.nan
    at = tuned.reached(mean, np.zeros_like(mean), 1.0)
    assert at[:3].tolist() == [-1, -1, 2]


def test_mean_rounds_are_those_of_order_statistics() -> None:
    tau = np.array([0.4, 1.0, 2.5])
    laws = [stats.expon(scale=one) for one in tau]
    wanted = [expected_order_statistic(laws, m) for m in (1, 2, 3)]
    found = borders.mean_rounds("exponential", tau)
    np.testing.assert_allclose(found, wanted, rtol=1e-6)
    # The first of two Lomax(1.5) times of scale 1/2 is one of Lomax(3): 1/2 / (3 - 1).
    first = borders.mean_rounds("Lomax 1.5", np.ones(2))
    np.testing.assert_allclose(first, [0.25, 1.75], rtol=1e-4)  # they add up to 2


def test_spread_keeps_the_rate_of_all_clients() -> None:
    for spread in tuned.SPREADS:
        tau = tuned.TunedWorld(16, "constant", spread, 0).tau
        assert (1 / tau).mean() == pytest.approx(1)
        assert np.log(tau).std() == pytest.approx(0.95 * spread, abs=0.06)
