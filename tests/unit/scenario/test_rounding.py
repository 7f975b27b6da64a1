"""What is whole but for the rounding of floats is not rounded up or down by one."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from stalesim.analysis.theory.rounds import Lattice
from stalesim.simulator.catalogue.protocols.deadlines import RecentQuantile
from stalesim.simulator.catalogue.protocols.sizes import TargetStaleness
from stalesim.simulator.parts.expressions import down, up
from stalesim.simulator.timelines.arrays.events import window_ends
from stalesim.simulator.world.power import PowerTable

SHARES = [n / 100 for n in range(1, 101)]


def exact(share: float) -> Fraction:
    """Returns the number that is written."""
    return Fraction(repr(share))


def test_shares_of_whole_numbers_are_rounded_as_written() -> None:
    pairs = list(itertools.product(SHARES, range(1, 201)))
    wrong = 0
    for share, number in pairs:
        assert up(share * number) == math.ceil(exact(share) * number)
        assert down(share * number) == math.floor(exact(share) * number)
        wrong += math.ceil(share * number) != math.ceil(exact(share) * number)
    assert wrong  # floats alone are not enough


@pytest.mark.parametrize("value", [0.0, -2.5, 1e-6, 1e15, 7 + 1e-6, 7 - 1e-6])
def test_what_is_not_whole_is_rounded_as_ever(value: float) -> None:
    assert (up(value), down(value)) == (math.ceil(value), math.floor(value))


def test_a_buffer_at_its_target_keeps_its_size() -> None:
    rule = TargetStaleness(target=0.7, most=50)
    watch = rule.make()
    for number in range(120):  # 84 in all
        watch.arrived(int(number % 10 < 7))
    wanted = watch.next(12, None)
    assert wanted > 12
    assert rule.bounded(wanted, 12) == 12


def test_a_deadline_is_the_quantile_that_is_written() -> None:
    for share, number in itertools.product(SHARES, (20, 100)):
        watch = RecentQuantile(share=share).make()
        for seconds in range(1, number + 1):
            watch.arrived(float(seconds))
        assert watch.begin() == math.ceil(exact(share) * number)


@pytest.mark.parametrize("length", [0.1, 0.3, 0.7])
def test_who_arrives_at_the_end_of_a_window_does_not_wait(length: float) -> None:
    arrivals = np.cumsum(np.full(50, length)).tolist()
    ends, _ = window_ends(arrivals, length, math.inf, math.inf)
    np.testing.assert_allclose(ends, arrivals, rtol=1e-12)


@pytest.mark.parametrize("value", [0.1, 0.3, 0.7])
@pytest.mark.parametrize("on", [0.7, 3.0, 7.0])
def test_work_that_fills_its_turns_does_not_wait_for_the_next(
    value: float, on: float
) -> None:
    table = PowerTable([0.0, on], [value, 0.0], 20.0)
    for turns in range(1, 9):
        work = float(exact(value) * exact(on) * turns)
        assert table.duration(0.0, work) == pytest.approx(20 * (turns - 1) + on)


def test_a_lattice_law_has_all_of_its_values() -> None:
    law = Lattice(stats.geom(0.2), 0.1, 0.7)
    steps = np.arange(1, 60)
    np.testing.assert_allclose(
        law.cdf(law.shift + law.scale * steps), stats.geom(0.2).cdf(steps)
    )
