"""Words of the field that a scenario may have in place of ours: one table, one reader.

A synonym is read where the class of its mapping has our word and not the synonym, so
that a custom component may have an entry of that name. Our word is stored.
"""

from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel

from ..parts.base import LocatedError
from ..parts.errors import ScenarioError
from ..parts.messages import fields_at, words_at
from ..world.laws.distributions import Scipy
from .dialect import DEEPEST, Keys
from .grid import RANDOM, ZIPPED
from .study import merge, replace

KEYS = {
    "batch_size": ("batch",),
    "buffer_size": ("size",),
    "client_weighting": ("weighting",),
    "concurrency": ("in_flight",),
    "distribution": ("law",),
    "learning_rate": ("step_size",),
    "local_learning_rate": ("local_step_size",),
    "margin": ("within", "says"),
    "max_staleness": ("staleness_bound",),
    "message_loss": ("loss", "crashes"),
    "mu": ("proximal",),
    "num_byzantine": ("tolerated",),
    "probability": ("chance",),
    "server_learning_rate": ("server_step_size",),
    "speed": ("power",),
    "staleness_weight": ("weight",),
}
"""Words for keys: ours, and a further key of its class if ours has several meanings."""
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


class Synonyms:
    """Reads the words of one scenario.

    Args:
        root: Class of the scenario.
    """

    def __init__(self, root: type[BaseModel]) -> None:
        self._root = root
        self._found: dict[Keys, str] = {}

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
            self._found.get(keys[: depth + 1], key) for depth, key in enumerate(keys)
        )

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
            in_sweep = here[-1:] in SWEPT and (word,) not in SWEPT
            if isinstance(word, str) and ("." in word or in_sweep):
                key = self._dotted(word, whole)
                found[key] = self._swept(value, place, key, whole)
            else:
                key = self._key(word, at, whole)
                found[key] = self._value(value, place, (*at, key), whole)
            if key != word:
                self._found[place] = key
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
            if word in KEYS:
                keys[depth] = self._key(word, tuple(keys[:depth]), whole)
        return ".".join(keys)

    def _key(self, word: str, at: Keys, whole: Mapping[str, Any]) -> str:
        if (ours := KEYS.get(word)) is None:
            return word
        of_kind = fields_at(at, whole, self._root)
        of_any = fields_at(at, whole, self._root, of_any_kind=True)
        return ours[0] if of_any.issuperset(ours) and word not in of_kind else word

    def _word(self, value: Any, at: Keys, whole: Mapping[str, Any]) -> Any:
        if not isinstance(value, str):
            return value
        if at[:1] == ("claims",) and at[2:] == ("over",):
            return self._dotted(value, whole)
        ours = VALUES.get(str(at[-1]), {}).get(value)
        known = words_at(at, whole, self._root) if ours else ()
        return ours if ours in known and value not in known else value
