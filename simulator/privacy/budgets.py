"""Budgets: the noise, or the number of releases, that an epsilon allows.

It also has every accountant's opinion of such noise.
"""

import json
import math
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from operator import index
from pathlib import Path

from ..parts.errors import UserError
from ..parts.extras import ExtraError
from .accountants import Accountant, check_delta
from .parts import accountant as known_accountant
from .parts import known, make
from .releases import CONTRIBUTION, SAMPLE, Gaussian, Laplace, Pure, Release, Sampling

MOST = 10**9
"""Releases that `releases_within` counts up to."""
MOST_CALIBRATED = 10**8
"""Releases in a search for noise: the optimal composition takes seconds for them."""
MOST_OF = {"pld": 10**5}
"""Limits of accountants that take as long for fewer releases: loss distributions grow
with their number."""
SLOW = 100_000
"""Releases beyond which a loss distribution takes long; it is then left out."""
MECHANISMS: dict[str, Callable[..., Release]] = {
    "gaussian": Gaussian,
    "laplace": Laplace.of_multiplier,
    "spherical_laplace": Pure.of_multiplier,
}

_TOLERANCE = 1e-6
_WIDEST = 2.0**60


def calibrate(
    target_epsilon: float,
    delta: float,
    num_releases: int,
    accountant: Accountant,
    event: Callable[[float], Release] = Gaussian,
) -> float:
    """Finds the least noise multiplier with which further releases stay in a budget.

    Args:
        target_epsilon: Epsilon > 0 of everything that the accountant will have counted.
        delta: Failure probability, in [0, 1).
        num_releases: Further releases, all with the multiplier sought, >= 1.
        accountant: Accountant of the client; it is not changed.
        event: Release of a multiplier, such as `Gaussian`, `Laplace.of_multiplier`
            or a partial of one with its sampling ratio.

    Returns:
        Noise scale over sensitivity, > 0: within the budget, and at most 1e-6 of itself
        above the least.

    Raises:
        UserError: an argument is out of its range, or no noise is enough.

    Source: bisection; epsilon falls as the multiplier grows.
    """
    _check_target(target_epsilon)
    check_delta(delta)
    most = MOST_OF.get(accountant.NAME, MOST_CALIBRATED)
    if not 1 <= num_releases <= most:
        raise UserError(
            f"releases must be from 1 to {most:,} by {accountant.NAME}, got "
            f"{num_releases:,}; give the number of messages that a client will send"
        )

    def fits(multiplier: float) -> bool:
        after = accountant.after(num_releases, event(multiplier))
        return after.epsilon(delta) <= target_epsilon

    # Composition grows about as the root of the releases: a good first bracket.
    high = math.sqrt(num_releases)
    while not fits(high):
        high *= 2
        if high > _WIDEST:
            raise UserError(
                f"target epsilon must be reachable, got {target_epsilon} at delta "
                f"{delta} by {accountant.NAME}; raise it or delta"
            )
    low = high / 2
    while fits(low):
        low, high = low / 2, low
        if low < 1 / _WIDEST:
            return high
    while high > low * (1 + _TOLERANCE):
        middle = math.sqrt(low * high)  # the tolerance is relative
        low, high = (low, middle) if fits(middle) else (middle, high)
    return high


def releases_within(
    target_epsilon: float,
    delta: float,
    event: Release,
    accountant: Accountant,
) -> int:
    """Counts the further releases that fit in a budget.

    Args:
        target_epsilon: Epsilon > 0 of everything that the accountant will have counted.
        delta: Failure probability, in [0, 1).
        event: One of the releases.
        accountant: Accountant of the client; it is not changed.

    Returns:
        The largest number, in [0, `MOST`], after which epsilon is at most the target.

    Raises:
        UserError: an argument is out of its range.
    """
    _check_target(target_epsilon)
    check_delta(delta)

    def fits(count: int) -> bool:
        return accountant.after(count, event).epsilon(delta) <= target_epsilon

    if not fits(0):
        return 0
    low, high = 0, 1
    while high <= MOST and fits(high):
        low, high = high, 2 * high
    high = min(high, MOST + 1)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    return low


def _check_target(target_epsilon: float) -> None:
    if not target_epsilon > 0:
        raise UserError(f"target epsilon must be > 0, got {target_epsilon}; try 1")


def calibrated(
    epsilon: float,
    delta: float,
    releases: int,
    mechanism: str,
    sampling_ratio: float,
    accountant: str,
    sampling: Sampling = "uniform",
) -> tuple[float, Release]:
    """Finds the least noise with which equal releases stay within a budget.

    Args:
        epsilon: Target, > 0.
        delta: Failure probability, in [0, 1).
        releases: Messages of one client, >= 1.
        mechanism: A key of `MECHANISMS`.
        sampling_ratio: Ratio of the client's own draws of samples, in (0, 1].
        accountant: Name of the accountant whose epsilon is held.
        sampling: Way of the draws; Poisson ones are of Gaussian noise.

    Returns:
        Noise scale over sensitivity, and one of the releases with it.

    Raises:
        UserError: an argument is out of its range, or no noise is enough.
    """
    laws = MECHANISMS
    if sampling == "poisson":
        laws = {"gaussian": partial(Gaussian, sampling=sampling)}
    if mechanism not in laws:
        raise UserError(
            f"mechanism must be one of {', '.join(laws)} with {sampling} batches, got "
            f"{mechanism!r}; the default is gaussian"
        )
    if known_accountant(accountant).condition:
        raise UserError(f"accountant must be of messages, got {accountant!r}; take rdp")
    event = partial(laws[mechanism], sampling_ratio=sampling_ratio)
    multiplier = calibrate(epsilon, delta, releases, make(accountant), event)
    return multiplier, event(multiplier)


def history(path: Path) -> list[tuple[Release, int]]:
    """Reads an Opacus accountant's history, or its `state_dict`, saved as JSON.

    Raises:
        UserError: It is no list of (noise multiplier, sample rate, steps).
    """
    try:
        read = json.loads(path.read_text(encoding="utf-8"))
        entries = read["history"] if isinstance(read, dict) else read
        found = [(Gaussian(+z, +q, "poisson"), index(steps)) for z, q, steps in entries]
        if min((steps for _, steps in found), default=0) < 1:
            raise ValueError("no steps")
    except (OSError, ValueError, TypeError, KeyError, UserError) as error:
        raise UserError(
            f"{path.name} must be a JSON list of [noise_multiplier, sample_rate, "
            f"steps], got: {error}; write it by json.dump(accountant.history, file)"
        ) from None
    return [*found]


def opinions(
    kinds: Sequence[tuple[Release, int]], delta: float, accountant: str
) -> Iterator[tuple[str, float | None, bool]]:
    """Yields the result of each accountant for releases that it can account for.

    That is its name; epsilon, infinite where it has no bound, None where its library is
    not installed; and whether that is proved. A slow one is left out of many releases,
    unless it is `accountant`.
    """
    for part in known():
        too_slow = (
            part.slow and sum(n for _, n in kinds) > SLOW and accountant != part.name
        )
        others = part.counts_all or part.condition
        if too_slow or others:  # here are the messages of one client
            continue
        one = part.make()
        try:
            for release, number in kinds:
                one.release(number, release)
        except UserError:  # it has no such releases
            continue
        try:
            yield part.name, one.epsilon(delta), one.formal
        except ExtraError:
            yield part.name, None, False


def protects(sampling_ratio: float, sampling: Sampling = "uniform") -> str:
    """Returns the protected unit of these epsilons."""
    if sampling == "poisson":
        return (
            "one sample, added or removed (sum of clipped samples, sensitivity C), if "
            "each sample joins a batch by itself"
        )
    sample = f"{SAMPLE} (clip: sample, sensitivity 2 C / b)"
    if sampling_ratio != 1:
        return sample
    return f"{sample}; or {CONTRIBUTION} (clip: contribution, sensitivity 2 C)"
