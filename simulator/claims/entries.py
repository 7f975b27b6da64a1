"""Types of entries that several kinds of claims have."""

from typing import Annotated, Any

from pydantic import AfterValidator, Field

from simulator import metrics
from simulator.config.base import LocatedError
from simulator.config.catalogue import AnyName
from simulator.config.text import suggestion

Metric = Annotated[str, AnyName("metrics")]
"""Name of a metric."""
Within = Annotated[float, Field(ge=0)]
"""Tolerance."""


def _known(of: str) -> str:
    """Refuses what a run does not come to, without a list of all that it does."""
    known = (*metrics.names(), *metrics.QUANTITIES)
    if of not in known:
        raise LocatedError(
            f"of must be a metric, or what else a run comes to, got {of!r}; "
            f"{suggestion(of, known)}",
            (),
        )
    return of


def _enumerated(schema: dict[str, Any]) -> None:
    schema["enum"] = [*metrics.names(), *metrics.QUANTITIES]


Of = Annotated[str, AfterValidator(_known), Field(json_schema_extra=_enumerated)]
"""Name of a metric, or of another quantity that a run has come to at its end."""
