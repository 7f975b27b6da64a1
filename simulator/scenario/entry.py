"""One part that a scenario may name, ours or brought by another package."""

from functools import cache
from importlib.metadata import entry_points
from typing import NamedTuple

from simulator.scenario.base import Config


class Entry(NamedTuple):
    """A part's configuration class, and `"module:factory"` of what it configures."""

    config: type[Config]
    factory: str


@cache  # looking through all installed packages takes 30 ms
def brought(kind: str) -> tuple[Entry, ...]:
    """Returns the parts of one kind that other packages bring by entry points."""
    points = entry_points(group=f"stalesim.{kind}")
    return tuple(Entry(*point.load()) for point in points)
