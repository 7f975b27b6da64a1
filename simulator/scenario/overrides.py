"""Overrides of single entries from the command line: `-s dotted.key=value`."""

import re
from collections.abc import Mapping
from functools import reduce
from operator import getitem

from ..parts.base import LocatedError
from ..parts.errors import LONGEST, TAGS, ScenarioError, shortened, shown
from . import dialect
from .dialect import Keys, Mark
from .setting import Varied
from .study import entries, replace, swept_over
from .synonyms import Synonyms

Places = dict[Keys, Mark | str]
"""Places where the entries of a scenario were written: in its text, or by override."""


def apply(
    tree: Mapping[str, object], override: str, places: Places, words: Synonyms
) -> dict[str, object]:
    """Returns a scenario with one entry replaced.

    Args:
        tree: The scenario, in our words.
        override: The override, in any words.
        places: Where entries were written; that of this one is added.
        words: Reader of the field's words.

    A mapping is merged into the one that it meets, unless it names another `kind` or
    `law`: then it replaces it, and so does an empty one, which else would do nothing.
    The value `null` removes an entry, and sections that are missing are made.

    Raises:
        ScenarioError: It is not of this form, or goes through a value that has no keys.
    """
    where = f"override {shortened(repr(override), LONGEST)}"
    key, equals, text = override.partition("=")
    keys = _split(key.strip())
    if not equals or not all(keys):
        raise ScenarioError(
            f"{where} must be dotted.key=value, such as algorithm.learning_rate=0.1"
        )
    if not text.strip():
        raise ScenarioError(
            f"{where} must have a value after the =; write {key}=null to remove {key}"
        )
    value, _ = dialect.compose(text, lambda line: where)
    swept = re.fullmatch(r"(sweep\..+)(\.\d+|\[\d+\])", key.strip())
    if swept and not isinstance(value, list | Mapping | None):
        raise ScenarioError(
            f"{where} must replace the whole list: -s '{swept[1]}=[...]'"
        )
    _check_way(tree, keys, where)
    change = replace({}, keys, value, nulls_remove=False)
    for known in [each for each in words.found if words.place(each) == keys]:
        del words.found[known]
    try:
        change = words.replaced(change, replace(tree, keys, value))
    except LocatedError as error:
        raise ScenarioError(f"{where}: {error}") from None
    keys = tuple(map(str, words.place(keys)))
    value = reduce(getitem, keys, change)
    place = _numbered(tree, keys)
    for known in [known for known in places if known[: len(keys)] == place]:
        del places[known]
    for depth in range(1, len(keys) + 1):
        places.setdefault(place[:depth], where)
    # A null inside a variant is part of it: it removes an entry of the base.
    of_variant = keys[0] == "variants" and (len(keys) > 2 or value is not None)
    if value == {}:
        tree = replace(tree, keys, None)
    return replace(tree, keys, value, nulls_remove=not of_variant)


def refuse_swept(scenario: Varied, places: Places) -> None:
    """Refuses an override of a value that the sweep replaces in every run.

    An override by a mapping may have such a value, without which it is not valid.

    Raises:
        ScenarioError: There is one.
    """
    tree = scenario.model_dump(mode="json", exclude_unset=True)
    for keys, where in places.items():
        inner: object = tree
        for key in keys:
            inner = entries(inner).get(str(key))
        if isinstance(where, tuple) or inner is None or isinstance(inner, Mapping):
            continue
        for key in swept_over(scenario, replace({}, keys, inner)):
            raise ScenarioError(
                f"{where} must be left out where {key} is swept, which would replace "
                f"it; change the sweep instead: sweep={{...}}, or sweep=null for none"
            )


def place_of(keys: Keys, places: Places, name: str) -> str:
    """Returns the place of an entry, or of its parent, in words for messages.

    A mistake next to a `kind` or `law` that an override changed is the override's.
    """
    place = _nearest(keys, places)
    return place if isinstance(place, str) else f"{name}:{place[0]}"


def rank_of(keys: Keys, places: Places) -> Mark:
    """Returns the order of an entry's place; overrides come before the text."""
    place = _nearest(keys, places)
    return (0, 0) if isinstance(place, str) else place


def remedy(keys: Keys, places: Places, name: str) -> str:
    """Returns the remedy where an override left keys of another kind behind."""
    if _changed_kind(keys, places) is None or keys not in places:
        return ""
    key = ".".join(map(str, keys[:-1]))
    mark = places[keys]
    return (
        f"; it is in {name}:{mark[0]}: replace the whole of {key} with -s "
        f"'{key}={{...}}'"
    )


def _nearest(keys: Keys, places: Places) -> Mark | str:
    changed = _changed_kind(keys, places)
    if changed is not None:
        return changed
    while keys and keys not in places:
        keys = keys[:-1]
    return places[keys]


def _changed_kind(keys: Keys, places: Places) -> str | None:
    if not keys or isinstance(places.get(keys), str):
        return None
    changed = (places.get((*keys[:-1], tag)) for tag in TAGS if keys[-1] != tag)
    return next((place for place in changed if isinstance(place, str)), None)


def _split(key: str) -> tuple[str, ...]:
    """Returns the keys of a dotted key; what is swept is a dotted key itself."""
    head, dot, rest = key.partition(".")
    return (head, rest) if head == "sweep" and dot else tuple(key.split("."))


def _check_way(tree: Mapping[str, object], keys: tuple[str, ...], where: str) -> None:
    for depth, key in enumerate(keys[:-1], 1):
        inner = tree.get(key)
        if inner is None:
            return
        tree = entries(inner)
        if not isinstance(inner, Mapping) and keys[depth] not in tree:
            way = ".".join(keys[:depth])
            raise ScenarioError(
                f"{where} must go through mappings, and lists by position, but {way} "
                f"is {shown(inner)}; replace it as a whole: -s '{way}=...'"
            )


def _numbered(tree: object, keys: tuple[str, ...]) -> Keys:
    """Returns the place of an entry, with numbers for its positions in lists."""
    found: Keys = ()
    for key in keys:
        found = (*found, int(key) if isinstance(tree, list | tuple) else key)
        tree = entries(tree).get(key)
    return found
