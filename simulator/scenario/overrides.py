"""Overrides of single entries from the command line: `-s dotted.key=value`."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from ..parts.errors import LONGEST, TAGS, ScenarioError, shortened, shown
from . import dialect
from .dialect import Keys, Mark
from .study import replace


class Place(NamedTuple):
    """Place where an entry was written.

    Attributes:
        name: `FILE:LINE`, or the override.
        rank: Rank in the order of places; overrides come before the file.
        override: Whether the place is an override.
    """

    name: str
    rank: Mark
    override: bool = False


Places = dict[Keys, Place]
"""Places where the entries of a scenario were written, by their keys."""


def apply(tree: Mapping[str, object], override: str, places: Places) -> dict[str, Any]:
    """Returns a scenario with one entry replaced.

    A mapping is merged into the one that it meets, unless it names another `kind` or
    `law`: then it replaces it, and so does an empty one, which else would do nothing.
    The value `null` removes an entry, and sections that are missing are made.

    Args:
        tree: Scenario as it was written.
        override: `dotted.key=value`, the value in YAML.
        places: Places of its entries; those that the override changes are changed here.

    Raises:
        ScenarioError: It is not of this form, or goes through a value that has no keys.
    """
    where = f"override {shortened(repr(override), LONGEST)}"
    key, equals, text = override.partition("=")
    keys = _split(key.strip())
    if not equals or not all(keys):
        raise ScenarioError(
            f"{where} must be dotted.key=value, such as algorithm.step_size=0.1"
        )
    if not text.strip():
        raise ScenarioError(
            f"{where} must have a value after the =; write {key}=null to remove {key}"
        )
    value, _ = dialect.compose(text, lambda line: where)
    _check_way(tree, keys, where)
    for known in [known for known in places if known[: len(keys)] == keys]:
        del places[known]
    for depth in range(1, len(keys) + 1):
        place = Place(where, Mark(0, 0), override=True)
        if depth == len(keys):
            places[keys] = place
        else:
            places.setdefault(keys[:depth], place)
    # A null inside a variant is part of it: it removes an entry of the base.
    of_variant = keys[0] == "variants" and (len(keys) > 2 or value is not None)
    if value == {}:
        tree = replace(tree, keys, None)
    return replace(tree, keys, value, nulls_remove=not of_variant)


def place_of(keys: Keys, places: Places) -> Place:
    """Returns the place of an entry, or of the nearest entry that contains it.

    A mistake next to a `kind` or `law` that an override changed is the override's.
    """
    changed = _changed_kind(keys, places)
    if changed is not None:
        return changed
    while keys and keys not in places:
        keys = keys[:-1]
    return places[keys]


def remedy(keys: Keys, places: Places) -> str:
    """Returns what to do where an override left keys of another kind behind."""
    if _changed_kind(keys, places) is None or keys not in places:
        return ""
    key = ".".join(map(str, keys[:-1]))
    return (
        f"; it stands in {places[keys].name}: replace the whole of {key} with "
        f"-s '{key}={{...}}'"
    )


def _changed_kind(keys: Keys, places: Places) -> Place | None:
    if keys in places and places[keys].override:
        return None
    for tag in TAGS:
        place = places.get((*keys[:-1], tag)) if keys else None
        if place is not None and place.override and keys[-1] != tag:
            return place
    return None


def _split(key: str) -> tuple[str, ...]:
    """Returns the keys of a dotted key; what is swept is a dotted key itself."""
    head, dot, rest = key.partition(".")
    return (head, rest) if head == "sweep" and dot else tuple(key.split("."))


def _check_way(tree: Any, keys: tuple[str, ...], where: str) -> None:
    for depth, key in enumerate(keys[:-1], 1):
        tree = tree.get(key)
        if tree is None:
            return
        if not isinstance(tree, Mapping):
            way = ".".join(keys[:depth])
            raise ScenarioError(
                f"{where} must go through mappings, but {way} is {shown(tree)}; "
                f"replace it as a whole: -s '{way}=...'"
            )
