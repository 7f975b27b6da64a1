"""Batches of CIFAR-10's Python version: pickles, whose code is never executed."""

import io
import pickle
import pickletools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import UInt8

from ...config.errors import DataError
from ...storage import files

PIXELS = 3 * 32 * 32
DAMAGED = (
    *(pickle.UnpicklingError, EOFError, LookupError, AttributeError, ImportError),
    *(TypeError, ValueError, MemoryError, OverflowError, RecursionError),
)
"""Errors of an unpickler on a damaged file."""
LONGEST = 200
"""Largest number of characters that a message quotes of a file."""


class PickledArray:
    """Description of an array in a pickle, in place of the array itself."""

    state: tuple[Any, ...] = ()

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        """Keeps version, shape, type, order and content as they are."""
        self.state = state


class PickledType:
    """Description of an array's type of numbers in a pickle."""

    code: Any = None

    def __setstate__(self, state: Any) -> None:
        """Ignores byte order and fields: a byte has neither."""


class Allowed:
    """Stand-in of a name in a pickle, which can call it but not change it."""

    __slots__ = ("_make",)

    def __init__(self, make: Callable[..., Any]) -> None:
        self._make = make

    def __call__(self, *arguments: Any) -> Any:
        """Returns the stand-in of the result."""
        return self._make(*arguments)

    def __setstate__(self, state: Any) -> None:
        """Refuses a state.

        Raises:
            UnpicklingError: Always.
        """
        raise pickle.UnpicklingError("it sets the state of what it may only call")


def _array(*_: Any) -> PickledArray:
    return PickledArray()


def _type(code: Any, *_: Any) -> PickledType:
    found = PickledType()
    found.code = code
    return found


def _bytes(text: str = "", *_: Any) -> bytes:
    """Returns bytes that Python 3 pickled as text, of Latin letters."""
    return text.encode("latin1")


def _no_bytes() -> bytes:
    return b""


ALLOWED = {
    ("numpy.core.multiarray", "_reconstruct"): Allowed(_array),
    ("numpy._core.multiarray", "_reconstruct"): Allowed(_array),
    ("numpy", "ndarray"): Allowed(_array),
    ("numpy", "dtype"): Allowed(_type),
    ("_codecs", "encode"): Allowed(_bytes),
    ("__builtin__", "bytes"): Allowed(_no_bytes),
    ("builtins", "bytes"): Allowed(_no_bytes),
}
"""All names that a pickle may call, and their stand-ins."""


class Unpickler(pickle.Unpickler):
    """Reads plain values and descriptions of numpy's arrays; executes nothing."""

    def find_class(self, module_name: str, global_name: str, /) -> Any:
        """Returns the stand-in of an allowed name.

        Raises:
            UnpicklingError: The name is not allowed.
        """
        found = ALLOWED.get((module_name, global_name))
        if found is None:
            raise pickle.UnpicklingError(f"it asks for {module_name}.{global_name}")
        return found


def parse(path: Path) -> tuple[UInt8[np.ndarray, "N P"], UInt8[np.ndarray, " N"]]:
    """Returns the images and labels of a batch.

    Raises:
        DataError: The file is no pickle of plain values and arrays, its images have
            another shape, or its labels are none.

    Source: the CIFAR-10 page, Python version: a dictionary of `data` and `labels`.
    """
    content = files.read(path)
    try:
        entries = _entries(content)
        x, y = _images(entries["data"]), _labels(entries["labels"])
    except DAMAGED as error:
        says = " ".join(str(error).split()) or type(error).__name__
        raise DataError(
            f"{path} must be a batch of CIFAR-10's Python version, a dictionary of "
            f"data and labels, got: {says[:LONGEST]}; unpack it again from "
            "cifar-10-python.tar.gz"
        ) from error
    if len(x) != len(y):
        raise DataError(
            f"{path} must have a label for each image, got {len(x)} images and "
            f"{len(y)} labels; unpack it again"
        )
    return x, y


def _entries(content: bytes) -> dict[str, Any]:
    """Returns the entries of a pickled dictionary, which has data and labels.

    Raises:
        ValueError: It is none, or has not; damaged files raise any of `DAMAGED`.
    """
    for code, argument, _ in pickletools.genops(content):
        # The unpickler would reserve memory for all numbers up to the highest.
        if "PUT" in code.name and (argument or 0) > len(content):
            raise ValueError("more objects than bytes")
    # Keys and the numbers themselves are byte strings of Python 2.
    batch = Unpickler(io.BytesIO(content), encoding="bytes").load()
    if not isinstance(batch, dict):
        raise ValueError(f"a {type(batch).__name__}")
    entries = {
        key.decode("latin1") if isinstance(key, bytes) else key: value
        for key, value in batch.items()
    }
    for name in ("data", "labels"):
        if name not in entries:
            raise ValueError(f"no {name}")
    return entries


def _images(array: Any) -> UInt8[np.ndarray, "N P"]:
    """Returns the images that a pickled array consists of.

    Raises:
        ValueError: It is not an array of bytes, or has another shape.
    """
    if not isinstance(array, PickledArray):
        raise ValueError("data that are no array")
    _, shape, numbers, by_column, content = array.state
    code = getattr(numbers, "code", None)
    if code not in ("u1", b"u1"):
        raise ValueError(f"data of type {code!r} instead of uint8")
    if len(shape) != 2 or shape[0] < 1 or shape[1] != PIXELS:
        raise ValueError(f"data of shape {tuple(shape)} instead of (N, {PIXELS})")
    order = "F" if by_column else "C"
    return np.frombuffer(content, np.uint8).reshape(shape, order=order)


def _labels(labels: Any) -> UInt8[np.ndarray, " N"]:
    """Returns labels from 0 to 9.

    Raises:
        ValueError: They are no list of such numbers.
    """
    fits = isinstance(labels, list) and all(type(label) is int for label in labels)
    if not fits or not all(0 <= label <= 9 for label in labels):
        raise ValueError("labels that are no list of numbers from 0 to 9")
    return np.array(labels, np.uint8)
