"""Words for a study's page: values, lists and parts of a scenario as plain text."""

import inspect
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from ...simulator.config import catalogue
from ...simulator.config.parts import tag
from ...simulator.config.text import TAGS, printed

MOST_LISTED = 12
"""Values of a list that are written out."""


def shown(value: Any) -> str:
    """Returns a value of a scenario in one line; of a long list the first entries."""
    if isinstance(value, list | tuple):
        return f"[{listed(value)}]"
    if isinstance(value, Mapping):
        return printed({k: v for k, v in value.items() if v is not None})
    if isinstance(value, bool):
        return str(value).lower()
    return "nothing" if value is None else str(value)


def listed(values: Iterable[Any]) -> str:
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


def entries(tree: Mapping[str, Any], prefix: str) -> Iterator[tuple[str, str]]:
    """Yields the dotted keys and values of a part of a scenario, without empty ones.

    A law, or a part of a kind of its own, is one value.

    Args:
        tree: Nested mappings.
        prefix: Dotted key of the tree itself.
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
    """Returns what a part of the catalogue says of itself, paragraph by paragraph.

    Args:
        kind: Key of `catalogue.KINDS`.
        name: Name by which a scenario chooses the part.
    """
    for part in catalogue.parts(kind):
        if tag(part) == name:
            text = inspect.cleandoc(part.__doc__ or "")
            return [" ".join(words.split()) for words in text.split("\n\n")]
    return []
