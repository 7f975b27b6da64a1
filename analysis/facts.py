"""What parts have said of themselves in a run's entry of a manifest.

A protocol's and an algorithm's `described` write it when the run is planned. Entries of
an earlier version have none, and nothing replaces it.
"""

from collections.abc import Mapping
from typing import Any


def of(entry: Mapping[str, Any], name: str) -> Any:
    """Returns a fact of a run; None where it was not noted.

    Args:
        entry: Entry of the run in its manifest.
        name: As in `Protocol.described` or `Algorithm.described`.
    """
    return (entry.get("facts") or {}).get(name)


def short(value: Any) -> Any:
    """Returns a swept value for a column: a number or word as it is, others in words.

    A law is its name and its parameters, such as `expon(scale=2)`.
    """
    if isinstance(value, Mapping):
        name = str(value.get("kind", value.get("law", "")))
        rest = [f"{k}={short(v)}" for k, v in value.items() if k not in ("kind", "law")]
        return f"{name}({', '.join(rest)})" if rest else name
    if isinstance(value, list | tuple):
        return f"[{', '.join(str(short(item)) for item in value)}]"
    return value
