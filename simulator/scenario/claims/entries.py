"""Types of entries that several kinds of claims have."""

from typing import Annotated, Any

from pydantic import AfterValidator, Field, ValidationInfo

from ...parts import metrics
from ...parts.base import LocatedError
from ...parts.catalogue import AnyName
from ...parts.text import suggestion

Metric = Annotated[str, AnyName("metrics")]
"""Name of a metric."""
Within = Annotated[float, Field(ge=0)]
"""Tolerance."""


def known_to(info: ValidationInfo, name: str) -> metrics.Metric:
    """Returns a metric: the one of that name, or what the study tells of it.

    Raises:
        UserError: There is neither.
    """
    return metrics.find(name) or _of_study(info).get(name) or metrics.metric(name)


def _of_study(info: ValidationInfo) -> dict[str, metrics.Metric]:
    return (info.context or {}).get("metrics", {})


def _known(of: str, info: ValidationInfo) -> str:
    """Refuses what a run does not come to, without a list of all that it does."""
    known = (*metrics.names(), *metrics.QUANTITIES, *_of_study(info))
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
