"""What claims are about: variants and swept values that a study has."""

from collections.abc import Iterable, Mapping
from typing import Any

from ..claims import Claim
from ..config.base import LocatedError
from ..config.text import is_meant, printed, shown, suggestion

Swept = dict[str, dict[str, list[Any]]]
"""Values of each swept key, by the names that claims know variants by."""


def check(claims: Iterable[Claim], swept: Swept) -> None:
    """Refuses claims about unknown variants, or over what is not swept.

    Raises:
        LocatedError: naming the entry of the claim.
    """
    for index, claim in enumerate(claims):
        about: list[dict[str, list[Any]]] = []
        for key, names in claim.variants().items():
            for name in names:
                if name not in swept:
                    raise LocatedError(
                        f"claims.{index}.{key} must name a variant, got {name!r}; "
                        f"{suggestion(name, swept)}",
                        ("claims", index, key),
                    )
                about.append(swept[name])
        over = claim.swept_key
        unswept = [keys for keys in about if over is not None and over not in keys]
        if unswept:
            raise LocatedError(
                f"claims.{index}.over must name a key that is swept, got {over!r}; "
                f"{suggestion(over, unswept[0])}",
                ("claims", index, "over"),
            )
        for key, values in claim.at.items():
            _check_at(key, values, about, index)


def _check_at(
    key: str, values: tuple[Any, ...], about: list[dict[str, list[Any]]], index: int
) -> None:
    """Refuses a claim for values that a variant does not take.

    Args:
        key: Swept key.
        values: Values that the claim is made for.
        about: Values of each swept key, for each variant that the claim names.
        index: Number of the claim, from 0.
    """
    place = ("claims", index, "at")
    taken = [keys[key] for keys in about if key in keys]
    if not taken:
        known = {key for keys in about for key in keys}
        raise LocatedError(
            f"claims.{index}.at must name keys that are swept, got {key!r}; "
            f"{suggestion(key, known)}",
            place,
        )
    for value in values:
        for known in taken:
            if not any(is_meant(value, each) for each in known):
                raise LocatedError(
                    f"claims.{index}.at.{key} must be of the values that are swept, "
                    f"got {shown(value)}; known are {', '.join(map(_told, known))}",
                    (*place, key),
                )


def _told(value: object) -> str:
    """Returns a value as a claim may write it."""
    return printed(value) if isinstance(value, Mapping) else shown(value)
