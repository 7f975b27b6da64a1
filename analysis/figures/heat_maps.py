"""Heat maps: a number for every point of a sweep over two keys."""

import math
from collections.abc import Iterator, Mapping
from typing import Any

import matplotlib as mpl
import numpy as np
import pandas as pd
from jaxtyping import Bool, Num, Shaped
from matplotlib.axes import Axes
from matplotlib.colors import LogNorm, Normalize, to_rgb
from matplotlib.figure import Figure
from matplotlib.image import AxesImage
from matplotlib.patches import Rectangle

from ...simulator.trace import StudyError
from ..frames import (
    Study,
    first_metric,
    ordered,
    runs,
    swept_axes,
    swept_columns,
)
from ..instants import Instant, means_at, seen_at, too_late
from ..spending import protected
from ..targets import final_values, resolution, time_to_target, times_to_target
from . import layout, style
from .files import plain
from .lines import fixed_values, is_at, pinned, worded, words_on_followers
from .sweeps import RATIO

CELL = (0.62, 0.46)
"""Inches."""


CAPTIONS = {
    "^(?!commits-over-).*-over-.*-and-": "Final values (of the last tenth of "
    "evaluations) over what is swept, means over replicates"
}
"""Captions of the standard figures, by a pattern of their names."""


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
    at: Mapping[str, Any] | None = None,
    *,
    after: float | None = None,
) -> Figure:
    """Draws a panel per variant, a cell per point of a sweep over two keys.

    A cell is the mean final value, that after some time, or the median that it took to
    reach a target; below it stands how many replicates did so, where not all did.
    Hatched cells have no number, and say why: their runs diverged, or fewer than half
    reached the target. Points that were not run are left blank. Variants that are not
    swept over both keys have no panel, and are named on top.

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
    table = cells(study, metric, keys, target, against, at, after=after)
    x, y = table.columns[1:3]
    told, seen = "mean of the last tenth of evaluations", ""
    scale = style.Axis(f"{style.final_label(metric, study)}\n({told})")
    if after is not None:
        when = Instant(against, after)
        scale = style.Axis(f"{style.metric_label(metric, study)} after {when}")
        seen = seen_at(study, metric, when)
    if target is not None:
        scale = layout.axis(study, against)
        goal = layout.goal(study, metric, target)
        scale = scale._replace(label=f"{scale.label} to {goal}")
    swept = table.dropna(subset=[x, y])
    variants = list(dict.fromkeys(swept["variant"]))
    steps = [ordered(swept[key]) for key in (x, y)]
    rows, columns = layout.grid(len(variants))
    size = layout.for_print(
        1.6 + columns * (0.3 + CELL[0] * max(len(steps[0]), 3)),
        1.2 + rows * (0.5 + CELL[1] * max(len(steps[1]), 3)),
    )
    with style.context():
        words = [style.text(pinned(at), 80), _not_swept(table, swept), seen]
        words.append("" if after is target is None else protected(study, against))
        if target is not None:
            times = times_to_target(study, metric, target, against)
            words.append(resolution(times, Instant(against, 0).unit))
        note = "\n".join(word for word in words if word)
        figure = layout.titled(study, size, note)
        panels = layout.panels(figure, len(variants), columns)
        # One scale for all panels, so that colours can be compared between them.
        norm = _norm(scale.scale * swept["value"], logarithmic=target is not None)
        for axes, variant in zip(panels, variants, strict=True):
            mine = swept.loc[swept["variant"] == variant]
            _panel(axes, mine, steps, norm, scale.scale)
            axes.set_title(style.text(layout.name(study, str(variant))))
        image = panels[0].get_images()[0]
        figure.colorbar(image, ax=panels).set_label(scale.label)
        label = mpl.rcParams["axes.labelsize"]
        names = [style.key_label(str(key), study) for key in (x, y)]
        layout.say(figure, f"to the right: {names[0]}; upwards: {names[1]}")
        for key, name in zip((x, y), names, strict=True):
            layout.say(figure, words_on_followers(study, str(key), name))
        layout.say(
            figure,
            f"cells: means over {layout.replicates(swept['replicates'])}, without "
            f"intervals, which final_over draws"
            if target is None
            else f"cells: medians of {layout.replicates(swept['replicates'])}",
        )
        figure.supxlabel(names[0], fontsize=label)
        figure.supylabel(names[1], fontsize=label)
    return figure


def cells(
    study: Study,
    metric: str = "test_accuracy",
    keys: tuple[str, str] | None = None,
    target: float | None = None,
    against: str = "time",
    at: Mapping[str, Any] | None = None,
    *,
    after: float | None = None,
) -> pd.DataFrame:
    """Returns what a heat map shows, a row per group.

    Arguments and errors are those of `heat_map`.

    Returns:
        Columns variant, the two keys, value (NaN if all runs diverged, infinite if
        fewer than half reached the target), reached (replicates that did, or that have
        a value), replicates.
    """
    if target is not None and after is not None:
        raise StudyError("a heat map has either target or after, got both; leave one")
    swept = points(study, keys, at)
    values = (
        _values(study, metric, target, against)
        if after is None
        else _values_after(study, metric, Instant(against, after))
    )
    found = swept.merge(values, on="group")
    return found[[*swept.columns[1:], "value", "reached", "replicates"]]


def points(
    study: Study,
    keys: tuple[str, str] | None = None,
    at: Mapping[str, Any] | None = None,
) -> pd.DataFrame:
    """Returns the groups of a study by their values of two swept keys.

    Arguments and errors are those of `heat_map`.

    Returns:
        Columns group, variant, and the two keys; NaN where it is not swept over one.
    """
    fixed = fixed_values(at)
    several = swept_axes(study)
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
    columns = swept_columns(study)
    for key in (*keys, *fixed):
        if key not in columns:
            raise StudyError(
                f"{key} is not swept; known are {', '.join(columns) or 'none'}"
            )
    table = runs(study)
    kept = np.ones(len(table), bool)
    for key, value in fixed.items():
        kept &= is_at(table[columns[key]], value).to_numpy()
    table = table.loc[kept]
    x, y = (columns[key] for key in keys)
    found = table.drop_duplicates("group")[["group", "variant", x, y]]
    several_of = found.dropna(subset=[x, y])
    if several_of.empty:
        raise StudyError(f"no variant is swept over both {keys[0]} and {keys[1]}")
    if several_of.duplicated(["variant", x, y]).any():
        raise StudyError(
            f"more than {keys[0]} and {keys[1]} is swept; name values of the other "
            f"keys by at: {', '.join(key for key in several if key not in keys)}"
        )
    return found


def _values(
    study: Study, metric: str, target: float | None, against: str
) -> pd.DataFrame:
    """Returns each group's number, and of how many of its replicates it is."""
    if target is not None:
        times = time_to_target(study, metric, target, against)
        return times.rename(columns={"median": "value"})
    finals = final_values(study, metric).groupby("group", sort=False)["value"]
    found = finals.agg(value="mean", reached="count", replicates="size")
    return found.reset_index()


def _values_after(study: Study, metric: str, when: Instant) -> pd.DataFrame:
    """Returns each group's mean at an instant, and of how many replicates it is.

    Raises:
        StudyError: No run lasted so long.
    """
    found = means_at(study, metric, when.value, when.counted)
    if not found["known"].any():
        raise too_late(study, when)
    return found.rename(columns={"mean": "value", "known": "reached"})


def _panel(
    axes: Axes,
    table: pd.DataFrame,
    steps: list[list[Any]],
    norm: Normalize,
    scale: float,
) -> None:
    shape = len(steps[1]), len(steps[0])
    numbers, words = np.full(shape, np.nan), np.full(shape, "", object)
    for _, x, y, value, reached, replicates in table.itertuples(index=False):
        place = steps[1].index(y), steps[0].index(x)
        number, word = scale * float(value), "no value"
        if math.isfinite(number):
            numbers[place], word = number, f"{number:.3g}"
        elif math.isinf(number):
            word = "not by half" if reached else "never"
        counts = f"\n{reached}/{replicates}" if reached < replicates else ""
        words[place] = f"{word}{counts}"
    draw_cells(axes, numbers, words, ~np.isfinite(numbers), style.COLORMAP, norm)
    label_cells(axes, steps)


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
            lines = ink = _readable_on(color)
        if hatched[row, column]:
            look: dict[str, Any] = {"facecolor": color, "edgecolor": lines, "lw": 0}
            corner = column - 0.5, row - 0.5
            axes.add_patch(Rectangle(corner, 1, 1, hatch="////", **look))
        axes.text(
            column,
            row,
            text,
            ha="center",
            va="center",
            zorder=3,
            color=ink,
            fontsize=mpl.rcParams["xtick.labelsize"],
            bbox={"facecolor": color, "lw": 0, "pad": 1.2},
        )
    axes.grid(visible=False)
    return image


def label_cells(axes: Axes, steps: list[list[Any]]) -> None:
    """Writes the swept values below and to the left of the cells.

    Args:
        axes: Axes with a cell for each pair of values.
        steps: Values to the right, and upwards.
    """
    for axis, step in zip((axes.xaxis, axes.yaxis), steps, strict=True):
        names = [style.text(worded(value), 22) for value in step]
        axis.set_ticks(range(len(step)), names)
    if max(len(str(value)) for value in steps[0]) > 8:
        axes.tick_params(axis="x", labelrotation=30)
    axes.tick_params(length=0)


def _norm(values: pd.Series, *, logarithmic: bool) -> Normalize:
    known = values[np.isfinite(values)].to_numpy(np.float64)
    if not known.size:
        return Normalize(0, 1)
    low, high = float(known.min()), float(known.max())
    if logarithmic and low > 0 and high / low > RATIO:
        return LogNorm(low, high)
    return Normalize(low, high if high > low else low + (abs(low) or 1))


def _readable_on(color: Any) -> str:
    """Returns black or white, whichever can be read on a colour."""
    red, green, blue = to_rgb(color)
    return "black" if 0.299 * red + 0.587 * green + 0.114 * blue > 0.5 else "white"


def _not_swept(table: pd.DataFrame, swept: pd.DataFrame) -> str:
    """Returns words on the variants without a panel, with their numbers."""
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
