"""Which of several variants wins where, over two swept keys."""

import math
from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
from jaxtyping import Bool, Num, Shaped
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.colorbar import Colorbar
from matplotlib.colors import ListedColormap, LogNorm, Normalize
from matplotlib.figure import Figure
from matplotlib.image import AxesImage
from matplotlib.patches import Patch

from ...simulator.files.study import StudyError
from ...simulator.parts.errors import suggestion
from ..frames import Study, described, ordered
from ..paired import PairedRatio, ratio
from ..targets import default_target, final_bounds, resolution, times_to_target
from . import layout, style
from .files import plain
from .heat_maps import CELL, cells, draw_cells, label_cells, points
from .lines import At, pinned, words_on_followers
from .speed_ups import target_words

COLORMAP = "PuOr"
"""Colours of ratios, white where both sides are equal.

Source: Brewer, ColorBrewer 2.0 (safe for colour-blind readers).
"""
SAME = 1e-9
"""Difference of a ratio from 1 that rounding makes of a tie."""
CAPTIONS = {
    "^winner-": "Ratio of two variants, or the best of several, over two swept keys: "
    "medians over pairs of replicates. Hatched cells are inconclusive: their own 95 % "
    "interval contains 1, or there are fewer than six pairs"
}


def winner_map(
    study: Study,
    variants: Sequence[str],
    metric: str = "test_accuracy",
    keys: tuple[str, str] | None = None,
    target: float | None = None,
    against: str = "time",
    at: At | None = None,
) -> Figure:
    """Draws which of some variants is better, a cell for each point of two swept keys.

    Of two variants a cell is their ratio, above 1 where the first one is better: of
    times to a target (second over first) or, without a target, of final values. Of more
    variants its colour shows the best one, and its number is the ratio to the next best
    one. Winner, number and line are of the same ratio, the median over pairs of
    replicates, which may be on the other side of 1 than the ratio of two medians. Cells
    are hatched where this is inconclusive, and lines run between cells with different
    winners, which for two variants is the contour of equality. A ratio of 1 is a tie. A
    cell has no winner's colour either where a bound leaves the winner unknown, or, of
    more variants, where each is worse than some other ("none"). Points that some
    variant lacks are blank.

    Args:
        study: Study, finished or not.
        variants: Two or more variants.
        metric: Column of the table `evaluations`, above 0 for a ratio.
        keys: Swept keys, to the right and upwards; by default the only two.
        target: Value of the metric; final values are compared without one.
        against: Count until the target, as in `time_to_target`.
        at: Values of the other keys that are swept.

    Raises:
        StudyError: As `winners`.
    """
    table = winners(study, variants, metric, keys, target, against, at)
    x, y = map(str, table.columns[:2])
    steps = ordered(table[x]), ordered(table[y])
    rows = list(zip(*(table[c] for c in ("winner", "ratio", "bound")), strict=True))
    has_ratio = np.array([bool(row[0]) or _is_tie(*row) for row in rows], bool)
    table = table.assign(
        word=[_word(*row) for row in rows],
        best=[variants.index(winner) if winner else -1 for winner, *_ in rows],
        ratio=table["ratio"].where(has_ratio),
    )
    blanks = {"ratio": np.nan, "best": -1, "decided": False, "word": ""}
    ratios, best, decided, words = (
        cells(table, steps, column, blank) for column, blank in blanks.items()
    )
    size = layout.for_print(
        1.9 + CELL[0] * max(len(steps[0]), 4), 1.4 + CELL[1] * max(len(steps[1]), 3)
    )
    with style.context():
        figure = layout.titled(study, size, pinned(at))
        axes = figure.add_subplot()
        if len(variants) == 2:
            image = draw_ratios(axes, ratios, decided, words)
            bar = figure.colorbar(image, ax=axes)
            label_ratios(bar, image)
            bar.set_label("Ratio")  # the note has what it is of: a bar is low
        else:
            colors = style.palette()[: len(variants)]
            look = ListedColormap(colors), Normalize(0, len(variants) - 1)
            sides = np.where(best < 0, np.nan, best)
            draw_cells(axes, sides, words, ~decided, *look)
            handles = [Patch(facecolor=color) for color in colors]
            layout.add_legend(figure, handles, [style.text(name) for name in variants])
        draw_borders(axes, best)
        label_cells(axes, steps)
        right, up = (style.key_label(key, study) for key in (x, y))
        axes.set(xlabel=right, ylabel=up)
        compared = _compared(study, variants, metric, target, against)
        several = layout.replicates(table["pairs"])
        notes = [f"{compared}: medians of {several}; hatched: inconclusive"]
        if target is not None:
            times = times_to_target(study, metric, target, against)
            notes.append(resolution(times, against))
            notes.append(target_words(study, metric, target))
        notes.append(words_on_followers(study, x, right))
        notes.append(words_on_followers(study, y, up))
        layout.add_note(figure, notes)
    return figure


def of_target(study: Study, variants: Sequence[str]) -> tuple[str, Figure]:
    """Returns the name and the map of the target that `time-to-target` is drawn to.

    Where there is none, because all runs diverged, it is of final values.
    """
    goal = default_target(study)
    target = goal.value if goal.is_known else None
    figure = winner_map(study, variants, goal.metric, target=target)
    return f"winner-{'-'.join(map(plain, variants))}", figure


def winners(
    study: Study,
    variants: Sequence[str],
    metric: str = "test_accuracy",
    keys: tuple[str, str] | None = None,
    target: float | None = None,
    against: str = "time",
    at: At | None = None,
) -> pd.DataFrame:
    """Returns the cells of a winner map, a row per point that all variants have.

    Arguments are those of `winner_map`.

    Returns:
        The two keys; winner, whose ratios to all others are above 1 (empty where there
        is none: of a tie, or where the ratio is not known, as where none reaches the
        target, or all at the first evaluation); ratio, above 1 where the first variant
        or, of more than two, the winner is better than the other or the next best one
        (to which its ratio is least), with its interval low, high and bound, as
        `PairedRatio`; pairs; decided, whether 95 % intervals leave out 1, of the
        winner against all others.

    Raises:
        StudyError: Not two keys are swept, or more than these two; there is no such
            variant, or fewer than two are named, or they have no point in common; the
            metric was not evaluated.
    """
    swept = points(study, keys, at)
    known = list(dict.fromkeys(swept["variant"]))
    if len(known) == 1:
        raise StudyError(
            f"a map must be of two or more variants, but all runs are of {known[0]!r}; "
            f"state what you compare under variants, not in the sweep"
        )
    for name in variants:
        if name not in known:
            hint = suggestion(name, known)
            raise StudyError(f"a map must be of variants, got {name!r}; {hint}")
    if len(set(variants)) < 2:
        raise StudyError(
            f"a map must be of two or more variants, got {', '.join(variants)}; known "
            f"are {', '.join(known)}"
        )
    numbers = (
        final_bounds(study, metric)
        if target is None
        else times_to_target(study, metric, target, against)
    )
    falls = target is None and described(study, metric).higher_is_better
    x, y = swept.columns[2:]
    rows = []
    cells = swept[swept["variant"].isin(variants)].dropna(subset=[x, y])
    for point, mine in cells.groupby([x, y], sort=False):
        group = dict(zip(mine["variant"], mine["group"], strict=True))
        if set(group) != set(variants):
            continue
        rows.append((*point, *_cell(variants, group, numbers, falls=falls)))
    if not rows:
        raise StudyError(
            f"a map must be of variants with a point in common, got "
            f"{', '.join(variants)} without; sweep the same values in each"
        )
    columns = [x, y, "winner", *PairedRatio._fields, "decided"]
    return pd.DataFrame(rows, columns=pd.Index(columns))


def _cell(
    variants: Sequence[str],
    group: Mapping[str, str],
    numbers: pd.DataFrame,
    *,
    falls: bool,
) -> tuple[str | float, ...]:
    """Returns the winner of the variants' groups, its ratio, and whether it is decided.

    `falls` says whether larger numbers are better.
    """

    def better(name: str, than: str) -> PairedRatio:
        one, other = group[than], group[name]
        return ratio((other, one) if falls else (one, other), numbers)

    found = {
        name: [better(name, other) for other in variants if other != name]
        for name in variants
    }
    # The least ratio is to the next best one; of a NaN nothing is known.
    nearest = {
        name: those[int(np.argmin([one.ratio for one in those]))]
        for name, those in found.items()
    }
    # Who beats all others has the largest: the ratios of these to it are below 1.
    best = max(variants, key=lambda name: np.nan_to_num(nearest[name].ratio))
    wins = all(one.bound != "≤" and one.ratio > 1 + SAME for one in found[best])
    decided = wins and all(one.is_decided for one in found[best])
    shown = nearest[variants[0] if len(variants) == 2 else best]
    return (best if wins else "", *shown, decided)


def _word(winner: str, ratio: float, bound: str) -> str:
    if _is_tie(winner, ratio, bound):
        return "tie"
    if winner:
        # A narrow win is not to look like a tie.
        digits = 5 if f"{ratio:.3g}" == "1" else 3
        return f"{bound}{ratio:.{digits}g}"
    return "unknown" if bound or np.isnan(ratio) else "none"


def _is_tie(winner: str, ratio: float, bound: str) -> bool:
    return not (winner or bound) and abs(ratio - 1) <= SAME


def draw_ratios(
    axes: Axes,
    ratios: Num[np.ndarray, "rows columns"],
    decided: Bool[np.ndarray, "rows columns"],
    words: Shaped[np.ndarray, "rows columns"],
    most: float | None = None,
) -> AxesImage:
    """Draws ratios in colours that are white at 1, as far above it as below.

    Args:
        axes: Axes, in which the first row is the lowest.
        ratios: Ratios, > 0; NaN where there is no cell, or no number.
        decided: Cells that are not hatched.
        words: Text in each cell; none where it is empty.
        most: Ratio at the end of the colours, > 1; by default the largest one there is.
    """
    logs = np.abs(np.log(ratios[np.isfinite(ratios)]))
    most = most or math.exp(max(logs.max(initial=0.0), math.log(1.1)))
    return draw_cells(axes, ratios, words, ~decided, COLORMAP, LogNorm(1 / most, most))


def label_ratios(bar: Colorbar, image: AxesImage) -> None:
    """Writes plain numbers next to the colours of ratios."""
    ends = image.get_clim()
    ticks = np.geomspace(*ends, 5)
    bar.set_ticks(list(ticks), labels=[f"{tick:.3g}" for tick in ticks])
    bar.minorticks_off()


def draw_borders(axes: Axes, sides: Num[np.ndarray, "rows columns"]) -> None:
    """Draws lines between cells that are next to each other and on different sides."""

    def borders(one: np.ndarray, other: np.ndarray) -> np.ndarray:
        return np.argwhere((one >= 0) & (other >= 0) & (one != other)) + 0.5

    upright, level = (
        borders(sides[:, :-1], sides[:, 1:]),
        borders(sides[:-1], sides[1:]),
    )
    lines = [[(x, y - 1), (x, y)] for y, x in upright]
    lines += [[(x - 1, y), (x, y)] for y, x in level]
    axes.add_collection(LineCollection(lines, colors=style.ink(), linewidths=1.8))


def _compared(
    study: Study,
    variants: Sequence[str],
    metric: str,
    target: float | None,
    against: str,
) -> str:
    known = described(study, metric)
    names = variants if len(variants) == 2 else ("the best", "the next best")
    falls = target is None and known.higher_is_better
    sides = " over ".join(style.text(name) for name in names[:: 1 if falls else -1])
    if target is None:
        return f"{style.final_label(metric, study)}, {sides}"
    goal = layout.goal(study, metric, target)
    return f"{layout.axis(study, against)[0]} to {goal}, {sides}"
