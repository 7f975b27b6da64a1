"""JSON that others have written: read without being taken for more than it is."""

import json
from typing import Any, TypeAlias

Json: TypeAlias = "bool | int | float | str | list[Json] | dict[str, Json] | None"
"""Values of a text in JSON, or in stalesim's YAML."""

Tree = dict[str, Any]
"""Nested mappings, lists, numbers and words, as JSON has them."""
MOST_VALUES = 10_000_000
"""Values of a text, each of which takes up to a hundred bytes of memory; the manifest
of the largest study has some 3 million."""


def loads(data: bytes, most: int = MOST_VALUES) -> Any:
    """Returns the value of a JSON text.

    Args:
        data: Text in UTF-8.
        most: Values that it may have; they are counted before memory is taken for them.

    Raises:
        ValueError: It is no JSON, nested too deep, or too long; in one line.
    """
    values = sum(map(data.count, (b",", b"[", b"{")))
    if values > most:
        raise ValueError(f"has some {values:,} values, where {most:,} are allowed")
    try:
        return json.loads(data.decode())
    except RecursionError:
        raise ValueError("is not JSON (nested too deep)") from None
    except ValueError as error:
        raise ValueError(f"is not JSON ({str(error)[:80]})") from None
