"""The first entry in which two scenarios differ, in words."""

from collections.abc import Mapping
from typing import Any

from ..config.text import TAGS, brief
from ..scenario.reading import without_nothing


def difference(
    then: Mapping[str, Any], now: Mapping[str, Any], leaving: tuple[str, ...] = ()
) -> str:
    """Returns which entry of a scenario is not as it was; "" where all are.

    Args:
        then: Entries of the scenario as it was, as a manifest has them.
        now: Entries as they are.
        leaving: Entries at the top that do not count.
    """
    first, second = (
        {k: v for k, v in without_nothing(tree).items() if k not in leaving}
        for tree in (then, now)
    )
    return _first(first, second, "")


def _first(then: Any, now: Any, place: str) -> str:
    if then == now:
        return ""
    if not (isinstance(then, Mapping) and isinstance(now, Mapping)):
        return f"{place} was {_words(then)} and is {_words(now)}"
    keys = [key for key in {**then, **now} if then.get(key) != now.get(key)]
    # What a part is called explains its other entries.
    first = next((key for key in keys if key in TAGS), keys[0])
    below = f"{place}.{first}" if place else first
    if first not in then:
        return f"{below} is {_words(now[first])} and was not set"
    if first not in now:
        return f"{below} was {_words(then[first])} and is not set"
    return _first(then[first], now[first], below)


def _words(value: Any) -> str:
    return brief(str(value))
