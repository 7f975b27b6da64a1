"""Names of columns, and the nearest one to a name that does not exist."""

from collections.abc import Iterable
from difflib import get_close_matches

RGB = ("red", "green", "blue")


def pixels(
    height: int, width: int, channels: tuple[str, ...] = ("pixel",)
) -> tuple[str, ...]:
    """Returns `CHANNEL_ROW_COLUMN` for every pixel, row by row, channel by channel.

    Args:
        height: Number of rows of an image.
        width: Number of columns of an image.
        channels: Names of its planes.
    """
    return tuple(
        f"{channel}_{row}_{column}"
        for channel in channels
        for row in range(height)
        for column in range(width)
    )


def numbered(num_columns: int) -> tuple[str, ...]:
    """Returns `x0`, `x1`, ... for columns without names of their own."""
    return tuple(f"x{column}" for column in range(num_columns))


def counted(name: str, num_columns: int) -> tuple[str, ...]:
    """Returns `NAME_0`, `NAME_1`, ... for the columns of one kind."""
    return tuple(f"{name}_{column}" for column in range(num_columns))


def hint(name: str, known: Iterable[str]) -> str:
    """Returns the end of a message about an unknown name: the nearest known name.

    Unlike the scenario's own hints it never lists all names: there may be thousands.
    """
    near = get_close_matches(name, list(known), n=1, cutoff=0.4)
    return f"did you mean {near[0]!r}?" if near else "no name is near it"
