"""A part that a scenario names: one class with its options and what it makes."""

from collections.abc import Callable
from importlib import import_module
from typing import Any, ClassVar

from simulator.config.base import Config
from simulator.config.errors import UserError

TAGS = ("kind", "law")
"""Keys by which a scenario chooses a part."""
OPEN = "scipy"
"""Tag of the law that stands for every name that no other part has."""


class Part(Config):
    """A part that a scenario chooses by its name.

    What it makes is made by `make`: in the class itself, or by a function elsewhere
    that `made_by` names, where that imports what a scenario's reader should not wait
    for, such as JAX.
    """

    made_by: ClassVar[str] = ""
    """`"module:function"`, imported only when the part is used; the function gets the
    part, and then what `make` gets."""

    @classmethod
    def maker(cls) -> Callable[..., Any]:
        """Imports and returns the function that `made_by` names.

        Raises:
            UserError: there is none.
        """
        try:
            module, name = cls.made_by.split(":")
            found = getattr(import_module(module), name)
        except (ImportError, AttributeError, ValueError) as error:
            if cls.__module__.startswith("simulator."):
                raise  # no mistake of a user's
            raise UserError(
                f'{cls.__name__}.made_by must be "module:function" with a function '
                f"that exists, got {cls.made_by!r}: {error}; change it"
            ) from error
        if not callable(found):
            raise UserError(
                f"{cls.__name__}.made_by must name a function, got {cls.made_by!r}, "
                f"which is {type(found).__name__}; change it"
            )
        return found

    def make(self, *facts: Any, **named: Any) -> Any:
        """Returns what the part makes of some facts of a run.

        Args:
            facts: as the kind of part has them.
            named: such facts, by name.
        """
        return self.maker()(self, *facts, **named)


def tag(part: type[Config]) -> str:
    """Returns the name by which a scenario chooses a part."""
    name = next((name for name in TAGS if name in part.model_fields), None)
    field = part.model_fields[name] if name else None
    return OPEN if field is None or field.is_required() else str(field.default)
