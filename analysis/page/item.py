"""One item of the checklist."""

from typing import NamedTuple

Rows = list[tuple[str, str]]
"""Names and what there is to say of each."""


class Marked(str):
    """A paragraph of ours, in which backquotes stand around code, in pairs.

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


class Section(NamedTuple):
    """One of the checklist's sections."""

    title: str
    items: list[Item]
