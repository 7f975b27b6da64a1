"""Libraries that only some commands and parts need: extras of the package."""

from importlib import import_module
from types import ModuleType

from .errors import UserError


class ExtraError(UserError):
    """A library of an extra is not installed."""


def extra(library: str, name: str, use: str) -> ModuleType:
    """Imports and returns a library of an extra.

    Raises:
        ExtraError: It is not installed.
    """
    try:
        return import_module(library)
    except ModuleNotFoundError as error:
        raise ExtraError(
            f"{use} needs {error.name or library}, which is not installed; "
            f'pip install "stalesim[{name}]"'
        ) from None
