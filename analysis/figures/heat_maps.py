"""Heat maps: a number for every point of a sweep over two keys."""

import math
from collections.abc import Iterator, Mapping
from typing import Any

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.colors import LogNorm, Normalize
from matplotlib.figure import Figure

from ...simulator.files.study import StudyError
from ..frames import Study, first_metric, ordered, runs, swept_axes, swept_columns
from ..instants import Instant, means_at, seen_at, too_late
from ..spending import protected
from ..targets import final_values, resolution, time_to_target, times_to_target
from . import layout, style
from .files import plain
from .lines import pinned, words_on_followers
from .maps import CELL, cells, draw_cells, label_cells, points
from .sweeps import RATIO

CAPTIONS = {
    "^(?!commits-over-).*-over-.*-and-": "Final values (of the last tenth of "
    "evaluations) over what is swept, means over replicates"
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
    if target is not None and after is not None:
        raise StudyError("a heat map has either target or after, got both; leave one")
    groups, when = points(study, keys, at), Instant(against, after or 0)
    x, y = map(str, groups.columns[2:])
    averages, notes = "means over {}, without intervals, which final_over draws", []
    if target is not None:
        values = time_to_target(study, metric, target, against)
        values = values.rename(columns={"median": "value"})
        scale = layout.axis(study, against)
        goal = layout.goal(study, metric, target)
        scale = scale._replace(label=f"{scale.label} to {goal}")
        times = times_to_target(study, metric, target, against)
        notes = [protected(study, against), resolution(times, when.unit)]
        averages = "medians of {}"
    elif after is not None:
        values = means_at(study, metric, after, against)
        if not values["known"].any():
            raise too_late(study, when)
        values = values.rename(columns={"mean": "value", "known": "reached"})
        scale = style.Axis(f"{style.metric_label(metric, study)} after {when}")
        notes = [seen_at(study, metric, when), protected(study, against)]
    else:
        finals = final_values(study, metric).groupby("group", sort=False)["value"]
        values = finals.agg(value="mean", reached="count", replicates="size")
        values = values.reset_index()
        label = style.final_label(metric, study)
        scale = style.Axis(f"{label}\n(mean of the last tenth of evaluations)")
    table = groups.merge(values, on="group")
    swept = table.dropna(subset=[x, y])
    notes = [style.text(pinned(at), 80), _not_swept(table, swept), *notes]
    swept = swept[[x, y, "variant", "value", "reached", "replicates"]].assign(
        number=scale.scale * swept["value"].where(np.isfinite(swept["value"])),
        word=[_word(scale.scale, row) for row in swept.itertuples()],
    )
    variants = list(dict.fromkeys(swept["variant"]))
    steps = ordered(swept[x]), ordered(swept[y])
    rows, columns = layout.grid(len(variants))
    size = layout.for_print(
        1.6 + columns * (0.3 + CELL[0] * max(len(steps[0]), 3)),
        1.2 + rows * (0.5 + CELL[1] * max(len(steps[1]), 3)),
    )
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
        figure.colorbar(image, ax=panels).set_label(scale.label)
        right, up = (style.key_label(key, study) for key in (x, y))
        layout.say(figure, f"to the right: {right}; upwards: {up}")
        layout.say(figure, words_on_followers(study, x, right))
        layout.say(figure, words_on_followers(study, y, up))
        several = layout.replicates(swept["replicates"])
        layout.say(figure, f"cells: {averages.format(several)}")
        label = mpl.rcParams["axes.labelsize"]
        figure.supxlabel(right, fontsize=label)
        figure.supylabel(up, fontsize=label)
    return figure


def _word(scale: float, row: Any) -> str:
    """Returns the words in a cell, with how many replicates it is of."""
    word = f"{scale * row.value:.3g}"
    if not math.isfinite(row.value):
        word = "no value"
    if math.isinf(row.value):
        word = "not by half" if row.reached else "never"
    counts = f"\n{row.reached}/{row.replicates}"
    return word + counts if row.reached < row.replicates else word


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
