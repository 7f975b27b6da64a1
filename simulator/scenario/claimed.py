"""The subjects of claims: variants and swept values of a study."""

from collections.abc import Iterable, Iterator, Mapping

from ..parts import metrics
from ..parts.base import LocatedError
from ..parts.errors import shown, suggestion
from .claims import Claim

Swept = dict[str, dict[str, list[object]]]
"""Values of each swept key, by the claims' names of variants."""


def check(
    claims: Iterable[Claim], swept: Swept, evaluated: Mapping[str, Iterable[str]]
) -> None:
    """Refuses claims about unknown variants, or what these do not sweep or evaluate.

    Raises:
        LocatedError: naming the entry of the claim.
    """
    for index, claim in enumerate(claims):
        about: list[dict[str, list[object]]] = []
        for key, names in claim.variants().items():
            for name in names:
                if name not in swept:
                    raise LocatedError(
                        f"claims.{index}.{key} must name a variant, got {name!r}; "
                        f"{suggestion(name, swept)}"
                    )
                about.append(swept[name])
        _check_sides(claim, index)
        for name in (name for names in claim.variants().values() for name in names):
            _check_metrics(claim, tuple(evaluated[name]), index)
        over = claim.swept_key
        unswept = [keys for keys in about if over is not None and over not in keys]
        if unswept:
            raise LocatedError(
                f"claims.{index}.over must name a key that is swept, got {over!r}; "
                f"{suggestion(over, unswept[0])}"
            )
        for key, values in claim.at.items():
            _check_at(key, values, about, index)


def _check_metrics(claim: Claim, evaluated: tuple[str, ...], index: int) -> None:
    for place, metric in _metrics(claim):
        if metric in evaluated:
            continue
        known = metrics.find(metric) is not None
        raise LocatedError(
            f"{'.'.join(map(str, ('claims', index, *place)))} must name a metric of "
            f"evaluate.metrics ({', '.join(evaluated)}), got {metric!r}; "
            f"{'add it there' if known else suggestion(metric, evaluated)}"
        )


def _metrics(claim: Claim) -> Iterator[tuple[tuple[str, ...], str]]:
    """Yields the metrics that a claim needs, and where it names them."""
    for place, metric, _ in claim.targets():
        if place[-1] == metric:  # else it is that of an entry
            yield place, metric
    for entry in ("metric", "of"):
        named = getattr(claim, entry, None)
        if isinstance(named, str) and named not in metrics.QUANTITIES:
            yield (entry,), named


def _check_sides(claim: Claim, index: int) -> None:
    sides = claim.variants()
    for name in sides.pop("than", ()):
        if any(name in names for names in sides.values()):
            raise LocatedError(
                f"claims.{index}.than must be another variant than that of "
                f"{claim.kind}, got {name!r} for both; change one"
            )


def _check_at(
    key: str,
    values: tuple[object, ...],
    about: list[dict[str, list[object]]],
    index: int,
) -> None:
    """Refuses a claim for values of a swept key that a variant does not take."""
    taken = [keys[key] for keys in about if key in keys]
    if not taken:
        known = {key for keys in about for key in keys}
        raise LocatedError(
            f"claims.{index}.at must name keys that are swept, got {key!r}; "
            f"{suggestion(key, known)}"
        )
    for value in values:
        for known in taken:
            if value not in known:
                raise LocatedError(
                    f"claims.{index}.at.{key} must be of the values that are swept, "
                    f"got {shown(value)}; known are {', '.join(map(shown, known))}",
                    ("claims", index, "at", key),
                )
