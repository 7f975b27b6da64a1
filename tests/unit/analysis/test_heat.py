"""Heat maps over two swept keys."""

import math
from typing import Any

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib.axes import Axes

from stalesim.analysis import style
from stalesim.analysis.figures import heat_maps, report
from stalesim.simulator.trace import StudyError
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
    figure = heat_maps.heat_map(_study())
    first, second, bar = figure.axes
    np.testing.assert_allclose(_numbers(first), [[0.52, 0.57], [0.62, 0.67]])
    np.testing.assert_allclose(_numbers(second), [[0.72, 0.77], [0.82, 0.87]])
    assert _texts(first) == {"0.52", "0.57", "0.62", "0.67"}
    for axes in (first, second):
        assert axes.get_images()[0].get_clim() == pytest.approx((0.52, 0.87))
    assert [label.get_text() for label in first.get_xticklabels()] == ["2", "10"]
    words = [label.get_text() for label in first.get_yticklabels()]
    assert words == ["lognorm(s=1.5)", "expon"]
    assert [a.get_title(loc="left") for a in (first, second)] == ["a", "b"]
    assert figure.get_supxlabel() == "Algorithm: q"
    assert figure.get_supylabel() == "Compute"
    said = "Final test accuracy\n(mean of the last tenth of evaluations)"
    assert bar.get_ylabel() == said
    assert "not swept over both: central 0.95" in figure.get_suptitle()


def test_cells_whose_target_was_not_reached() -> None:
    table = heat_maps.cells(_study(), target=0.66)
    assert table["reached"].tolist() == [0, 0, 0, 2, 3, 3, 3, 3, 3]
    figure = heat_maps.heat_map(_study(), target=0.66)
    first, second, bar = figure.axes
    np.testing.assert_array_equal(_numbers(first), [[np.nan] * 2, [np.nan, 1]])
    assert _texts(first) == {"never\n0/3", "1\n2/3"}
    assert [patch.get_hatch() for patch in first.patches] == ["////"] * 3
    assert not second.patches
    assert bar.get_ylabel() == "Virtual time (s) to test accuracy ≥ 0.66"


def test_megabytes_to_a_target() -> None:
    first, *_ = heat_maps.heat_map(_study(), target=0.5, against="bytes").axes
    np.testing.assert_allclose(_numbers(first), 10.01)
    assert _texts(first) == {"10"}


def test_cells_that_diverged_or_were_not_run() -> None:
    study = _study(stop="diverged")
    for run in study.manifest["runs"][3:]:
        run["stop"] = "time"
    study.manifest["runs"][3]["stop"] = "diverged"
    for run in study.manifest["runs"][6:9]:
        run["stop"] = "failed"
    first, *_ = heat_maps.heat_map(study).axes
    assert _texts(first) == {"no value\n0/3", "0.63\n2/3", "0.67"}
    numbers = _numbers(first)
    assert np.isnan(numbers[0]).all()


def test_a_third_key_must_be_named() -> None:
    study = Grid(
        [
            ("a", {"x": x, "y": y, "z": z}, [x + y + z])
            for x in (1, 2)
            for y in (1, 2)
            for z in (0.1, 0.2)
        ]
    )
    with pytest.raises(StudyError, match="needs two swept keys, got x, y, z; name two"):
        heat_maps.heat_map(study)
    with pytest.raises(StudyError, match=r"more than x and y is swept; .* by at: z"):
        heat_maps.heat_map(study, keys=("x", "y"))
    with pytest.raises(StudyError, match="keys must be two swept keys, got 'x'"):
        heat_maps.heat_map(study, "test_accuracy", "x")  # pyright: ignore
    with pytest.raises(StudyError, match="w is not swept; known are x, y, z"):
        heat_maps.heat_map(study, keys=("x", "w"))
    axes, *_ = heat_maps.heat_map(study, keys=("x", "y"), at={"z": 0.2}).axes
    np.testing.assert_allclose(_numbers(axes), [[2.2, 3.2], [3.2, 4.2]])


def test_a_study_without_two_keys() -> None:
    with pytest.raises(StudyError, match="needs two swept keys, got none"):
        heat_maps.heat_map(Curves({"a": [arrives(1)]}))
    study = Grid([("a", {"x": 1}, [1]), ("a", {"x": 2}, [1]), ("b", {"y": 1}, [1])])
    with pytest.raises(StudyError, match="no variant is swept over both x and y"):
        heat_maps.heat_map(study, keys=("x", "y"))


def test_words_can_be_read_on_every_colour() -> None:
    assert heat_maps._readable_on(mpl.colormaps[style.COLORMAP](0.0)) == "white"
    assert heat_maps._readable_on(mpl.colormaps[style.COLORMAP](1.0)) == "black"


def test_a_wide_range_of_times_is_logarithmic() -> None:
    norm = heat_maps._norm(
        _study().table("evaluations")["commits"] + 1, logarithmic=True
    )
    assert (norm.vmin, norm.vmax) == (1, 21)
    assert norm(math.sqrt(21)) == pytest.approx(0.5)


def test_the_report_draws_grids_alone() -> None:
    names = [name for name, _ in report.standard(_study())]
    assert "test_accuracy-over-algorithm.q-and-clients.compute" in names
    zipped = Grid([("a", {"x": n, "y": n}, [0.5]) for n in range(4)])
    names = [name for name, _ in report.standard(zipped) if "-over-" in name]
    assert names == ["test_accuracy-over-x", "time-to-target-over-x"]


def test_cells_at_an_instant() -> None:
    table = heat_maps.cells(_study(), after=0.5)
    assert set(table["value"]) == {0.0}
    assert set(table["reached"]) == {3}
    figure = heat_maps.heat_map(_study(), after=1)
    np.testing.assert_allclose(_numbers(figure.axes[0]), [[0.52, 0.57], [0.62, 0.67]])
    assert figure.axes[-1].get_ylabel() == "Test accuracy after 1 s"
    with pytest.raises(StudyError, match="lasted for 5 s"):
        heat_maps.cells(_study(), after=5)
    with pytest.raises(StudyError, match="either target or after"):
        heat_maps.cells(_study(), after=1, target=0.5)
    wrong: Any = 40
    with pytest.raises(StudyError, match=r"at must be values .* take after=40"):
        heat_maps.heat_map(_study(), at=wrong)


def test_size_for_print() -> None:
    figure = heat_maps.heat_map(_study(), size=style.size("two"))
    assert tuple(figure.get_size_inches()) == (7.16, 3.58)


def test_the_lowest_panel_of_every_column_has_numbers() -> None:
    """Of five panels in three columns, one stands above nothing."""
    points = [
        (variant, {"algorithm.q": q, "algorithm.b": b}, [0.5])
        for variant in "abcde"
        for q in (1, 2)
        for b in (1, 2)
    ]
    figure = heat_maps.heat_map(Grid(points))
    figure.draw_without_rendering()
    shown = [
        [label.get_text() for label in axes.get_xticklabels() if label.get_visible()]
        for axes in figure.axes[:5]
    ]
    assert shown == [[], [], *[["1", "2"]] * 3]
