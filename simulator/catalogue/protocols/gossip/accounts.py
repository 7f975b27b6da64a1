"""Token accounts: how many messages a worker may send, and when.

At each of its wake-ups a worker pushes its model at random, or else saves a token; it
spends tokens on pushing a model that has just changed. Since no account spends what it
lacks, a worker sends at most t / Delta + C messages in a time t.

Source: Danner and Jelasity, Token Account Algorithms: The Best of the Proactive and
Reactive Worlds (2018), section III. Every model that arrives is merged, so that all are
useful in the sense of the paper.
"""

from abc import abstractmethod
from typing import Annotated, Literal

from pydantic import Field, model_validator

from ....parts.base import LocatedError, Part
from ....parts.catalogue import AnyPart

Tokens = Annotated[int, Field(ge=1, le=1_000_000)]


class Account(Part):
    """A token account: its capacity, and the pushes that a balance allows."""

    capacity: Tokens
    """C, the most tokens that a worker saves."""

    @abstractmethod
    def proactive(self, tokens: int) -> float:
        """Returns the chance of a push at a wake-up, in [0, 1]; 1 at the capacity.

        Args:
            tokens: Balance before the wake-up.
        """

    @abstractmethod
    def reactive(self, tokens: int) -> float:
        """Returns the mean number of pushes that follow a change, at most `tokens`.

        Args:
            tokens: Balance.
        """


AnyAccount = Annotated[Account, AnyPart("accounts")]
"""Any token account, of this package or of plug-ins."""


class Simple(Account):
    """One push for each change while there are tokens: the token bucket."""

    kind: Literal["simple"] = "simple"

    def proactive(self, tokens: int) -> float:
        return float(tokens >= self.capacity)

    def reactive(self, tokens: int) -> float:
        return float(tokens > 0)


class Generalised(Account):
    """More pushes for each change the more tokens there are."""

    kind: Literal["generalised"] = "generalised"
    divisor: Tokens = 1
    """A, the part of the tokens that a change does not spend; 1 spends all."""

    @model_validator(mode="after")
    def _fits(self) -> "Generalised":
        if self.divisor > self.capacity:
            raise LocatedError(
                f"divisor must be at most the capacity, {self.capacity}, got "
                f"{self.divisor}; lower it",
            )
        return self

    def proactive(self, tokens: int) -> float:
        return float(tokens >= self.capacity)

    def reactive(self, tokens: int) -> float:
        return float((self.divisor - 1 + tokens) // self.divisor)


class Randomised(Generalised):
    """Like `generalised`, with chances that rise evenly to the full account."""

    kind: Literal["randomised"] = "randomised"  # pyright: ignore[reportIncompatibleVariableOverride]

    def proactive(self, tokens: int) -> float:
        spare = self.capacity - self.divisor + 1
        return min(1.0, max(0, tokens - self.divisor + 1) / spare)

    def reactive(self, tokens: int) -> float:
        return tokens / self.divisor
