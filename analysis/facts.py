"""What parts have said of themselves in a run's entry of a manifest.

A protocol's and an algorithm's `described` write it when the run is planned. Entries of
an earlier version have none, and nothing replaces it.
"""

from collections.abc import Mapping
from typing import Any

from ..simulator.parts.errors import printed

Entry = Mapping[str, Any]
"""JSON of a manifest, or a part of it: a run, a scenario, a law."""


def of(entry: Entry, name: str) -> Any:
    """Returns a fact of a run; None where it was not noted."""
    return (entry.get("facts") or {}).get(name)


def short(value: object) -> Any:
    """Returns a swept value for a column: a number or word as it is, others printed."""
    return printed(value) if isinstance(value, Mapping | list | tuple) else value
