"""The phase diagram of asynchrony and rounds, from times whose border is planted."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from benchmarks.observatory import borders, tuned
from generators import observatory

SEEDS, SLOPE, TILT = 6, 0.9, 0.15
AWAY = 0.2
"""Deviation of a pair's logarithm to base 2."""


def advantage(spread: Any, noise: Any) -> Any:
    """Returns the planted logarithm to base 2 of time in rounds over asynchrony's."""
    return SLOPE * (spread - 1) + TILT * (np.log2(noise) - 2)


def border(logs: Any, away: float = 0.0) -> Any:
    """Returns the spread at which rounds take 2^away as long, by log2 of the noise."""
    return 1 + (away - TILT * (logs - 2)) / SLOPE


def times(tails: list[str], apart: Callable[[int], float]) -> pd.DataFrame:
    """Returns seconds of methods whose ratios are planted, with worse sizes and steps.

    Args:
        tails: Tails of the worlds.
        apart: Deviation of a seed's logarithm of the ratio, to base 2.
    """
    rows = []
    shared = np.random.default_rng(5).normal(0, 3, SEEDS)
    for tail in tails:
        for spread in tuned.SPREADS:
            for noise in tuned.NOISES:
                for seed in range(SEEDS):
                    world = (16, tail, spread, seed)
                    # What a seed's world shares is far larger than what is compared.
                    fast = 2.0 ** shared[seed]
                    rows.append((*world, "ASGD", 0, noise, 0.5, 1.2 * fast))
                    rows.append((*world, "Ringmaster", 4, noise, 0.5, fast))
                    never = np.inf if seed == 0 else 0.1 * fast
                    rows.append((*world, "Ringmaster", 8, noise, 0.5, never))
                    for name in borders.ROUNDS.values():
                        found = advantage(spread, noise) + apart(seed)
                        slow = fast * 2.0**found
                        luck = 0.5 if seed == 1 else 1.5  # worse in the mean
                        rows.append((*world, name, 2, noise, 0.1, slow))
                        rows.append((*world, name, 4, noise, 0.1, luck * slow))
                        rows.append((*world, name, 16, noise, 0.2, 9 * slow))
    return pd.DataFrame(rows, columns=pd.Index(tuned.FIELDS))


@pytest.fixture(scope="module")
def drawn() -> pd.DataFrame:
    """The diagram's table where every second seed lies above, and the others below."""
    found = times([*tuned.TAILS], lambda seed: AWAY * (-1) ** seed)
    return borders.phases(borders.tuned(found))


HALF = stats.t.ppf(0.975, SEEDS - 1) * AWAY * (SEEDS / (SEEDS - 1)) ** 0.5 / SEEDS**0.5
"""Half of an interval: six deviations of `AWAY` have a variance of 6 / 5 AWAY^2."""


def test_ratios_and_intervals_are_those_of_the_best(drawn: pd.DataFrame) -> None:
    assert len(drawn) == 2 * len(tuned.TAILS) * len(tuned.SPREADS) * len(tuned.NOISES)
    assert set(drawn["m"]) == {2}
    assert set(drawn["asynchronous"]) == {"Ringmaster"}
    truth = advantage(drawn["spread"], drawn["noise"])
    for name, away in (("ratio", 0.0), ("low", -HALF), ("high", HALF)):
        np.testing.assert_allclose(np.log2(drawn[name]), truth + away, atol=1e-12)


def test_the_border_and_its_band_are_drawn_where_they_were_planted(drawn) -> None:
    """Logarithms are planes here, so that lines between grid points are exact."""
    figure = observatory._phase_figure(drawn)
    panels = [axes for axes in figure.axes if "stops" in axes.get_title()]
    assert len(panels) == 2 * len(tuned.TAILS)
    for axes in panels:
        _, *lines = axes.collections
        for line, away in zip(lines, (0.0, HALF, -HALF), strict=False):
            x, y = np.concatenate([p.vertices for p in line.get_paths()]).T
            assert len(x) >= len(tuned.NOISES)
            np.testing.assert_allclose(x, border(y, away), atol=1e-9)
        assert np.ptp(border(np.log2(tuned.NOISES))) > 1


def test_the_page_counts_worlds_outside_the_band(drawn: pd.DataFrame) -> None:
    truth = advantage(drawn["spread"], drawn["noise"])[drawn["rounds"] == "stops"]
    wins, loses = (truth > HALF).sum(), (truth < -HALF).sum()
    said = " ".join(observatory._phase_words(drawn).split())
    assert wins > 9 < loses < len(truth) - wins
    assert (
        f"stops asynchrony wins in {wins} of {len(truth)} worlds, loses in {loses}, "
        f"and {len(truth) - wins - loses} are undecided."
    ) in said


def test_intervals_cover_a_planted_ratio_as_often_as_they_say(monkeypatch) -> None:
    """Of 150 means of normal deviations all but a twentieth, by four deviations."""
    monkeypatch.setattr(borders, "_theory", lambda *_: [1.0] * len(tuned.NOISES))
    draw = np.random.default_rng(8)
    found = borders.phases(
        borders.tuned(times([*tuned.TAILS], lambda _: float(draw.normal(0, AWAY))))
    )
    truth = 2.0 ** advantage(found["spread"], found["noise"])
    covered = ((found["low"] <= truth) & (truth <= found["high"])).sum()
    number = len(found)
    assert abs(covered - 0.95 * number) <= 4 * (0.95 * 0.05 * number) ** 0.5
