"""Parts without options, which a scenario or a report names by one word."""

from collections.abc import Callable
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any

from .errors import UserError


@dataclass(frozen=True)
class NamedPart:
    """A part that is one row of a table: what there is to say of a metric or a figure.

    Attributes:
        name: Word by which it is named; no other record of the kind has it.
        meaning: Description in a few words, for lists and tables.
    """

    name: str
    meaning: str = field(default="", kw_only=True)


def function_at(text: str, where: str, *, own: bool) -> Callable[..., Any]:
    """Imports and returns a function.

    Args:
        text: `"module:function"`.
        where: Entry that holds the text, for messages.
        own: Whether the entry is one of this package, whose mistakes are defects.

    Raises:
        UserError: The entry of a plug-in names no function.
    """
    try:
        module, name = text.split(":")
        found = getattr(import_module(module), name)
    except (ImportError, AttributeError, ValueError) as error:
        if own:
            raise
        raise UserError(
            f'{where} must be "module:function" with a function that exists, got '
            f"{text!r}: {error}; change it"
        ) from error
    if not callable(found):
        raise UserError(
            f"{where} must name a function, got {text!r}, which is "
            f"{type(found).__name__}; change it"
        )
    return found
