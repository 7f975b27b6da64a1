"""Studies with more groups than colours: panels, shades, what is left out."""

from typing import Any

import numpy as np
import pytest
from matplotlib.colors import to_hex

from stalesim.analysis import figures
from stalesim.analysis.figures import facets, layout
from stalesim.analysis.frames import groups
from tests.unit.analysis.studies import Fake, Grid

TAIL, STEP = "clients.compute.b", "algorithm.step_size"


def swept(first: list[Any], second: list[Any]) -> Grid:
    return Grid(
        [
            (
                "base",
                {TAIL: b, STEP: step},
                [0.5 + 0.01 * k + 0.1 * step for k in (0, 1)],
            )
            for b in first
            for step in second
        ]
    )


def test_few_groups_need_no_panels() -> None:
    assert facets.facets(swept([1, 2], [0.1, 0.2, 0.4, 0.8])) is None
    assert len(figures.convergence(swept([1, 2], [0.1, 0.2])).axes) == 1


def test_24_groups_are_told_by_panel_and_shade() -> None:
    study = swept([1.1, 1.5, 2.0, 4.0], [0.05, 0.1, 0.2, 0.4, 0.6, 0.8])
    figure = figures.convergence(study)
    shown = [axes for axes in figure.axes if axes.get_visible()]
    titles = [axes.get_title(loc="left") for axes in shown]
    assert titles == ["b=1.1", "b=1.5", "b=2", "b=4"]
    (legend,) = figure.legends
    assert legend.get_title().get_text() == "Step size"
    texts = [text.get_text() for text in legend.get_texts()]
    assert texts == ["0.05", "0.1", "0.2", "0.4", "0.6", "0.8"]
    colors = [[to_hex(line.get_color()) for line in a.get_lines()] for a in shown]
    assert all(row == colors[0] for row in colors)
    assert len({*colors[0]}) == 6
    # Lightness rises with the value, so that it can be read in print without colour.
    light = [np.dot(_rgb(color), (0.299, 0.587, 0.114)) for color in colors[0]]
    assert light == sorted(light)
    assert len({axes.get_xlim() for axes in shown}) == 1
    assert len({axes.get_ylim() for axes in shown}) == 1


def _rgb(color: str) -> list[int]:
    return [int(color[place : place + 2], 16) for place in (1, 3, 5)]


def test_bars_of_many_groups_reuse_no_colour_by_chance() -> None:
    study = swept([1.1, 1.5, 2.0, 4.0], [0.05, 0.1, 0.2, 0.4, 0.6, 0.8])
    (axes,) = figures.speed_up_bars(study, "test_accuracy", 0.1).axes
    found = [to_hex(bar.get_facecolor()) for bar in axes.patches]
    assert len(found) == 24
    assert len({*found}) == 6
    assert found[:6] * 4 == found


def test_groups_without_a_number_stand_before_all_others() -> None:
    names = tuple(f"v{number}" for number in range(9))
    figure = figures.convergence(Fake(names))
    shown = [axes for axes in figure.axes if axes.get_visible()]
    assert [axes.get_title(loc="left") for axes in shown] == list(names)
    for axes in shown:
        colors = [to_hex(line.get_color()) for line in axes.get_lines()]
        assert len(colors) == 9
        assert colors.count(facets.PALE) == 8


def test_what_is_left_out_is_said() -> None:
    study = Fake(tuple(f"v{number}" for number in range(40)))
    found = facets.facets(study)
    assert found is not None
    assert (len(found.panels), found.all_panels) == (24, 40)
    assert found.panels[0].groups == ["v0"]
    assert found.panels[-1].groups == ["v39"]
    assert "24 of 40 panels are drawn" in str(figures.convergence(study).get_label())


@pytest.mark.parametrize(
    ("number", "width", "wanted"),
    [(4, None, (2, 2)), (24, None, (6, 4)), (3, None, (2, 2)), (6, 3.25, (3, 2))],
)
def test_grids(number: int, width: float | None, wanted: tuple[int, int]) -> None:
    assert layout.grid(number, width) == wanted


def test_a_variant_that_is_not_swept_is_black() -> None:
    rows: list[Any] = [("base", {STEP: n / 10}, [0.5]) for n in range(1, 10)]
    study = Grid([*rows, ("sync", {}, [0.4])])
    looks = facets.looks(study)
    assert [*looks] == groups(study)
    assert to_hex(looks["sync"].color) == "#000000"
