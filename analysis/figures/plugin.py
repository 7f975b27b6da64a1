"""Figures of plug-ins, which `stalesim plot` and the report draw as well."""

from collections.abc import Callable
from dataclasses import dataclass

from ...simulator.files.study import Study
from ...simulator.parts.base import NamedPart, function_at


@dataclass(frozen=True)
class StudyFigure(NamedPart):
    """A figure of a plug-in.

    Attributes:
        name: Name of its file, without an ending.
        draw: Function as `"module:function"`; it gets an `analysis.Study` and returns a
            Matplotlib figure, or None where the study has nothing to show.
        meaning: Caption in the report.
    """

    draw: str

    def function(self) -> Callable[[Study], object]:
        """Imports and returns the function that draws.

        Raises:
            UserError: There is none.
        """
        return function_at(self.draw, f"draw of the figure {self.name}")
