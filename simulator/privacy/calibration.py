"""Noise for a budget, and what every accountant says of it."""

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

from simulator.config.errors import UserError
from simulator.privacy.accountants import ACCOUNTANTS, Pld, make
from simulator.privacy.budgets import calibrate
from simulator.privacy.releases import Gaussian, Laplace, Pure, Release

SLOW = 100_000
"""Releases beyond which a loss distribution takes long; it is then left out."""
MECHANISMS: dict[str, Callable[..., Release]] = {
    "gaussian": Gaussian,
    "laplace": Laplace.of_multiplier,
    "spherical_laplace": Pure.of_multiplier,
}


class Opinion(NamedTuple):
    """What one accountant says of the noise.

    Attributes:
        name: of the accountant.
        epsilon: of all releases.
        formal: whether it is proved.
        within: whether it is at most the target.
    """

    name: str
    epsilon: float
    formal: bool
    within: bool


class Calibration(NamedTuple):
    """The least noise for a budget.

    Attributes:
        multiplier: noise scale over sensitivity.
        per_release: epsilon at delta 0 of one release, amplified by the draw; None
            where it has none.
        accountants: what each says that can account for such releases.
    """

    multiplier: float
    per_release: float | None
    accountants: tuple[Opinion, ...]


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
        epsilon: target, > 0.
        delta: in [0, 1).
        releases: messages of one client, >= 1.
        mechanism: a key of `MECHANISMS`.
        sampling_ratio: of the client's own draws of distinct samples, in (0, 1].
        accountant: whose epsilon is held.

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
    opinions = []
    for kind in ACCOUNTANTS:
        if kind is Pld and releases > SLOW and accountant != Pld.NAME:
            continue
        one = kind()
        try:
            one.release(releases, release)
        except UserError:  # it has no such releases
            continue
        found = one.epsilon(delta)
        within = found <= epsilon * (1 + 1e-9)
        opinions.append(Opinion(kind.NAME, found, one.formal, within))
    pure = None if isinstance(release, Gaussian) else release.pure_epsilon
    return Calibration(multiplier, pure, tuple(opinions))
