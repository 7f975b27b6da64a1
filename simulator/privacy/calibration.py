"""Noise for a budget, and what every accountant says of it."""

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

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


class Opinion(NamedTuple):
    """The result of one accountant for the noise.

    Attributes:
        name: Name of the accountant.
        epsilon: Epsilon of all releases; infinite where it has no bound for them.
        formal: Whether it is proved.
        within: Whether it is at most the target.
    """

    name: str
    epsilon: float
    formal: bool
    within: bool


class Calibration(NamedTuple):
    """The least noise for a budget.

    Attributes:
        multiplier: Noise scale over sensitivity.
        per_release: Epsilon at delta 0 of one release, amplified by the draw; None
            where it has none.
        accountants: Results of all accountants that can account for such releases.
        protects: What all these epsilons protect.
        missing: Accountants whose library is not installed.
    """

    multiplier: float
    per_release: float | None
    accountants: tuple[Opinion, ...]
    protects: str
    missing: tuple[str, ...] = ()

    @property
    def reported(self) -> Opinion:
        """Smallest epsilon that is proved: there is one, by which noise was found."""
        proved = (one for one in self.accountants if one.formal)
        return min(proved, key=lambda one: one.epsilon)


def calibration(
    epsilon: float,
    delta: float,
    releases: int,
    mechanism: str,
    sampling_ratio: float,
    accountant: str,
) -> Calibration:
    """Finds the least noise with which equal releases stay within a budget.

    Args:
        epsilon: Target, > 0.
        delta: Failure probability, in [0, 1).
        releases: Messages of one client, >= 1.
        mechanism: A key of `MECHANISMS`.
        sampling_ratio: Ratio of the client's own draws of distinct samples, in (0, 1].
        accountant: Name of the accountant whose epsilon is held.

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
    release = event(multiplier)
    opinions, missing = [], []
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
            found = one.epsilon(delta)
        except ExtraError:
            missing.append(part.name)
            continue
        within = found <= epsilon * (1 + 1e-9)
        opinions.append(Opinion(part.name, found, one.formal, within))
    pure = release.pure_epsilon if release.is_pure else None
    protects = f"{SAMPLE} (clip: sample, sensitivity 2 C / b)"
    if sampling_ratio == 1:
        protects += f"; or {CONTRIBUTION} (clip: contribution, sensitivity 2 C)"
    return Calibration(multiplier, pure, tuple(opinions), protects, tuple(missing))
