"""Formats of figures. No Matplotlib: commands look at them before a long study."""

from collections.abc import Sequence

from ...simulator.config.errors import UserError
from ...simulator.config.text import suggestion

FORMATS = ("png", "pdf", "svg")


def chosen_formats(names: str | Sequence[str]) -> tuple[str, ...]:
    """Returns formats of figures, each once.

    Args:
        names: Name of a format, or of several.

    Raises:
        UserError: A format is not known; the message names those that are.
    """
    chosen = tuple(dict.fromkeys((names,) if isinstance(names, str) else names))
    for name in chosen:
        if name not in FORMATS:
            raise UserError(
                f"format must be one of {', '.join(FORMATS)}, got {name!r}; "
                f"{suggestion(name, FORMATS)}"
            )
    return chosen
