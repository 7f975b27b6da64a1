"""Noise for a budget, and what every accountant says of it."""

from collections.abc import Callable, Iterator
from functools import partial

from ..parts.errors import UserError
from ..parts.extras import ExtraError
from .budgets import calibrate
from .parts import known, make
from .releases import (
    CONTRIBUTION,
    SAMPLE,
    Gaussian,
    Laplace,
    Pure,
    Release,
)

SLOW = 100_000
"""Releases beyond which a loss distribution takes long; it is then left out."""
MECHANISMS: dict[str, Callable[..., Release]] = {
    "gaussian": Gaussian,
    "laplace": Laplace.of_multiplier,
    "spherical_laplace": Pure.of_multiplier,
}


def calibrated(
    epsilon: float,
    delta: float,
    releases: int,
    mechanism: str,
    sampling_ratio: float,
    accountant: str,
) -> tuple[float, Release]:
    """Finds the least noise with which equal releases stay within a budget.

    Args:
        epsilon: Target, > 0.
        delta: Failure probability, in [0, 1).
        releases: Messages of one client, >= 1.
        mechanism: A key of `MECHANISMS`.
        sampling_ratio: Ratio of the client's own draws of distinct samples, in (0, 1].
        accountant: Name of the accountant whose epsilon is held.

    Returns:
        Noise scale over sensitivity, and one of the releases with it.

    Raises:
        UserError: an argument is out of its range, or no noise is enough.
    """
    if mechanism not in MECHANISMS:
        raise UserError(
            f"mechanism must be one of {', '.join(MECHANISMS)}, got {mechanism!r}; "
            f"the default is gaussian"
        )
    event = partial(MECHANISMS[mechanism], sampling_ratio=sampling_ratio)
    multiplier = calibrate(epsilon, delta, releases, make(accountant), event)
    return multiplier, event(multiplier)


def opinions(
    release: Release, releases: int, delta: float, accountant: str
) -> Iterator[tuple[str, float | None, bool]]:
    """Yields what each accountant says of equal releases that it can account for.

    That is its name; epsilon, infinite where it has no bound, None where its library is
    not installed; and whether that is proved. A slow one is left out of many releases,
    unless it is `accountant`.
    """
    for part in known():
        too_slow = part.slow and releases > SLOW and accountant != part.name
        if too_slow or part.counts_all:  # here are the messages of one client
            continue
        one = part.make()
        try:
            one.release(releases, release)
        except UserError:  # it has no such releases
            continue
        try:
            yield part.name, one.epsilon(delta), one.formal
        except ExtraError:
            yield part.name, None, False


def protects(sampling_ratio: float) -> str:
    """Returns what these epsilons protect."""
    sample = f"{SAMPLE} (clip: sample, sensitivity 2 C / b)"
    if sampling_ratio != 1:
        return sample
    return f"{sample}; or {CONTRIBUTION} (clip: contribution, sensitivity 2 C)"
