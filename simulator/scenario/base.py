"""What every part of a scenario has in common."""

from typing import Annotated, Any, ClassVar

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from simulator.scenario.expressions import check_syntax

Expression = Annotated[str, AfterValidator(check_syntax)]
"""Arithmetic in `m` and `M`."""

Quantity = Annotated[
    int | float | Expression | tuple[int | float, ...],
    Field(
        union_mode="left_to_right",
        description="a number, an expression in m and M, or a list with one entry per "
        "client",
    ),
]
"""A number, an expression in `m` and `M`, or one number per client."""


class Config(BaseModel):
    """A part of a scenario: immutable, and refusing keys that it does not know."""

    model_config: ClassVar[ConfigDict] = ConfigDict(
        frozen=True, extra="forbid", allow_inf_nan=False, validate_default=True
    )

    def replaced(self, **changes: Any) -> Any:
        """Returns a validated copy with some fields replaced."""
        return type(self).model_validate({**self.model_dump(), **changes})
