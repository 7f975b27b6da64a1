"""Cells over two swept keys: what heat maps and maps of winners share."""

from collections.abc import Mapping
from typing import Any

import matplotlib as mpl
import numpy as np
import pandas as pd
from jaxtyping import Bool, Num, Shaped
from matplotlib.axes import Axes
from matplotlib.colors import Normalize, to_rgb
from matplotlib.image import AxesImage
from matplotlib.patches import Rectangle

from ...simulator.files.study import StudyError
from ..frames import Study, swept_axes, swept_columns
from . import style
from .lines import fixed_values, groups_at, worded

CELL = (0.62, 0.46)
"""Inches."""
Steps = tuple[list[Any], list[Any]]
"""Swept values to the right, and upwards."""


def points(
    study: Study,
    keys: tuple[str, str] | None = None,
    at: Mapping[str, Any] | None = None,
) -> pd.DataFrame:
    """Returns the groups of a study by their values of two swept keys.

    Args:
        study: Study, finished or not.
        keys: Swept keys; by default the only two.
        at: Values of the other keys that are swept.

    Returns:
        Columns group, variant, and the two keys; NaN where it is not swept over one.

    Raises:
        StudyError: Not two keys are swept, or more than these two.
    """
    fixed, several = fixed_values(at), swept_axes(study)
    if isinstance(keys, str):
        raise StudyError(
            f"keys must be two swept keys, got {keys!r}; write "
            f'heat_map(study, keys=("KEY", "KEY"))'
        )
    if keys is None and len(several) == 2:
        keys = several[0], several[1]
    if keys is None:
        raise StudyError(
            f"a heat map needs two swept keys, got {', '.join(several) or 'none'}; "
            f"name two of them as keys, and values of the others by at"
        )
    table, columns = groups_at(study, keys, at), swept_columns(study)
    x, y = (columns[key] for key in keys)
    table = table.dropna(subset=[columns[key] for key in fixed])
    table = table[["group", "variant", x, y]]
    swept = table.dropna(subset=[x, y])
    if swept.empty:
        raise StudyError(f"no variant is swept over both {keys[0]} and {keys[1]}")
    if swept.duplicated(["variant", x, y]).any():
        raise StudyError(
            f"more than {keys[0]} and {keys[1]} is swept; name values of the other "
            f"keys by at: {', '.join(key for key in several if key not in keys)}"
        )
    return table


def cells(
    table: pd.DataFrame, steps: Steps, column: str, blank: Any
) -> Shaped[np.ndarray, "rows columns"]:
    """Returns a column of a table as cells, of which the first row is the lowest."""
    right, up = steps
    grid = np.full((len(up), len(right)), blank, table[column].to_numpy().dtype)
    rows = zip(*(table[name] for name in (*table.columns[:2], column)), strict=True)
    for x, y, value in rows:
        grid[up.index(y), right.index(x)] = value
    return grid


def draw_cells(
    axes: Axes,
    numbers: Num[np.ndarray, "rows columns"],
    words: Shaped[np.ndarray, "rows columns"],
    hatched: Bool[np.ndarray, "rows columns"],
    colors: Any,
    norm: Normalize,
) -> AxesImage:
    """Draws cells in the colours of their numbers, with words in them.

    Args:
        axes: Axes, in which the first row is the lowest.
        numbers: Numbers that give the colours; NaN where there is none.
        words: Text in each cell; a cell without any is left blank.
        hatched: Cells that are hatched.
        colors: Colour map.
        norm: Scale of the colours.
    """
    image = axes.imshow(
        np.ma.masked_invalid(numbers),
        cmap=colors, norm=norm, origin="lower", aspect="auto",
    )  # fmt: skip
    for (row, column), text in np.ndenumerate(words):
        if not text:
            continue
        color: Any = style.BLANK
        ink, lines = "black", "#b0b0b0"
        if np.isfinite(numbers[row, column]):
            color = image.cmap(norm(numbers[row, column]))
            lines = ink = readable_on(color)
        if hatched[row, column]:
            look: dict[str, Any] = {"facecolor": color, "edgecolor": lines, "lw": 0}
            corner = column - 0.5, row - 0.5
            axes.add_patch(Rectangle(corner, 1, 1, hatch="////", **look))
        axes.text(
            column, row, text,
            ha="center", va="center", zorder=3, color=ink,
            fontsize=mpl.rcParams["xtick.labelsize"],
            bbox={"facecolor": color, "lw": 0, "pad": 1.2},
        )  # fmt: skip
    axes.grid(visible=False)
    return image


def label_cells(axes: Axes, steps: Steps) -> None:
    """Writes the swept values below and to the left of the cells."""
    for axis, step in zip((axes.xaxis, axes.yaxis), steps, strict=True):
        names = [style.text(worded(value), 22) for value in step]
        axis.set_ticks(range(len(step)), names)
    if max(len(str(value)) for value in steps[0]) > 8:
        axes.tick_params(axis="x", labelrotation=30)
    axes.tick_params(length=0)


def readable_on(color: Any) -> str:
    """Returns black or white, whichever can be read on a colour."""
    red, green, blue = to_rgb(color)
    return "black" if 0.299 * red + 0.587 * green + 0.114 * blue > 0.5 else "white"
