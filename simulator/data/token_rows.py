"""The base of data sets whose rows are tokens, which are numbered and not measured."""

from typing import ClassVar

from pydantic import model_validator

from ..config.base import LocatedError
from .parts import Data, Scale


class TokenRows(Data):
    """Rows of tokens, each a number; labels are tokens that follow them."""

    tokens: ClassVar[str] = "tokens"
    """What a token is, in messages."""
    scale: Scale = "raw"
    """`raw`, and nothing else: tokens are numbered, not measured."""

    @model_validator(mode="after")
    def _all_tokens(self) -> "TokenRows":
        of = self.__class__.model_fields["kind"].default
        if self.scale != "raw":
            raise LocatedError(
                f"scale must be raw for {of}, whose {self.tokens} are numbered, got "
                f"{self.scale!r}; leave it out",
                ("scale",),
            )
        if self.classes is not None:
            raise LocatedError(
                f"classes must not be set for {of}, each of whose {self.tokens} is "
                "one; leave it out",
                ("classes",),
            )
        return self
