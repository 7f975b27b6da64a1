"""Heat maps: a number for every point of a sweep over two keys."""

import math
from collections.abc import Iterator
from typing import Any, cast

import matplotlib as mpl
import numpy as np
import pandas as pd
from jaxtyping import Bool, Num, Shaped
from matplotlib.axes import Axes
from matplotlib.colors import Colormap, LogNorm, Normalize, to_rgb
from matplotlib.figure import Figure
from matplotlib.image import AxesImage
from matplotlib.patches import Rectangle
from matplotlib.typing import ColorType

from ...simulator.files.study import StudyError
from ..frames import Study, first_metric, ordered, runs, swept_axes, swept_columns
from ..instants import in_words, means_at, seen_at, too_late
from ..spending import protected
from ..targets import final_values, resolution, time_to_target, times_to_target
from . import layout, style
from .files import plain
from .lines import At, fixed_values, groups_at, pinned, worded, words_on_followers
from .sweeps import RATIO

CAPTIONS = {
    "^time-to-target-.*-over-.*-and-": "Virtual time until the target over the swept "
    "keys, medians over replicates",
    "^(?!commits-over-|time-to-target-).*-over-.*-and-": "Final values (of the last "
    "tenth of evaluations) over the swept keys, means over replicates",
}


def standard(study: Study) -> Iterator[tuple[str, Figure]]:
    """Yields final values of the first metric over two keys swept across each other."""
    keys = grid_keys(study)
    if keys is not None:
        metric = first_metric(study.manifest)
        name = f"{metric}-over-{plain(keys[0])}-and-{plain(keys[1])}"
        yield name, heat_map(study, metric, keys)


def heat_map(
    study: Study,
    metric: str = "test_accuracy",
    keys: tuple[str, str] | None = None,
    target: float | None = None,
    against: str = "time",
    at: At | None = None,
    *,
    after: float | None = None,
) -> Figure:
    """Draws a panel per variant, a cell per point of a sweep over two keys.

    A cell is the mean final value, the value after some time, or the median cost to
    reach a target; the count of replicates that did so is below it, where not all did.
    Hatched cells have no number, but the reason: their runs diverged, or fewer than
    half reached the target. Points that were not run are blank. Variants that are not
    swept over both keys have no panel; a line on top names them.

    Args:
        study: Study, finished or not.
        metric: Column of the table `evaluations`.
        keys: Swept keys, to the right and upwards; by default the only two.
        target: Value of the metric; final values are drawn without one.
        against: Count until the target, as in `time_to_target`, or of `after`.
        at: Values of the other keys that are swept.
        after: Instant at which the metric is looked at, as in `value_at`: virtual
            seconds, or what else `against` counts.

    Raises:
        StudyError: Not two keys are swept, or more than these two; the metric was not
            evaluated, or no run lasted so long.
    """
    if target is not None and after is not None:
        raise StudyError("a heat map has either target or after, got both; leave one")
    groups = points(study, keys, at)
    x, y = map(str, groups.columns[2:])
    averages, notes = "means over {}, without intervals, which final_over draws", []
    if target is not None:
        values = time_to_target(study, metric, target, against)
        values = values.rename(columns={"median": "value"})
        label, scale = layout.axis(study, against)
        label += f" to {layout.goal(study, metric, target)}"
        times = times_to_target(study, metric, target, against)
        notes = [protected(study, against), resolution(times, against)]
        averages = "medians of {}"
    elif after is not None:
        values = means_at(study, metric, after, against)
        if not values["known"].any():
            raise too_late(study, after, against)
        values = values.rename(columns={"mean": "value", "known": "reached"})
        label, scale = style.metric_label(metric, study), 1.0
        label += f" after {in_words(after, against)}"
        seen = seen_at(study, metric, after, against)
        notes = [seen, protected(study, against)]
    else:
        finals = final_values(study, metric).groupby("group", sort=False)["value"]
        values = finals.agg(value="mean", reached="count", replicates="size")
        values = values.reset_index()
        label, scale = style.final_label(metric, study), 1.0
        label += "\n(mean of the last tenth of evaluations)"
    values = values[["group", "value", "reached", "replicates"]]
    table = groups.merge(values, on="group")
    swept = table.dropna(subset=[x, y])
    notes = [style.text(pinned(at), 80), _not_swept(table, swept), *notes]
    swept = swept[[x, y, "variant", "value", "reached", "replicates"]].assign(
        number=scale * swept["value"].where(np.isfinite(swept["value"])),
        word=[
            _word(scale * value, reached, of)
            for value, reached, of in zip(
                *(swept[c] for c in ("value", "reached", "replicates")), strict=True
            )
        ],
    )
    variants = list(dict.fromkeys(swept["variant"]))
    steps = ordered(swept[x]), ordered(swept[y])
    width, height = (c * max(len(s), 3) for c, s in zip(CELL, steps, strict=True))
    rows, columns = layout.grid(len(variants), width)
    size = layout.for_print(1.6 + columns * (0.3 + width), 1.2 + rows * (0.5 + height))
    with style.context():
        figure = layout.titled(study, size, "\n".join(filter(None, notes)))
        panels = layout.panels(figure, len(variants), columns)
        # One scale for all panels, so that colours can be compared between them.
        norm = _norm(swept["number"], logarithmic=target is not None)
        for axes, variant in zip(panels, variants, strict=True):
            mine = swept.loc[swept["variant"] == variant]
            numbers = cells(mine, steps, "number", np.nan)
            words = cells(mine, steps, "word", "")
            hatched = ~np.isfinite(numbers)
            draw_cells(axes, numbers, words, hatched, style.COLORMAP, norm)
            label_cells(axes, steps)
            axes.set_title(style.text(layout.name(study, str(variant))))
        image = panels[0].get_images()[0]
        figure.colorbar(image, ax=panels).set_label(label)
        right, up = (style.key_label(key, study) for key in (x, y))
        layout.say(figure, f"to the right: {right}; upwards: {up}")
        layout.say(figure, words_on_followers(study, x, right))
        layout.say(figure, words_on_followers(study, y, up))
        several = layout.replicates(swept["replicates"])
        layout.say(figure, f"cells: {averages.format(several)}")
        size = mpl.rcParams["axes.labelsize"]
        figure.supxlabel(right, fontsize=size)
        figure.supylabel(up, fontsize=size)
    return figure


def _word(value: float, reached: int, replicates: int) -> str:
    word = f"{value:.3g}"
    if math.isnan(value):
        word = "no value"
    elif math.isinf(value):
        word = "not by half" if reached else "never"
    return word + f"\n{reached}/{replicates}" if reached < replicates else word


def _norm(values: pd.Series, *, logarithmic: bool) -> Normalize:
    known = values.dropna().to_numpy(np.float64)
    if not known.size:
        return Normalize(0, 1)
    low, high = float(known.min()), float(known.max())
    if logarithmic and low > 0 and high / low > RATIO:
        return LogNorm(low, high)
    return Normalize(low, high if high > low else low + (abs(low) or 1))


def _not_swept(table: pd.DataFrame, swept: pd.DataFrame) -> str:
    rest = table.loc[~table["variant"].isin(swept["variant"])]
    words = [
        f"{variant} {rows['value'].iloc[0]:.3g}" if len(rows) == 1 else str(variant)
        for variant, rows in rest.groupby("variant", sort=False)
    ]
    return style.text(f"not swept over both: {', '.join(words)}", 80) if words else ""


def grid_keys(study: Study) -> tuple[str, str] | None:
    """Returns the two keys that are swept across each other, if there are two."""
    keys = swept_axes(study)
    if len(keys) != 2:
        return None
    x, y = (swept_columns(study)[key] for key in keys)
    points = runs(study)[[x, y]].dropna().drop_duplicates()
    sides = points[x].nunique(), points[y].nunique()
    whole = min(sides) > 1 and 2 * len(points) > math.prod(sides)
    return (keys[0], keys[1]) if whole else None


CELL = (0.62, 0.46)
"""Inches."""
Steps = tuple[list[Any], list[Any]]
"""Swept values to the right, and upwards."""


def points(
    study: Study, keys: tuple[str, str] | None = None, at: At | None = None
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
    fixed, several = fixed_values(study, at), swept_axes(study)
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
    (right, up), table = groups_at(study, keys, at)
    columns = swept_columns(study)
    x, y = columns[right], columns[up]
    table = table.dropna(subset=[columns[key] for key in fixed])
    table = table[["group", "variant", x, y]]
    swept = table.dropna(subset=[x, y])
    if swept.empty:
        raise StudyError(f"no variant is swept over both {right} and {up}")
    if swept.duplicated(["variant", x, y]).any():
        raise StudyError(
            f"more than {right} and {up} is swept; name values of the other "
            f"keys by at: {', '.join(key for key in several if key not in (right, up))}"
        )
    return table


def cells(
    table: pd.DataFrame, steps: Steps, column: str, blank: float | str
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
    colors: str | Colormap,
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
        color: ColorType = style.BLANK
        ink, lines = "black", "#b0b0b0"
        if np.isfinite(numbers[row, column]):
            color = cast(ColorType, image.cmap(norm(numbers[row, column])))
            lines = ink = readable_on(color)
        if hatched[row, column]:
            cell = Rectangle(
                (column - 0.5, row - 0.5), 1, 1,
                hatch="////", facecolor=color, edgecolor=lines, lw=0,
            )  # fmt: skip
            axes.add_patch(cell)
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


def readable_on(color: ColorType) -> str:
    """Returns black or white, whichever can be read on a colour."""
    red, green, blue = to_rgb(color)
    return "black" if 0.299 * red + 0.587 * green + 0.114 * blue > 0.5 else "white"
