"""Columns of a table in a terminal: how wide each is, and which have no room."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from rich.cells import cell_len

GAP = 2
"""Characters between columns, and of the empty edges of a table together."""
LONGEST = 32
"""Characters from which on a cell may take several lines."""


class TableColumn(NamedTuple):
    """A column as text.

    Attributes:
        title: Heading.
        cells: Cell of each row.
    """

    title: str
    cells: Sequence[str]

    @property
    def least(self) -> int:
        """Characters of its longest cell, or word of its title."""
        texts = [*self.title.split(), *(t for c in self.cells for t in c.split("\n"))]
        return min(LONGEST, max(map(cell_len, texts), default=1))

    @property
    def natural(self) -> int:
        """Characters that it takes if nothing is wrapped."""
        lines = (line for t in (self.title, *self.cells) for line in t.split("\n"))
        return max(map(cell_len, lines), default=1)


def parts(
    columns: Sequence[TableColumn], room: int, names: int = 1
) -> Iterator[list[TableColumn]]:
    """Yields the columns of one table, or of several that each have room.

    The first columns identify a row and are repeated in all of them.

    Args:
        columns: At least as many as names.
        room: Characters of a line.
        names: Number of columns that identify a row.
    """
    first, others = [*columns[:names]], columns[names:]
    part = first
    for column in others:
        if len(part) > len(first) and _width([*part, column]) > room:
            yield part
            part = first
        part = [*part, column]
    yield part


def _width(columns: Sequence[TableColumn]) -> int:
    return sum(column.least + GAP for column in columns)


def widths(columns: Sequence[TableColumn], room: int) -> list[int]:
    """Returns the width of each column: no short cell is broken if all have room.

    Free width goes to columns that would wrap, first to those that need least.

    Args:
        columns: Columns of a table.
        room: Characters of a line.
    """
    found = [column.least for column in columns]
    left = max(0, room - _width(columns))
    needs = [max(c.natural, c.least) - c.least for c in columns]
    for number in sorted(range(len(columns)), key=needs.__getitem__):
        given = min(needs[number], left)
        found[number] += given
        left -= given
    return found
