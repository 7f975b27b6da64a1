"""Panels and colours: by swept value, and for groups beyond the colours."""

from collections.abc import Sequence
from typing import NamedTuple, TypeVar

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.colors import to_hex

from ..frames import (
    Study,
    follow,
    groups,
    ordered,
    swept_axes,
    swept_columns,
    swept_keys,
)
from . import layout, style
from .lines import groups_at, split, worded

Item = TypeVar("Item")

MOST_PANELS = 24
"""Panels of one figure; a note names the omitted ones."""
MOST_VALUES = 12
"""Swept values with a panel each, unless you ask for panels."""
COLORS = "viridis"
"""Colours of lines, which differ in hue as well as in lightness.

Source: Smith and van der Walt, A better default colormap for Matplotlib (SciPy 2015).
"""
LIGHTEST = 0.85
"""Part of the colour map that lines take; the rest is too light on white."""
PALE = "#c8c8c8"
"""Colour of all other groups, behind the one that a panel is about."""


Facet = tuple[str, list[str]]
"""One panel: its title, and the groups that it shows."""


class Facets(NamedTuple):
    """Division of the groups of a study into panels.

    Attributes:
        panels: Panels that are drawn.
        all_panels: Number of panels that there would be.
        key: Swept key whose number colours show; else empty.
        words: Words on each group, as the legend has them; none where a panel is one
            group's, before all others in grey.
        looks: Style of every group.
    """

    panels: list[Facet]
    all_panels: int
    key: str
    words: dict[str, str]
    looks: dict[str, style.Look]

    @property
    def by_value(self) -> bool:
        """Whether each panel compares variants at a swept value."""
        return bool(self.words) and not self.key

    def left_out(self) -> str:
        """Returns words on panels that are not drawn."""
        if len(self.panels) == self.all_panels:
            return ""
        return f"{len(self.panels)} of {self.all_panels} panels are drawn"


def facets(
    study: Study, among: Sequence[str] | None = None, over: str | None = None
) -> Facets | None:
    """Returns panels that compare variants, or show more groups than colours can.

    `convergence` describes them.

    Args:
        study: Study, finished or not.
        among: Groups that are drawn; by default all.
        over: Swept key, or `variant`, of which each value has a panel.

    Returns:
        None where one panel suffices.

    Raises:
        StudyError: There is no such key.
    """
    known = groups(study) if among is None else list(among)
    given = [] if over in (None, "variant") else [over]
    by, table = groups_at(study, given, None)
    table = table.loc[table["group"].isin(known)]
    columns, keys = swept_columns(study), by or ([over] if over else swept_axes(study))
    sizes = table.groupby([columns.get(k, k) for k in keys]).size() if keys else ()
    compares = 1 < len(sizes) <= MOST_VALUES and min(sizes) > 1
    if over or compares:
        return _by_value(study, table, keys)
    if len(known) <= len(style.palette()):
        return None
    key = _telling(table, [(k, columns[k]) for k in swept_keys(study)])
    if key is None:
        every = {name: style.Look(style.palette()[0], style.SOLID) for name in known}
        panels = [(layout.label(study, name), [name]) for name in known]
        return Facets(spread(panels, MOST_PANELS), len(panels), "", {}, every)
    along = {key, *follow(study, key)}
    others = [k for k in swept_keys(study) if k not in along]
    panels = [
        (title, list(rows.sort_values(columns[key])["group"]))
        for title, rows in split(study, table, ["variant", *others]).items()
    ]
    colors = sequential(ordered(table[columns[key]]))
    # A group that is not swept over the key is black.
    looks = dict.fromkeys(known, style.Look(style.ink(), style.DASHED))
    words = dict.fromkeys(known, "")
    swept = table.set_index("group")[columns[key]].dropna()
    for group, number in swept.items():
        looks[str(group)] = style.Look(colors[number], style.SOLID)
        words[str(group)] = worded(number)
    return Facets(spread(panels, MOST_PANELS), len(panels), key, words, looks)


def _by_value(study: Study, table: pd.DataFrame, keys: Sequence[str]) -> Facets:
    """Returns a panel for each value of some keys; groups without one are in all."""
    columns = swept_columns(study)
    fixed = {*keys}.union(*(follow(study, key) for key in keys if key in columns))
    others = [key for key in ("variant", *swept_keys(study)) if key not in fixed]
    lines = split(study, table, others)
    looks = style.looks(lines)
    words = {group: line for line, rows in lines.items() for group in rows["group"]}
    swept = table.dropna(subset=[columns.get(key, key) for key in keys])
    level = [group for group in words if group not in {*swept["group"]}]
    panels = [
        (title, [*rows["group"], *level])
        for title, rows in split(study, swept, keys).items()
    ]
    of_groups = {group: looks[line] for group, line in words.items()}
    return Facets(spread(panels, MOST_PANELS), len(panels), "", words, of_groups)


def looks(study: Study) -> dict[str, style.Look]:
    """Returns the style of every group of a study, the same in all of its figures."""
    found = facets(study)
    return style.looks(groups(study)) if found is None else found.looks


def sequential(values: Sequence[float]) -> dict[float, str]:
    """Returns a colour for each of some ordered values, from dark to light."""
    shades = np.linspace(0, LIGHTEST, max(len(values), 2))
    table = mpl.colormaps[COLORS]
    return {v: to_hex(table(s)) for v, s in zip(values, shades, strict=False)}


def spread(items: Sequence[Item], most: int) -> list[Item]:
    """Returns `count` items of a list, evenly from its first to its last."""
    places = np.rint(np.linspace(0, len(items) - 1, min(len(items), most)))
    return [items[place] for place in places.astype(int)]


def _telling(table: pd.DataFrame, keys: list[tuple[str, str]]) -> str | None:
    values = {key: ordered(table[column]) for key, column in keys}
    sizes = {
        key: len(known)
        for key, known in values.items()
        if all(isinstance(v, int | float) and not isinstance(v, bool) for v in known)
    }
    return max(sizes, key=lambda key: sizes[key]) if sizes else None
