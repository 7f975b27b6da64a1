"""Enemies that hide in the spread of honest messages."""

from typing import Any, Literal

from .base import InformedPart


class Alie(InformedPart):
    """A little is enough: enemies send the honest mean less z honest deviations.

    Coordinate by coordinate, of the last messages of all honest clients. In the paper
    enemies know but their own honest work, and of n clients with m enemies z is the
    quantile of the normal law at (n - m - s) / (n - m), s = floor(n / 2 + 1) - m.

    Source: Baruch, Baruch and Goldberg, A Little Is Enough (2019), Algorithm 3.
    """

    kind: Literal["alie"] = "alie"
    deviations: float
    """z."""

    def chosen(self, mean: Any, deviation: Any) -> Any:
        """Returns what enemies send."""
        return mean - self.deviations * deviation
