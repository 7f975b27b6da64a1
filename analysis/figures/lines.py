"""Lines over a swept key; runs that differ are never joined as replicates."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd

from ...simulator.files.study import StudyError
from ...simulator.parts.errors import documented_key, shown, suggestion
from ...simulator.scenario.study import short_names
from ..frames import Study, follow, ordered, runs, short, swept_columns, swept_keys
from . import layout, style

At = Mapping[str, object]
"""Values of swept keys, to which a figure is confined."""
MOST_LINES = 24
"""Number of lines that colour and dashes can distinguish."""


class Line(NamedTuple):
    """The groups of a variant that differ in one swept value alone.

    Attributes:
        label: Variant, and values of the other keys that are swept.
        groups: Names of groups of runs, in the order of `numbers`.
        numbers: Swept values, increasing, or their places from 0 if they are no
            numbers; NaN where the variant is not swept.
        names: Swept values as text, in order of their places; none for numbers.
    """

    label: str
    groups: list[str]
    numbers: np.ndarray
    names: Sequence[str] = ()

    @property
    def is_level(self) -> bool:
        """Whether the line does not depend on the swept value."""
        return bool(np.isnan(self.numbers).all())


def swept_key(study: Study) -> str | None:
    """Returns the only swept key with numbers, apart from keys that follow from it."""
    keys = swept_keys(study)
    for key, values in keys.items():
        numbers = all(isinstance(value, int | float) for value in values)
        if numbers and len(follow(study, key)) == len(keys) - 1:
            return key
    return None


def lines_over(study: Study, key: str, at: At | None = None) -> tuple[list[Line], str]:
    """Returns the lines of a figure over a swept key; no group is in two of them.

    With them come words on keys that change together with the key; else "".

    Raises:
        StudyError: A key is not swept, nothing has the values, or there are more lines
            than can be told apart.
    """
    columns, fixed = swept_columns(study), fixed_values(study, at)
    (key,), table = groups_at(study, [key], at)
    known = table[columns[key]].dropna()
    if known.empty:
        raise StudyError(f"at must name values that are swept, got {pinned(at)}")
    names: list[str] = []
    if any(isinstance(v, bool) or not isinstance(v, int | float) for v in known):
        values = ordered(known)
        names = [worded(value) for value in values]
        places = {value: place for place, value in enumerate(values)}
        table = table.assign(**{columns[key]: table[columns[key]].map(places)})
    others = [name for name in columns if name not in (key, *fixed)]
    splitting = [name for name in others if _splits(table, columns[key], columns[name])]
    found = []
    for label, rows in split(study, table, ["variant", *splitting]).items():
        rows = rows.sort_values(columns[key])
        numbers = rows[columns[key]].to_numpy(np.float64)
        found.append(Line(label, list(rows["group"]), numbers, names))
    if splitting and len(found) > MOST_LINES:
        raise StudyError(
            f"more than {key} is swept, which makes {len(found)} lines; name values of "
            f"the other keys by at: {', '.join(splitting)}"
        )
    along = [name for name in others if _changes(table, found, columns[name])]
    words = f"along with it changes {' and '.join(map(style.text, along))}"
    return found, words if along else ""


def groups_at(
    study: Study, keys: Sequence[str], at: At | None
) -> tuple[list[str], pd.DataFrame]:
    """Returns the groups that have some values, or are not swept over their keys.

    Returns:
        The keys, given in any words, or by their ends, as `swept_columns` has them; and
        a row per group, as `frames.runs` has it.

    Raises:
        StudyError: A key is not swept, or no group has a value of it.
    """
    columns, fixed = swept_columns(study), fixed_values(study, at)
    table = runs(study).drop_duplicates("group")
    kept = np.ones(len(table), bool)
    for key, value in fixed.items():
        column = table[columns[key]]
        kept &= (column.isna() | is_at(column, value)).to_numpy()
    return [_key_of(study, key) for key in keys], table.loc[kept]


def key_named(study: Study, key: str) -> str | None:
    """Returns the swept key that is written in any words, or by its end, if one is."""
    found, known = documented_key(key), swept_columns(study)
    ends = [each for each in known if each.endswith(f".{key}")]
    if found in known:
        return found
    return ends[0] if len(ends) == 1 else None


def _key_of(study: Study, key: object) -> str:
    found = key_named(study, str(key))
    if found is None:
        known = swept_columns(study)
        raise StudyError(f"{key} is not swept; {suggestion(key, known)}")
    return found


def is_at(column: pd.Series, value: object) -> pd.Series:
    """Returns which rows of a column of swept values have one of them.

    Raises:
        StudyError: None has.
    """
    found = column.map(lambda each: each == short(value)).astype(bool)
    if not found.any():
        given = pinned({str(column.name): value})
        known = ", ".join(shown(each) for each in ordered(column))
        raise StudyError(
            f"at must name values that are swept, got {given}; known are {known}"
        )
    return found


def fixed_values(study: Study, at: object) -> dict[str, object]:
    """Returns values of other swept keys, to which a figure is confined.

    Raises:
        StudyError: They are no mapping, as an instant, or a key is not swept.
    """
    if at is not None and not isinstance(at, Mapping):
        raise StudyError(
            f"at must be values of other swept keys, such as "
            f"{{'algorithm.learning_rate': 0.1}}, got {shown(at)}; for the metric "
            f"after {shown(at)} seconds take after={shown(at)}"
        )
    return {_key_of(study, key): value for key, value in (at or {}).items()}


def split(
    study: Study, table: pd.DataFrame, keys: Sequence[str]
) -> dict[str, pd.DataFrame]:
    """Divides groups of runs by the values of some swept keys, or of `variant`.

    Returns:
        The rows of each part, by its name.
    """
    columns, names = (
        {"variant": "variant"} | swept_columns(study),
        short_names((*keys,)),
    )
    by = [columns[key] for key in keys]
    found = {}
    for _, rows in table.groupby(by, sort=False, dropna=False) if by else [((), table)]:
        values = {names[key]: rows.iloc[0][columns[key]] for key in keys}
        variant = values.pop("variant", None)
        words = [f"{name}={worded(v)}" for name, v in values.items() if not pd.isna(v)]
        first = variant and layout.name(study, variant)
        found[", ".join(filter(None, (first, *words)))] = rows
    return found


def worded(value: object) -> str:
    """Returns a swept value as figures show it."""
    return f"{value:g}" if isinstance(value, float) else str(short(value))


def words_on_followers(study: Study, key: str, name: str) -> str:
    """Returns words on keys that change with a swept one, as zipped ones; else ""."""
    others = [style.key_label(other, study) for other in follow(study, key)]
    return f"with {name} changes {', '.join(others)}" if others else ""


def pinned(at: At | None) -> str:
    """Returns words on the values to which a figure is confined."""
    at = {documented_key(key): value for key, value in (at or {}).items()}
    return ", ".join(f"{key} = {worded(value)}" for key, value in at.items())


def _splits(table: pd.DataFrame, key: str, other: str) -> bool:
    different = table.drop_duplicates(["variant", key, other])
    return bool(different.duplicated(["variant", key]).any())


def _changes(table: pd.DataFrame, lines: list[Line], column: str) -> bool:
    values = table.set_index("group")[column]
    return any(len(values[line.groups].drop_duplicates()) > 1 for line in lines)
