"""How large files may be, found out before memory is taken for what they hold.

A few kilobytes may unpack to more than a machine has, by mistake or on purpose.
"""

from collections.abc import Callable

LARGEST = 16 * 2**30
"""Bytes that a file may hold, unpacked."""
MOST_TEXT = 2**30
"""Bytes of text that a table may hold, unpacked. In memory a cell takes ten times as
much as the number in it."""
ALWAYS = 256 * 2**20
"""Bytes that any file may unpack to."""
RATIO = 100
"""More than `ALWAYS` only files may hold that are not packed tighter than this."""
PIECE = 2**20


def limit(packed: int) -> int:
    """Returns how many bytes a file of `size` bytes may unpack to."""
    return min(LARGEST, max(ALWAYS, RATIO * packed))


def check(unpacked: int, packed: int) -> None:
    """Refuses a file that would unpack to too much.

    Args:
        unpacked: Bytes of its content.
        packed: Bytes of the file.

    Raises:
        ValueError: the content is too large; the message is one line.
    """
    if unpacked > limit(packed):
        raise ValueError(
            f"{shown(unpacked)} of content in {shown(packed)}, where "
            f"{shown(limit(packed))} are allowed"
        )


def unpack(read: Callable[[int], bytes], packed: int) -> bytes:
    """Returns the content of a packed file, unless it is too much.

    Args:
        read: Returns at most the given number of bytes, none at the end.
        packed: Bytes of the file.

    Raises:
        ValueError: it is too much.
    """
    pieces, size = [], 0
    while piece := read(PIECE):
        size += len(piece)
        if size > limit(packed):
            raise ValueError(
                f"more than the {shown(limit(packed))} of content that are allowed in "
                f"{shown(packed)}"
            )
        pieces.append(piece)
    return b"".join(pieces)


def shown(size: int) -> str:
    """Returns a number of bytes as a reader counts them: `1.5 GiB`."""
    number, unit = float(size), "bytes"
    for larger in ("KiB", "MiB", "GiB", "TiB", "PiB", "EiB"):
        if number < 1024:
            break
        number, unit = number / 1024, larger
    return f"{number:.4g} {unit}"
