"""Maps of winners over two swept keys, against loops over replicates."""

import math
import statistics

import numpy as np
import pytest

from stalesim.analysis.figures.winner_maps import winner_map, winners
from stalesim.simulator.trace import StudyError
from tests.unit.analysis.studies import Grid

SPEEDS, SIZES = (1, 2), (4, 8)
SPREAD = np.array([0.0, 0.01, -0.01, 0.02, -0.02, 0.005])
FINAL = {
    "a": lambda q, n: 0.9 - 0.02 * n + SPREAD,
    "b": lambda q, n: 0.9 - 0.10 * q + 0.002 * n - SPREAD,
    "c": lambda q, n: 0.5 + SPREAD,
}


def _study(replicates: int = 6) -> Grid:
    return Grid(
        [
            (name, {"q": q, "n": n}, list(final(q, n)[:replicates]))
            for name, final in FINAL.items()
            for q in SPEEDS
            for n in SIZES
            if (name, q, n) != ("b", 2, 8)
        ]
    )


def test_ratios_are_those_of_loops_over_replicates() -> None:
    table = winners(_study(), ["a", "b"]).set_index(["q", "n"])
    assert len(table) == 3  # a point that not all have is left out
    for (q, n), row in table.iterrows():
        pairs = zip(FINAL["a"](q, n), FINAL["b"](q, n), strict=True)
        logs = [math.log(a / b) for a, b in pairs]
        assert row["ratio"] == pytest.approx(math.exp(statistics.median(logs)))
        # Six replicates of one sign are decided by an exact sign test at 95 %.
        assert row["decided"] == (min(logs) > 0 or max(logs) < 0)
        assert row["winner"] == ("a" if row["ratio"] > 1 else "b")
    assert set(table["decided"]) == {True, False}
    assert not winners(_study(5), ["a", "b"])["decided"].any()  # too few


def test_the_winner_of_several_is_compared_with_the_next_best() -> None:
    table = winners(_study(), ["c", "a", "b"]).set_index(["q", "n"])
    first = table.loc[(2, 4)]
    logs = np.log(FINAL["a"](2, 4)) - np.log(FINAL["b"](2, 4))
    assert first["winner"] == "a"
    assert first["ratio"] == pytest.approx(math.exp(np.median(logs)))


def test_faster_is_above_one_and_the_target_bounds() -> None:
    table = winners(_study(), ["a", "b"], target=0.8).set_index(["q", "n"])
    # At (2, 4) b stays below 0.8 until the end, and a is there after a second.
    found = table.loc[(2, 4), ["winner", "bound", "decided"]]
    assert found.tolist() == ["a", "≥", True]
    assert table.loc[(2, 4), "ratio"] >= 1


def test_cells_of_the_map() -> None:
    axes, bar = winner_map(_study(), ["a", "b"]).axes
    table = winners(_study(), ["a", "b"])
    assert {text.get_text() for text in axes.texts} == {
        f"{ratio:.3g}" for ratio in table["ratio"]
    }
    hatched = [patch for patch in axes.patches if patch.get_hatch()]
    assert len(hatched) == (~table["decided"]).sum()
    assert bar.get_ylabel() == "Final test accuracy, a over b"
    (borders,) = axes.collections
    assert len(borders.get_segments()) == 1  # of (1, 4) and (1, 8)
    figure = winner_map(_study(), ["a", "b", "c"])
    assert [t.get_text() for t in figure.legends[0].get_texts()] == ["a", "b", "c"]


def test_what_is_not_there_is_said() -> None:
    with pytest.raises(StudyError, match="must be of variants, got 'aa'; did you"):
        winners(_study(), ["aa", "b"])
    with pytest.raises(StudyError, match="two or more variants, got a; known are a, b"):
        winners(_study(), ["a"])
