"""Entries of the base that a variant of another kind takes over, where it says so.

A mapping that names another `kind` than the base's starts from nothing. With
`inherit: true` it starts from the entries that the base has written and the new kind
knows as well. What was not written is not taken over: the new kind has its own usual
values.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

from pydantic import BaseModel

from ..parts.base import LocatedError
from ..parts.messages import fields_at
from ..parts.text import TAGS, shown
from .dialect import Keys

INHERIT = "inherit"


class Inherited(NamedTuple):
    """What a mapping of a variant took over.

    Attributes:
        keys: Where it stands in the scenario.
        kind: Name of its kind.
        taken: Entries of the base that it has taken over.
        left: Entries of the base that its kind does not know.
    """

    keys: Keys
    kind: str
    taken: tuple[str, ...]
    left: tuple[str, ...]

    def __str__(self) -> str:
        taken = ", ".join(self.taken) or "nothing"
        line = f"{'.'.join(map(str, self.keys))} ({self.kind}) inherits {taken}"
        if not self.left:
            return line
        return f"{line}; {', '.join(self.left)} of the base it does not know"


def filled(
    changes: Mapping[str, Any],
    written: Mapping[str, Any],
    root: type[BaseModel],
    keys: Keys = (),
) -> tuple[dict[str, Any], list[Inherited]]:
    """Returns a variant's changes with what they inherit, and what that was.

    Args:
        changes: Changes of a variant, from `keys` on.
        written: What the base has written there.
        root: Class of the scenario.
        keys: Where both stand in it.

    Raises:
        LocatedError: `inherit` is neither true nor false, or stands in a law.
    """
    found, told = {}, []
    for key, value in changes.items():
        here: Keys = (*keys, key)
        if not isinstance(value, Mapping) or key == "sweep":
            found[key] = value
            continue
        old = written.get(key)
        old = old if isinstance(old, Mapping) else {}
        own, inside = filled(_without(value), old, root, here)
        told += inside
        if _asks(value, here) and own.get("kind") not in (None, old.get("kind")):
            known = fields_at(here, _nested(here, own), root)
            others = [name for name in old if name not in TAGS]
            taken = {name: old[name] for name in others if name in known}
            left = tuple(name for name in others if name not in known)
            left = tuple(name for name in left if name not in own)
            took = tuple(name for name in taken if name not in own)
            told.append(Inherited(here, str(own["kind"]), took, left))
            own = {**taken, **_merged(taken, own)}
        found[key] = own
    return found, told


def inherits(changes: Any) -> bool:
    """Says whether a variant inherits anything."""
    if not isinstance(changes, Mapping):
        return False
    return INHERIT in changes or any(map(inherits, changes.values()))


def of_another(keys: Keys, tree: Any, base: Any) -> str:
    """Returns why an entry is missing that the base has: it belongs to another kind.

    Args:
        keys: Where the entry is missing.
        tree: Scenario of the variant.
        base: What the base has written.
    """
    for key in keys[:-1]:
        tree, base = tree.get(key, {}), base.get(key, {})
        if not (isinstance(tree, Mapping) and isinstance(base, Mapping)):
            return ""
    if not keys or keys[-1] in tree or keys[-1] not in base:
        return ""
    tag = next((t for t in TAGS if t in tree and tree[t] != base.get(t)), None)
    if tag is None:
        return ""
    return (
        f"; that of the base belongs to its {tag} {base.get(tag)!r}: a variant that "
        f"names another {tag} starts from nothing, unless it says inherit: true"
    )


def _asks(value: Mapping[str, Any], keys: Keys) -> bool:
    asked = value.get(INHERIT, False)
    name = ".".join(map(str, (*keys, INHERIT)))
    if not isinstance(asked, bool):
        raise LocatedError(
            f"{name} must be true or false, got {shown(asked)}; write true to take "
            f"over what the base has written and the new kind knows",
            (*keys, INHERIT),
        )
    if "law" in value and INHERIT in value:
        raise LocatedError(
            f"{name} must not stand in a law, whose parameters mean something else in "
            f"another one, got {shown(asked)}; remove it",
            (*keys, INHERIT),
        )
    return asked


def _without(value: Mapping[str, Any]) -> dict[str, Any]:
    return {name: entry for name, entry in value.items() if name != INHERIT}


def _nested(keys: Keys, value: Any) -> dict[str, Any]:
    for key in reversed(keys):
        value = {str(key): value}
    return value


def _merged(taken: Mapping[str, Any], own: Mapping[str, Any]) -> dict[str, Any]:
    """Returns a variant's own entries, those of mappings over what is taken over."""
    return {
        key: {**taken[key], **value}
        if isinstance(value, Mapping)
        and isinstance(taken.get(key), Mapping)
        and value.get("kind") in (None, taken[key].get("kind"))
        else value
        for key, value in own.items()
    }
