"""Maps over two swept keys: numbers, and winners against loops over replicates."""

import math
import statistics
from collections.abc import Callable
from typing import Any

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib.axes import Axes

from stalesim.analysis import style
from stalesim.analysis.figures import heat_maps
from stalesim.analysis.figures.heat_maps import heat_map
from stalesim.analysis.figures.winner_maps import of_target, winner_map, winners
from stalesim.analysis.targets import default_target
from stalesim.simulator.files.study import StudyError
from tests.unit.analysis.drawn import legend_of, titles_of
from tests.unit.analysis.studies import Curves, Grid, arrives

SLOW, FAST = {"law": "lognorm", "s": 1.5}, {"law": "expon"}


def _study(**more: Any) -> Grid:
    points = [
        (variant, {"algorithm.q": q, "clients.compute": law}, [v, v + 0.02, v + 0.04])
        for variant, first in (("a", 0.5), ("b", 0.7))
        for q, law, v in [
            (2, SLOW, first),
            (2, FAST, first + 0.1),
            (10, SLOW, first + 0.05),
            (10, FAST, first + 0.15),
        ]
    ]
    return Grid([*points, ("central", {}, [0.95] * 3)], **more)


def _numbers(axes: Axes) -> np.ndarray:
    return np.asarray(axes.get_images()[0].get_array().filled(np.nan))


def _texts(axes: Axes) -> set[str]:
    return {text.get_text() for text in axes.texts}


def test_final_values() -> None:
    figure = heat_map(_study())
    first, second, bar = figure.axes
    np.testing.assert_allclose(_numbers(first), [[0.52, 0.57], [0.62, 0.67]])
    np.testing.assert_allclose(_numbers(second), [[0.72, 0.77], [0.82, 0.87]])
    assert _texts(first) == {"0.52", "0.57", "0.62", "0.67"}
    for axes in (first, second):
        assert axes.get_images()[0].get_clim() == pytest.approx((0.52, 0.87))
    assert [label.get_text() for label in first.get_xticklabels()] == ["2", "10"]
    words = [label.get_text() for label in first.get_yticklabels()]
    assert words == ["lognorm(s=1.5)", "expon"]
    assert titles_of(figure)[:2] == ["a", "b"]
    keys = figure.get_supxlabel(), figure.get_supylabel()
    assert keys == ("Algorithm: q", "Compute")
    said = "Final test accuracy\n(mean of the last tenth of evaluations)"
    assert bar.get_ylabel() == said
    assert "not swept over both: central 0.95" in figure.get_suptitle()


def test_cells_whose_target_was_not_reached() -> None:
    first, second, bar = heat_map(_study(), target=0.66).axes
    np.testing.assert_array_equal(_numbers(first), [[np.nan] * 2, [np.nan, 1]])
    assert _texts(first) == {"never\n0/3", "1\n2/3"}
    assert [patch.get_hatch() for patch in first.patches] == ["////"] * 3
    assert not second.patches
    assert bar.get_ylabel() == "Virtual time (s) to test accuracy ≥ 0.66"
    first, *_ = heat_map(_study(), target=0.5, against="bytes").axes
    np.testing.assert_allclose(_numbers(first), 10.01)
    assert _texts(first) == {"10"}


def test_cells_that_diverged_or_were_not_run() -> None:
    study = _study()
    for number, stop in enumerate(["diverged"] * 4 + ["time"] * 2 + ["failed"] * 3):
        study.manifest["runs"][number]["stop"] = stop
    first, *_ = heat_map(study).axes
    assert _texts(first) == {"no value\n0/3", "0.63\n2/3", "0.67"}
    assert np.isnan(_numbers(first)[0]).all()


def test_cells_at_an_instant() -> None:
    first, *_ = heat_map(_study(), after=0.5).axes
    assert (set(_numbers(first).flat), _texts(first)) == ({0.0}, {"0"})
    figure = heat_map(_study(), after=1)
    np.testing.assert_allclose(_numbers(figure.axes[0]), [[0.52, 0.57], [0.62, 0.67]])
    assert figure.axes[-1].get_ylabel() == "Test accuracy after 1 s"


THREE = Grid(
    [
        ("a", {"x": x, "y": y, "z": z}, [x + y + z])
        for x in (1, 2)
        for y in (1, 2)
        for z in (0.1, 0.2)
    ]
)
APART = Grid([("a", {"x": 1}, [1]), ("a", {"x": 2}, [1]), ("b", {"y": 1}, [1])])
ELSEWHERE = Grid(
    [
        (name, {"x": x, "y": y}, [1])
        for name, x in {"a": 1, "b": 2}.items()
        for y in "pq"
    ]
)
REFUSED: list[tuple[str, Callable[[], Any]]] = [
    ("needs two swept keys, got x, y, z; name two", lambda: heat_map(THREE)),
    ("needs two swept keys, got none", lambda: heat_map(Curves({"a": [arrives(1)]}))),
    (r"more than x .* by at: z", lambda: heat_map(THREE, keys=("x", "y"))),
    ("must be two swept keys, got 'x'", lambda: heat_map(THREE, keys="x")),  # pyright: ignore
    ("w is not swept; known are x, y, z", lambda: heat_map(THREE, keys=("x", "w"))),
    ("no variant is swept over both", lambda: heat_map(APART, keys=("x", "y"))),
    ("lasted for 5 s", lambda: heat_map(_study(), after=5)),
    ("either target or after", lambda: heat_map(_study(), after=1, target=0.5)),
    (r"at must be values .* after=40", lambda: heat_map(THREE, at=40)),  # pyright: ignore
    ("be of variants, got 'aa'; did you", lambda: winners(_raced(), ["aa", "b"])),
    ("or more variants, got a; known are a, b", lambda: winners(_raced(), ["a"])),
    ("with a point in common, got a, b", lambda: winner_map(ELSEWHERE, ["a", "b"])),
]


@pytest.mark.parametrize(("words", "call"), REFUSED)
def test_what_cannot_be_drawn_is_said(words: str, call: Callable[[], Any]) -> None:
    with pytest.raises(StudyError, match=words):
        call()


def test_the_end_of_a_key_names_it_where_one_key_has_it() -> None:
    figure = heat_map(_study(), keys=("q", "compute"))
    whole = heat_map(_study(), keys=("algorithm.q", "clients.compute"))
    assert figure.get_supxlabel() == whole.get_supxlabel()
    both = Grid([("a", {"x.q": x, "y.q": y}, [1]) for x in (1, 2) for y in (1, 2)])
    with pytest.raises(StudyError, match=r"q is not swept; known are x\.q, y\.q"):
        heat_map(both, keys=("q", "y.q"))


def test_a_third_key_can_be_fixed() -> None:
    axes, *_ = heat_map(THREE, keys=("x", "y"), at={"z": 0.2}).axes
    np.testing.assert_allclose(_numbers(axes), [[2.2, 3.2], [3.2, 4.2]])


def test_colours() -> None:
    for place, ink in ((0.0, "white"), (1.0, "black")):
        color = mpl.colormaps[style.COLORMAP](place)
        assert heat_maps.readable_on(color) == ink
    commits = _study().table("evaluations")["commits"] + 1
    norm = heat_maps._norm(commits, logarithmic=True)
    assert (norm.vmin, norm.vmax) == (1, 21)
    assert norm(math.sqrt(21)) == pytest.approx(0.5)


def test_the_lowest_panel_of_every_column_has_numbers() -> None:
    """Of five panels in three columns, one stands above nothing."""
    points = [
        (variant, {"algorithm.q": q, "algorithm.b": b}, [0.5])
        for variant in "abcde"
        for q in (1, 2)
        for b in (1, 2)
    ]
    figure = heat_map(Grid(points))
    figure.draw_without_rendering()
    shown = [
        [label.get_text() for label in axes.get_xticklabels() if label.get_visible()]
        for axes in figure.axes[:5]
    ]
    assert shown == [[], [], *[["1", "2"]] * 3]


SPEEDS, SIZES = (1, 2), (4, 8)
SPREAD = np.array([0.0, 0.01, -0.01, 0.02, -0.02, 0.005])
FINAL = {
    "a": lambda q, n: 0.9 - 0.02 * n + SPREAD,
    "b": lambda q, n: 0.9 - 0.10 * q + 0.002 * n - SPREAD,
    "c": lambda q, n: 0.5 + SPREAD,
}


def _raced(replicates: int = 6) -> Grid:
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
    table = winners(_raced(), ["a", "b"]).set_index(["q", "n"])
    assert len(table) == 3  # a point that not all have is left out
    for (q, n), row in table.iterrows():
        pairs = zip(FINAL["a"](q, n), FINAL["b"](q, n), strict=True)
        logs = [math.log(a / b) for a, b in pairs]
        assert row["ratio"] == pytest.approx(math.exp(statistics.median(logs)))
        # Six replicates of one sign are decided by an exact sign test at 95 %.
        assert row["decided"] == (min(logs) > 0 or max(logs) < 0)
        assert row["winner"] == ("a" if row["ratio"] > 1 else "b")
    assert set(table["decided"]) == {True, False}
    assert not winners(_raced(5), ["a", "b"])["decided"].any()  # too few
    # Of several, the winner is compared with the next best.
    first = winners(_raced(), ["c", "a", "b"]).set_index(["q", "n"]).loc[(2, 4)]
    logs = np.log(FINAL["a"](2, 4)) - np.log(FINAL["b"](2, 4))
    assert first["winner"] == "a"
    assert first["ratio"] == pytest.approx(math.exp(np.median(logs)))


def test_faster_is_above_one_and_the_target_bounds() -> None:
    table = winners(_raced(), ["a", "b"], target=0.8).set_index(["q", "n"])
    # At (2, 4) b stays below 0.8 until the end, and a is there after a second.
    found = table.loc[(2, 4), ["winner", "bound", "decided"]]
    assert found.tolist() == ["a", "≥", True]
    assert table.loc[(2, 4), "ratio"] >= 1
    # a is there between 1 s and 2 s, b at 2 s or later: a bound has no winner.
    study = _everywhere({"a": [0.9] * 6, "b": [0.1] * 6})
    seen = study.tables["evaluations"]
    seen.loc[seen["time"] == 1, "test_accuracy"] = 0.1
    table = winners(study, ["a", "b"], target=0.8)
    points = set(zip(table["winner"], table["ratio"], table["bound"], strict=True))
    assert points == {("", 1.0, "≥")}


def test_cells_of_the_map_of_winners() -> None:
    axes, bar = winner_map(_raced(), ["a", "b"]).axes
    table = winners(_raced(), ["a", "b"])
    assert _texts(axes) == {f"{ratio:.3g}" for ratio in table["ratio"]}
    hatched = [patch for patch in axes.patches if patch.get_hatch()]
    assert len(hatched) == (~table["decided"]).sum()
    assert bar.get_ylabel() == "Ratio"
    assert "Final test accuracy, a over b: medians of" in axes.figure.get_supxlabel()
    (borders,) = axes.collections
    assert len(borders.get_segments()) == 1  # of (1, 4) and (1, 8)
    assert legend_of(winner_map(_raced(), ["a", "b", "c"])) == ["a", "b", "c"]
    final = {"a": [0.3, 0.2, 0.1], "b": [0.2, 0.1, 0.3], "c": [0.1, 0.3, 0.2]}
    assert _texts(winner_map(_everywhere(final), list(final)).axes[0]) == {"none"}


def test_winner_number_and_line_are_of_the_same_pairs() -> None:
    # At q = 1 the ratio of medians (0.5 to 0.35) is above 1, that of pairs below it.
    table = {
        ("a", 1): [0.1, 0.3, 0.5, 0.6, 0.7],
        ("b", 1): [0.15, 0.35, 0.4, 0.65, 0.3],
        ("a", 2): [0.5, 0.6, 0.4, 0.5, 0.6],
        ("b", 2): [0.4, 0.6, 0.4, 0.5, 0.7],
    }
    study = Grid(
        [(x, {"q": q, "n": n}, v) for (x, q), v in table.items() for n in SIZES]
    )
    found = winners(study, ["a", "b"]).set_index(["q", "n"])
    assert found.loc[(1, 4), "winner"] == "b"
    assert found.loc[(1, 4), "ratio"] == pytest.approx(0.6 / 0.65)
    assert found.loc[(2, 4), ["winner", "ratio"]].tolist() == ["", 1.0]
    assert _texts(winner_map(study, ["a", "b"]).axes[0]) == {"0.923", "tie"}


def test_the_map_of_the_command_has_the_target_of_time_to_target() -> None:
    study = _raced()
    name, figure = of_target(study, ["a", "b"])
    assert name == "winner-a-b"
    words = figure.get_supxlabel()
    assert f"≥ {default_target(study).value:.4g}" in words
    assert "95 % of the best" in words
