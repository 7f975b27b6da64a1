"""Words of the field that a scenario may have in place of ours: one table, one reader.

A synonym is read where the class of its mapping has our word and not the synonym, so
that a custom component may have an entry of that name. Our word is stored.
"""

import re
from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel

from ..parts.base import LocatedError
from ..parts.errors import KEYS, ScenarioError, fields_words, shown
from ..parts.messages import fields_at, words_at
from ..world.laws.distributions import Scipy
from .dialect import DEEPEST, Keys
from .grid import RANDOM, ZIPPED
from .study import merge, replace

VALUES = {
    "beyond": {"cancel": "stop", "discard": "reject"},
    "late": {"cancel": "stop", "discard": "reject"},
    "record": {"full": "everything"},
    "sampling": {"without_replacement": "distinct"},
    "scale": {"minmax": "unit"},
}
"""Words for values, and ours, by our keys."""
NAMED = (("variants",), ("clients", "groups"), ("compare", "also"))
"""Places of mappings whose keys are names that a user gives."""
SWEPT = (("sweep",), (ZIPPED,), (RANDOM,))
"""Ends of places of mappings whose keys are dotted, with or without dots."""


def with_words(key: str, text: str, quote: str = "`") -> str:
    """Returns a text on our key with the field's words before our values."""
    for word, ours in VALUES.get(key, {}).items():
        both = f"{quote}{word}{quote} (or {quote}{ours}{quote})"
        text = text.replace(f"{quote}{ours}{quote}", both, 1)
    return text


class Synonyms:
    """Reads the words of one scenario.

    Args:
        root: Class of the scenario.
        found: Our words by place, of what was read of the scenario before.
    """

    def __init__(
        self, root: type[BaseModel], found: dict[Keys, str] | None = None
    ) -> None:
        self._root = root
        self.found: dict[Keys, str] = {} if found is None else found

    def replaced(
        self, tree: Mapping[str, Any], whole: Mapping[str, Any] | None = None
    ) -> dict[str, Any]:
        """Returns a scenario, or changes that make it a whole one, in our words.

        Raises:
            LocatedError: A mapping has a word and ours.
        """
        return self._entries(tree, (), (), tree if whole is None else whole)

    def place(self, keys: Keys) -> Keys:
        """Returns the place of an entry in our words."""
        return tuple(
            self.found.get(keys[: depth + 1], key) for depth, key in enumerate(keys)
        )

    def written(self, text: str) -> str:
        """Returns a message that has the user's words in place of ours."""
        for place, ours in self.found.items():
            here = "".join(f"{key}." for key in self.place(place[:-1])[-1:])
            own = rf"(?<={re.escape(here)}){ours}\b"
            if "." in ours:
                own = rf"\b{re.escape(ours)}\b"
            elif "_" in ours:
                own += rf"|(?<![\w.]){ours}\b"
            text = re.sub(rf"{own}|(?<![\w.]){ours}(?=: )", str(place[-1]), text)
        return text

    def _entries(
        self, node: Mapping[str, Any], here: Keys, at: Keys, whole: Mapping[str, Any]
    ) -> dict[str, Any]:
        """Returns a mapping in our words.

        Args:
            node: The mapping.
            here: Where it is written.
            at: Where it is in the scenario of its variant.
            whole: That scenario, whose kinds say which words are read.
        """
        if len(here) > DEEPEST:
            raise ScenarioError(
                f"{here[0]} must have at most {DEEPEST} levels, got more; is there a "
                f"mapping within itself?"
            )
        found: dict[str, Any] = {}
        for word, value in node.items():
            place = (*here, word)
            if isinstance(word, bool):
                raise ScenarioError(
                    f"{'.'.join(map(str, here))} must have text as keys, got "
                    f"{shown(word)}, as which YAML 1.1 reads on and off; put them in "
                    f'quotes: "on", "off"'
                )
            in_sweep = here[-1:] in SWEPT and (word,) not in SWEPT
            if isinstance(word, str) and ("." in word or in_sweep):
                key = self._dotted(word, whole)
                found[key] = self._swept(value, place, key, whole)
            else:
                key = self._key(word, at, whole)
                found[key] = self._value(value, place, (*at, key), whole)
            if key != word:
                self.found[place] = key
                if key in node:
                    raise LocatedError(
                        f"{'.'.join(map(str, place))} must be left out where {key} is "
                        f"given, which means the same; remove one of them",
                        place,
                    )
        return found

    def _value(self, value: Any, here: Keys, at: Keys, whole: Mapping[str, Any]) -> Any:
        if type(value) in (list, tuple):
            items = enumerate(value)
            return type(value)(
                self._value(each, (*here, i), (*at, i), whole) for i, each in items
            )
        if not isinstance(value, Mapping):
            return self._word(value, at, whole)
        if at not in NAMED:
            return self._entries(value, here, at, whole)
        found = {}
        for name, each in value.items():
            is_variant = at == ("variants",) and isinstance(each, Mapping)
            found[name] = self._value(
                each,
                (*here, name),
                () if is_variant else (*at, name),
                merge(whole, each) if is_variant else whole,
            )
        return found

    def _swept(self, value: Any, here: Keys, key: str, whole: Mapping[str, Any]) -> Any:
        """Returns the values of a dotted key: some, by name, of a range or a law."""
        at = tuple(key.split("."))

        def each(value: Any) -> Any:
            return self._value(value, here, at, replace(whole, at, value))

        if type(value) in (list, tuple):
            return type(value)(map(each, value))
        if not isinstance(value, Mapping):
            return each(value)
        if RANDOM in here[:-1]:
            return Synonyms(Scipy).replaced(value)
        return {name: each(named) for name, named in value.items()}

    def _dotted(self, text: str, whole: Mapping[str, Any]) -> str:
        keys = text.split(".")
        for depth, word in enumerate(keys):
            keys[depth] = self._key(word, tuple(keys[:depth]), whole)
        return ".".join(keys)

    def _key(self, word: str, at: Keys, whole: Mapping[str, Any]) -> str:
        if word not in KEYS:
            return word
        of_kind = fields_at(at, whole, self._root)
        of_any = fields_at(at, whole, self._root, of_any_kind=True) - {word}
        return word if word in of_kind else fields_words(of_any).get(word, word)

    def _word(self, value: Any, at: Keys, whole: Mapping[str, Any]) -> Any:
        if not isinstance(value, str):
            return value
        if at[:1] == ("claims",) and at[2:] == ("over",):
            return self._dotted(value, whole)
        ours = VALUES.get(str(at[-1]), {}).get(value)
        known = words_at(at, whole, self._root) if ours else ()
        return ours if ours in known and value not in known else value
