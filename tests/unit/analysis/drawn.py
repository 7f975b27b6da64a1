"""What stands in a figure: its words, its legend, its bars, and what leaves it."""

from typing import Any

import numpy as np
from matplotlib.figure import Figure

from stalesim.analysis import style


def note_of(figure: Figure) -> str:
    """Returns the note below a figure, in one line."""
    return " ".join(figure.get_supxlabel().split())


def legend_of(figure: Figure) -> list[str]:
    """Returns the words of all legends."""
    return [text.get_text() for legend in figure.legends for text in legend.get_texts()]


def titles_of(figure: Figure) -> list[str]:
    """Returns the titles of all panels that are seen."""
    seen = (axes for axes in figure.axes if axes.get_visible())
    return [axes.get_title(loc="left") for axes in seen]


def texts_of(figure: Figure) -> list[str]:
    """Returns what is written into the axes, panel by panel."""
    return [text.get_text() for axes in figure.axes for text in axes.texts]


def points_of(line: Any) -> tuple[np.ndarray, np.ndarray]:
    """Returns the places of a line's points."""
    x, y = line.get_data()
    return np.asarray(x), np.asarray(y)


def assert_apart(figure: Figure) -> None:
    """Checks that legend and axes share no pixel, and that nothing leaves the page."""
    with style.context():
        figure.savefig("/dev/null", format="png")
    page, legends = figure.bbox, [each.get_window_extent() for each in figure.legends]
    boxes: list[Any] = [axes.get_tightbbox() for axes in figure.axes]
    for box in [*legends, *boxes]:
        assert (box.y0 >= page.y0, box.x1 <= page.x1) == (True, True)
    for box in boxes:
        assert (box.x0 >= page.x0, box.y1 <= page.y1) == (True, True)
        assert not any(box.overlaps(legend) for legend in legends)
