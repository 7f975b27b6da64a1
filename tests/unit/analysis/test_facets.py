"""Studies with more groups than colours: panels, shades, what is left out."""

from typing import Any

import numpy as np
import pytest
from matplotlib.colors import to_hex, to_rgb

from stalesim.analysis import figures, style
from stalesim.analysis.figures import facets, layout
from stalesim.analysis.frames import groups
from stalesim.simulator.files.study import StudyError
from tests.unit.analysis.drawn import assert_apart, legend_of, note_of, titles_of
from tests.unit.analysis.studies import Fake, Grid

TAIL, STEP = "clients.compute.b", "algorithm.step_size"


def swept(first: list[Any], second: list[Any]) -> Grid:
    points = [{TAIL: b, STEP: step} for b in first for step in second]
    return Grid(
        [("base", at, [0.5 + 0.1 * at[STEP], 0.51 + 0.1 * at[STEP]]) for at in points]
    )


def test_few_groups_need_no_panels() -> None:
    assert facets.facets(swept([1, 2], [0.1, 0.2, 0.4, 0.8])) is None
    assert len(figures.convergence(swept([1, 2], [0.1, 0.2])).axes) == 1


def test_24_groups_are_told_by_panel_and_shade() -> None:
    study = swept([1.1, 1.5, 2.0, 4.0], [0.05, 0.1, 0.2, 0.4, 0.6, 0.8])
    figure = figures.convergence(study)
    assert titles_of(figure) == ["b=1.1", "b=1.5", "b=2", "b=4"]
    (legend,) = figure.legends
    assert legend.get_title().get_text() == "Learning rate"
    assert legend_of(figure) == ["0.05", "0.1", "0.2", "0.4", "0.6", "0.8"]
    shown = [axes for axes in figure.axes if axes.get_visible()]
    colors = [[to_hex(line.get_color()) for line in a.get_lines()] for a in shown]
    assert all(row == colors[0] for row in colors)
    assert len({*colors[0]}) == 6
    # Lightness rises with the value, so that it can be read in print without colour.
    light = [np.dot(to_rgb(color), (0.299, 0.587, 0.114)) for color in colors[0]]
    assert light == sorted(light)
    assert len({axes.get_xlim() for axes in shown}) == 1
    assert len({axes.get_ylim() for axes in shown}) == 1
    assert_apart(figure)
    (words,) = (t for t in figure.texts if t.get_text() == figure.get_supxlabel())
    assert note_of(figure).startswith("Lines: means over 2 replicates")
    place = words.get_window_extent()
    lines = words.get_text().count("\n") + 1
    text = place.y1 - place.height / lines * note_of(figure).count("\n")
    assert text > legend.get_window_extent().y1  # the note stands above the legend
    (axes,) = figures.speed_up_bars(study, "test_accuracy", 0.1).axes
    found = [to_hex(bar.get_facecolor()) for bar in axes.patches]
    assert (len(found), len({*found})) == (24, 6)
    assert found[:6] * 4 == found


def test_groups_without_a_number_stand_before_all_others() -> None:
    names = tuple(f"v{number}" for number in range(9))
    figure = figures.convergence(Fake(names))
    assert titles_of(figure) == list(names)
    for axes in figure.axes[:9]:
        colors = [to_hex(line.get_color()) for line in axes.get_lines()]
        assert (len(colors), colors.count(facets.PALE)) == (9, 8)


def test_what_is_left_out_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(facets, "MOST_PANELS", 3)
    study = Fake(tuple(f"v{number}" for number in range(9)))
    found = facets.facets(study)
    assert found is not None
    assert [groups for _, groups in found.panels] == [["v0"], ["v4"], ["v8"]]
    assert found.all_panels == 9
    assert "3 of 9 panels are drawn" in str(figures.convergence(study).get_label())


@pytest.mark.parametrize(
    ("number", "venue", "wanted"),
    [(4, None, (2, 2)), (24, None, (6, 4)), (3, None, (1, 3)), (6, "icml", (3, 2))],
)
def test_grids(number: int, venue: str | None, wanted: tuple[int, int]) -> None:
    with style.using(*filter(None, [venue])):
        assert layout.grid(number) == wanted


def test_a_variant_that_is_not_swept_is_black() -> None:
    rows: list[Any] = [("base", {STEP: n / 10}, [0.5]) for n in range(1, 10)]
    study = Grid([*rows, ("sync", {}, [0.4])])
    looks = facets.looks(study)
    assert [*looks] == groups(study)
    assert to_hex(looks["sync"].color) == "#000000"


LAWS = ("exponential", "Pareto 1.5", "mixture")


def two_variants(*more: Any) -> Grid:
    """Returns two variants over three laws; replicates are equal, final values not."""
    points = [
        (name, {"clients.compute": law}, [0.5 + 0.1 * number, 0.6 + 0.1 * number])
        for name in ("async", "sync")
        for number, law in enumerate(LAWS)
    ]
    return Grid([*points, *more])


def test_variants_over_swept_values_share_a_panel_at_each_value() -> None:
    figure = figures.convergence(two_variants(("central", {}, [0.9, 0.9])))
    assert titles_of(figure) == [f"compute={law}" for law in LAWS]
    assert legend_of(figure) == ["async", "sync", "central"]
    for axes in figure.axes:
        colors = [to_hex(line.get_color()).upper() for line in axes.get_lines()]
        assert colors == list(style.OKABE_ITO[:3])
    # With one variant the values share the axes, as before.
    assert facets.facets(two_variants(), ["async, clients.compute=mixture"]) is None


def test_groups_and_panels_may_be_chosen() -> None:
    study = two_variants()
    figure = figures.convergence(study, panels="variant")
    assert titles_of(figure) == ["async", "sync"]
    assert legend_of(figure) == [f"compute={law}" for law in LAWS]
    (axes,) = figures.convergence(study, groups=["sync"]).axes
    assert len(axes.get_lines()) == 3
    with pytest.raises(ValueError, match="no variant 'snyc'; did you mean 'sync'"):
        figures.convergence(study, groups=["snyc"])
    with pytest.raises(StudyError, match=r"did you mean 'clients\.compute'"):
        figures.convergence(study, panels="client.compute")


def test_bars_have_an_axis_of_values_and_a_colour_a_variant() -> None:
    figure = figures.speed_up_bars(two_variants(), "test_accuracy", 0.65)
    (axes,) = figure.axes
    assert [t.get_text() for t in axes.get_yticklabels()] == [
        f"compute={law}" for law in LAWS
    ]
    assert list(axes.get_yticks()) == [0.5, 2.5, 4.5]
    assert legend_of(figure) == ["async", "sync"]
    colors = [to_hex(bar.get_edgecolor()).upper() for bar in axes.patches[:2]]
    assert colors == list(style.OKABE_ITO[:2])
    # The slowest at this value is compared with, whatever is slower at others.
    words = [text.get_text() for text in axes.texts]
    assert words[4:] == ["1× (2 of 2)", "(2 of 2)"]
