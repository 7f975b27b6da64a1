"""Items of a study's page, and words for them: values and lists as plain text."""

import inspect
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from ...simulator.parts import catalogue
from ...simulator.parts.base import tag
from ...simulator.parts.errors import TAGS, printed
from ..facts import Entry

MOST_LISTED = 12
"""Values of a list that are written out."""
UNITS = {"time": "virtual s"}
"""Units of periods and limits whose keys are no units."""
Rows = list[tuple[str, str]]
"""Names and the text on each."""


class Marked(str):
    """A paragraph of the program's, in which backquotes enclose code, in pairs.

    All other text may be the user's, and its backquotes are backquotes.
    """

    __slots__ = ()


class Item(NamedTuple):
    """One item of the checklist.

    Attributes:
        number: Number in the checklist.
        title: Title of the item.
        text: Paragraphs, of which some may be `Marked`.
        rows: Rows of a table.
        steps: Events that happen one after the other.
    """

    number: str
    title: str
    text: tuple[str, ...] | list[str] = ()
    rows: tuple[tuple[str, str], ...] | Rows = ()
    steps: tuple[tuple[str, str], ...] | Rows = ()


def shown(value: object) -> str:
    """Returns a value of a scenario in one line; of a long list the first entries."""
    if isinstance(value, list | tuple):
        return f"[{listed(value)}]"
    if isinstance(value, Mapping):
        return printed({k: v for k, v in value.items() if v is not None})
    if isinstance(value, bool):
        return str(value).lower()
    return "nothing" if value is None else str(value)


def listed(values: Iterable[object]) -> str:
    """Returns values between commas; of many the first ones and how many there are."""
    texts = [shown(value) for value in values]
    if len(texts) <= MOST_LISTED:
        return ", ".join(texts)
    return f"{', '.join(texts[:MOST_LISTED])}, ... ({len(texts)} in all)"


def span(numbers: Iterable[float], unit: str) -> str:
    """Returns the smallest and the largest of some numbers with their unit."""
    known = sorted(numbers)
    low, high = (f"{end:.6g}" for end in (known[0], known[-1]))
    return f"{low} {unit}" if low == high else f"{low} to {high} {unit}"


def duration(seconds: float) -> str:
    """Returns seconds of real time as a reader counts them."""
    minutes, hours = seconds / 60, seconds / 3600
    if hours >= 1:
        return f"{hours:.3g} h"
    return f"{minutes:.3g} min" if minutes >= 1 else f"{seconds:.3g} s"


def entries(tree: Entry, prefix: str) -> Iterator[tuple[str, str]]:
    """Yields the dotted keys and values of a scenario's component, without empty ones.

    A law, or a component with a `kind`, is one value.
    """
    for key, value in tree.items():
        name = f"{prefix}.{key}"
        if value is None or value in ({}, [], ()):
            continue
        if isinstance(value, Mapping) and not value.keys() & TAGS:
            yield from entries(value, name)
        else:
            yield name, shown(value)


def about(kind: str, name: str) -> list[str]:
    """Returns the documentation of a catalogue entry, by paragraph."""
    for part in catalogue.parts(kind):
        if tag(part) == name:
            text = inspect.cleandoc(part.__doc__ or "")
            return [" ".join(words.split()) for words in text.split("\n\n")]
    return []
