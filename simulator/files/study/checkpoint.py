"""A run that is half done, in a file: arrays, numbers and words, with a checksum."""

import hashlib
import io
import json
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from ...parts.json_text import Tree
from ..reading.archive import packed
from .disk import Disk, explained, replace

ARRAY = "array:"
"""Replaces, with its name, an array in what is otherwise JSON."""
DIGEST_BYTES = hashlib.sha256().digest_size


def write(disk: Disk, path: Path, state: object) -> None:
    """Writes a state, all of it or nothing."""
    arrays: dict[str, np.ndarray] = {}
    text = json.dumps(_without_arrays(state, arrays))
    data = packed({**arrays, "state": np.frombuffer(text.encode(), np.uint8)})
    with explained(path.parent.parent):
        disk.make(path.parent)
        replace(disk, path, hashlib.sha256(data).digest() + data)


def read(disk: Disk, path: Path) -> Tree | None:
    """Returns a state as it was written; None if there is none, or it is damaged."""
    try:
        data = disk.read(path)
    except OSError:
        return None
    digest, data = data[:DIGEST_BYTES], data[DIGEST_BYTES:]
    if hashlib.sha256(data).digest() != digest:
        return None
    with np.load(io.BytesIO(data)) as arrays:
        state = json.loads(arrays["state"].tobytes())
        return {key: _with_arrays(value, arrays) for key, value in state.items()}


def _without_arrays(tree: object, arrays: dict[str, np.ndarray]) -> object:
    match tree:
        case np.ndarray():
            name = f"{ARRAY}{len(arrays)}"
            arrays[name] = tree
            return name
        case dict():
            return {key: _without_arrays(value, arrays) for key, value in tree.items()}
        case list() | tuple():
            return [_without_arrays(value, arrays) for value in tree]
    return tree


def _with_arrays(tree: object, arrays: Mapping[str, np.ndarray]) -> object:
    match tree:
        case str() if tree.startswith(ARRAY):
            return arrays[tree]
        case dict():
            return {key: _with_arrays(value, arrays) for key, value in tree.items()}
        case list():
            return [_with_arrays(value, arrays) for value in tree]
    return tree
