"""Maps of winners over two swept keys, against loops over replicates."""

import math
import statistics

import numpy as np
import pytest

from stalesim.analysis.figures.winner_maps import of_target, winner_map, winners
from stalesim.analysis.targets import default_target
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


def _everywhere(finals: dict[str, list[float]]) -> Grid:
    points = [{"q": q, "n": n} for q in SPEEDS for n in SIZES]
    return Grid([(name, at, finals[name]) for name in finals for at in points])


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
    assert bar.get_ylabel() == "Ratio"
    assert "Final test accuracy, a over b: medians of" in axes.figure.get_supxlabel()
    (borders,) = axes.collections
    assert len(borders.get_segments()) == 1  # of (1, 4) and (1, 8)
    figure = winner_map(_study(), ["a", "b", "c"])
    assert [t.get_text() for t in figure.legends[0].get_texts()] == ["a", "b", "c"]


def test_winner_number_and_line_are_of_the_same_pairs() -> None:
    # At q = 1 the ratio of medians (0.5 to 0.35) is above 1, that of pairs below it.
    table = {
        ("a", 1): [0.1, 0.3, 0.5, 0.6, 0.7],
        ("b", 1): [0.15, 0.35, 0.4, 0.65, 0.3],
        ("a", 2): [0.5, 0.6, 0.4, 0.5, 0.6],
        ("b", 2): [0.4, 0.6, 0.4, 0.5, 0.7],
    }
    cells = [(x, {"q": q, "n": n}, v) for (x, q), v in table.items() for n in SIZES]
    study = Grid(cells)
    found = winners(study, ["a", "b"]).set_index(["q", "n"])
    assert found.loc[(1, 4), "winner"] == "b"
    assert found.loc[(1, 4), "ratio"] == pytest.approx(0.6 / 0.65)
    assert found.loc[(2, 4), ["winner", "ratio"]].tolist() == ["", 1.0]
    axes = winner_map(study, ["a", "b"]).axes[0]
    assert {text.get_text() for text in axes.texts} == {"0.923", "tie"}


def test_nobody_wins_who_is_beaten() -> None:
    final = {"a": [0.3, 0.2, 0.1], "b": [0.2, 0.1, 0.3], "c": [0.1, 0.3, 0.2]}
    axes = winner_map(_everywhere(final), list(final)).axes[0]
    assert {text.get_text() for text in axes.texts} == {"none"}


def test_a_bound_alone_has_no_winner() -> None:
    # a is there between 1 s and 2 s, b at 2 s or later: the ratio is 1 or more.
    study = _everywhere({"a": [0.9] * 6, "b": [0.1] * 6})
    seen = study.tables["evaluations"]
    seen.loc[seen["time"] == 1, "test_accuracy"] = 0.1
    table = winners(study, ["a", "b"], target=0.8)
    cells = set(zip(table["winner"], table["ratio"], table["bound"], strict=True))
    assert cells == {("", 1.0, "≥")}


def test_the_map_of_the_command_has_the_target_of_time_to_target() -> None:
    study = _study()
    name, figure = of_target(study, ["a", "b"])
    assert name == "winner-a-b"
    goal = f"≥ {default_target(study).value:.4g}"
    words = figure.get_supxlabel()
    assert goal in words
    assert "95 % of the best" in words


def test_what_is_not_there_is_said() -> None:
    with pytest.raises(StudyError, match="must be of variants, got 'aa'; did you"):
        winners(_study(), ["aa", "b"])
    with pytest.raises(StudyError, match="two or more variants, got a; known are a, b"):
        winners(_study(), ["a"])
