"""The option `--format`, of all commands that draw."""

from typing import Annotated

import typer

Formats = Annotated[
    list[str] | None,
    typer.Option(
        "--format",
        help="png, pdf or svg, of the figures; may be repeated; by default png",
    ),
]


def formats(chosen: list[str] | None, *, plots: bool) -> tuple[str, ...]:
    """Returns the formats of the figures that a command draws; none without figures.

    Raises:
        UserError: there is no such format.
    """
    from ...analysis.figures.venues import chosen_formats

    forms = chosen_formats(chosen or "png")
    return forms if plots else ()
