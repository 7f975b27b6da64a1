"""Enemies that send the opposite of their work."""

from typing import Annotated, Any, Literal

from pydantic import Field

from .base import EnemyPart


class SignFlip(EnemyPart):
    """Enemies send -factor times what they have computed.

    Source: Li et al., RSA: Byzantine-Robust Stochastic Aggregation Methods (2019),
    section 5; negative gradients of Yang and Li, BASGD (2021), section 5.
    """

    kind: Literal["sign_flip"] = "sign_flip"
    factor: Annotated[float, Field(gt=0)] = 1.0
    """Length of what is sent over that of the work."""

    def __call__(self, row: Any, contributions: Any, state: Any) -> Any:
        """Returns the messages of the enemies."""
        return -self.factor * contributions.message
