"""A part that a scenario names: one class with its options and what it makes."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any, ClassVar

from .base import Config
from .named import NamedPart
from .own_code import Content
from .text import TAGS

OPEN = "scipy"
"""Tag of the law that stands for every name that no other part has."""


class Part(Config):
    """A part that a scenario chooses by its name.

    `make` imports where it is called what a scenario's reader should not wait for, such
    as JAX.
    """

    computed: ClassVar[bool] = False
    """Whether what it makes comes from a function of the user's: then `made` tells by
    what that is known."""

    def make(self, *facts: Any, **named: Any) -> Any:
        """Returns what the part makes of some facts of a run.

        Args:
            facts: as the kind of part has them.
            named: such facts, by name.
        """
        raise NotImplementedError

    def located_files(self) -> Iterable[str | Path] | None:
        """Returns the files that the part finds by itself; None if it looks for none.

        What its options name is no such file.
        """
        return None

    def made(self) -> Content | None:
        """Returns what a function of the user's makes, and words for it as its place.

        None where there is no such function.
        """
        return None


def tag(part: type[Config] | NamedPart) -> str:
    """Returns the name by which a scenario chooses a part."""
    if isinstance(part, NamedPart):
        return part.name
    if named := getattr(part, "named", ""):
        return named
    name = next((name for name in TAGS if name in part.model_fields), None)
    field = part.model_fields[name] if name else None
    return OPEN if field is None or field.is_required() else str(field.default)


def described(part: type[Config] | NamedPart) -> str:
    """Returns what a part is, in a line."""
    if isinstance(part, NamedPart):
        return part.meaning
    return (part.__doc__ or "").strip().partition("\n")[0]
