"""Pictures in tables: one file per cell."""

import io
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import UInt8

from ...parts.errors import DataError
from . import files

if TYPE_CHECKING:
    import pyarrow as pa

FORMATS = ("PNG", "JPEG", "WEBP", "BMP")
"""Formats that are read; each further one is code that strangers' bytes reach."""
GREY = ("1", "L")
"""Pillow's names of pictures without colours."""
DAMAGED = (OSError, ValueError, SyntaxError, OverflowError)
"""Errors that a damaged picture may raise."""


def is_packed(kind: "pa.DataType") -> bool:
    """Returns whether a column has pictures as files: bytes, or with a path to them."""
    from pyarrow import types

    if types.is_struct(kind):
        return {field.name for field in kind} == {"bytes", "path"}
    return types.is_binary(kind) or types.is_large_binary(kind)


def unpacked(cells: "pa.Array", place: str) -> UInt8[np.ndarray, " N *s"]:
    """Returns pictures as bytes of pixels, `[N, H, W]`, or three planes `[N, 3, H, W]`.

    Grey ones have one plane, all others red, green and blue; those with a palette or
    transparency are converted. Planes come before pixels, as in the simulator's models
    for images.

    Args:
        cells: A column of which `is_packed` holds.
        place: Name of the column and its file, for messages.

    Raises:
        DataError: A cell is empty, names a file that is elsewhere, holds no picture,
            or one of another size or number of planes than the first.
    """
    from pyarrow import types

    packed = cells.field("bytes") if types.is_struct(cells.type) else cells
    content = packed.to_pylist()
    if None in content:
        raise DataError(
            f"{place} must hold the bytes of a picture in every row, got none in row "
            f"{content.index(None) + 1}; save the pictures themselves, not their paths"
        )
    return alike(content, place)


def alike(content: Sequence[bytes], place: str) -> UInt8[np.ndarray, " N *s"]:
    """Returns pictures of one size and mode, as `unpacked` does.

    Args:
        content: Files, at least one.
        place: Words on where they are, for messages.

    Raises:
        DataError: One holds no picture, or one unlike the first.
    """
    first = _pixels(content[0], f"{place}, row 1")
    try:
        files.check(first.size * len(content), sum(map(len, content)))
    except ValueError as error:
        raise DataError(
            f"{place} must not unpack to so much, got {error}; save arrays of pixels"
        ) from error
    found = np.empty((len(content), *first.shape), np.uint8)
    for row, packed in enumerate(content):
        pixels = _pixels(packed, f"{place}, row {row + 1}")
        if pixels.shape != first.shape:
            raise DataError(
                f"{place} must hold pictures of one size and mode, got {first.shape} "
                f"in row 1 and {pixels.shape} in row {row + 1}; resize or convert them"
            )
        found[row] = pixels
    return found


def _pixels(packed: bytes, place: str) -> UInt8[np.ndarray, " *s"]:
    from PIL import Image, UnidentifiedImageError

    try:
        with Image.open(io.BytesIO(packed), formats=FORMATS) as opened:
            if opened.mode in GREY:
                return np.asarray(opened.convert("L"), np.uint8)
            return np.asarray(opened.convert("RGB"), np.uint8).transpose(2, 0, 1)
    except (UnidentifiedImageError, Image.DecompressionBombError, *DAMAGED) as error:
        says = " ".join(str(error).split())
        raise DataError(
            f"{place} must be a whole picture ({', '.join(FORMATS)}), got: {says}; "
            "save it again"
        ) from error
