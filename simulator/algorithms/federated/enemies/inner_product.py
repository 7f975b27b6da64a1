"""Enemies that turn the mean against the honest one."""

from typing import Annotated, Any, Literal

from pydantic import Field

from .base import InformedPart


class InnerProduct(InformedPart):
    """Inner product manipulation: enemies send -factor times the honest mean.

    It is that of the last messages of all honest clients.

    Source: Xie, Koyejo and Gupta, Fall of Empires (2019), section 4.
    """

    kind: Literal["inner_product"] = "inner_product"
    factor: Annotated[float, Field(gt=0)]
    """epsilon."""

    def chosen(self, mean: Any, deviation: Any) -> Any:
        """Returns what enemies send."""
        return -self.factor * mean
