"""A comparison of variants, each at its own best: what is searched, and what was found.

The trials of a variant are a grid, and then both sides of the best so far, until none
of them is better. So a best value never lies at a border of what was tried.
"""

import itertools
import math
import zlib
from collections.abc import Iterator, Mapping
from typing import Annotated, Any

import numpy as np
from pydantic import BeforeValidator, Field, model_validator

from ..parts.base import Config, LocatedError
from ..parts.text import shown, suggestion
from .grid import MOST, ZIPPED, Range, short
from .study import replace
from .tuning import ObjectiveText, check_objective, objective

NEAR = 1e-3
"""Relative difference of values that are the same trial: they have four digits."""
NEARER = 4
"""Values to one side of the best, each half as far away: a whole step to an eighth."""
ORDERED = 3
"""Numbers of a list from which on the first and the last are taken to be its ends."""

Point = dict[str, Any]
"""Values of the entries that are searched."""


def _searched(value: Any) -> Any:
    if isinstance(value, Mapping | list | tuple | Range):
        return value
    raise ValueError(
        f"must be a range, or a list to choose from, got {shown(value)}; write for "
        f"example {{from: 0.01, to: 1, num: 3, scale: log}}"
    )


Space = dict[
    str,
    Annotated[
        Range | Annotated[tuple[Any, ...], Field(min_length=2)],
        BeforeValidator(_searched),
    ],
]
"""Dotted keys and their grids: `{from, to, num, scale, whole}`, or a list."""


class TuningBudget(Config):
    """What the tuning of each variant may cost: exactly one of trials and time."""

    trials: Annotated[int, Field(ge=2, le=MOST)] | None = None
    """Points that are tried, each with all replicates."""
    time: Annotated[float, Field(gt=0)] | None = None
    """Virtual seconds of all runs together."""

    @model_validator(mode="after")
    def _one_unit(self) -> "TuningBudget":
        if (self.trials is None) == (self.time is None):
            raise ValueError("must have exactly one of trials and time; keep one")
        return self


class Trial(Config):
    """A point that was tried."""

    point: Point
    """Its values."""
    value: float | None = None
    """Mean of the objective, of the replicates that have one."""
    missed: Annotated[int, Field(ge=0)] = 0
    """Replicates that diverged, or never reached the target."""


class Choice(Config):
    """What the tuning of a variant has found, and what it cost."""

    best: Point
    """Values at which the variant is judged."""
    trials: tuple[Trial, ...]
    """Everything that was tried, in this order."""
    runs: Annotated[int, Field(ge=0)]
    """Runs of the tuning."""
    time: Annotated[float, Field(ge=0)]
    """Virtual seconds of these runs together."""
    limits: tuple[str, ...] = ()
    """Entries next to whose best value, on one side, no value is valid."""


class Compare(Config):
    """A comparison of the variants, each at its own best; for `stalesim run`."""

    over: Space = Field(default_factory=dict)
    """Entries that are tuned for every variant: dotted keys, and a grid of each."""
    also: dict[str, Space] = Field(default_factory=dict)
    """Further entries of single variants, or other grids for the same, by variant."""
    objective: ObjectiveText
    """What best means: a metric at the end, `test_loss`; at an instant,
    `test_loss@200s`; or the time to a target, `test_accuracy=0.9`."""
    budget: TuningBudget
    """What the tuning of each variant may cost, the same for all."""
    replicates: Annotated[int, Field(ge=1)] = 5
    """Replicates of each trial; their seeds are others than those that judge."""
    found: dict[str, Choice] | None = None
    """Choices of all variants; written by `stalesim run`."""

    def space(self, variant: str) -> Space:
        """Returns what is searched for a variant."""
        return {**self.over, **self.also.get(variant, {})}


def check(scenario: Any) -> None:
    """Refuses a comparison that is none.

    Args:
        scenario: Scenario with its variants.

    Raises:
        LocatedError: There are too few variants, one is not tuned or unknown, a grid
            is beyond the budget, or there is a sweep or another search.
    """
    compare, variants = scenario.compare, scenario.variants
    if compare is None:
        return
    others = {"tune": scenario.tune, "sweep": scenario.sweep}
    others |= {f"variants.{k}.sweep": v.get("sweep") for k, v in variants.items()}
    for key, other in others.items():
        if other:
            raise LocatedError(
                f"compare must stand without {key}, since it tunes entries of its own; "
                f"remove one of them",
            )
    if len(variants) < 2:
        raise LocatedError(
            f"compare must have at least two variants to compare, got {len(variants)}; "
            f"add some",
        )
    for variant in compare.also:
        if variant not in variants:
            raise LocatedError(
                f"compare.also.{variant} must be a variant; "
                f"{suggestion(variant, variants)}",
                ("compare", "also", variant),
            )
    for variant in variants:
        space, trials = compare.space(variant), compare.budget.trials
        if not space:
            raise LocatedError(
                f"compare.also must have {variant}, of which nothing else is tuned; "
                f"add an entry there, or one for all to compare.over",
            )
        size = math.prod(len(values(each)) for each in space.values())
        if trials is not None and size > trials:
            raise LocatedError(
                f"compare.budget.trials must be >= {size:,}, the grid of {variant}, "
                f"and a few more for both sides of its best, got {trials:,}; raise it, "
                f"or lower num",
            )
        if size > MOST:
            raise LocatedError(
                f"compare must have at most {MOST:,} points in a grid, got {size:,} of "
                f"{variant}; lower num",
            )
    sought = objective(compare.objective)
    place = ("compare", "objective")
    check_objective(sought, place, scenario.evaluate.metrics, scenario.stop)


def values(searched: Range | tuple[Any, ...]) -> list[Any]:
    """Returns the values of a grid along one entry."""
    return searched.values() if isinstance(searched, Range) else list(searched)


def grid(space: Space) -> list[Point]:
    """Returns the points of a grid, the last key changing fastest."""
    axes = [values(each) for each in space.values()]
    return [dict(zip(space, point, strict=True)) for point in itertools.product(*axes)]


def sides(space: Space, at: Point) -> Iterator[tuple[str, list[Point]]]:
    """Yields where to look next to a point: an entry, and points that differ in it.

    Of a logarithmic range one side is half the value and the other one twice, of a
    linear one a step of the grid, of a list every other value. The first point counts
    that is valid: further ones are nearer, by half of the step each.
    """
    for key, searched in space.items():
        old = at[key]
        if not isinstance(searched, Range):
            yield from ((key, [{**at, key: x}]) for x in searched if x != old)
            continue
        for sign in (-1, 1):
            near = [_moved(searched, old, sign / 2**n) for n in range(NEARER)]
            yield key, [{**at, key: each} for each in near]


def _moved(searched: Range, old: float, steps: float) -> float | int:
    """Returns a value some steps away: doublings, or those of a linear grid."""
    if searched.scale == "log":
        new = old * 2**steps
    else:
        step = steps * abs(searched.to - searched.from_) / (searched.num - 1)
        new = old + step if abs(old + step) > NEAR * abs(step) else 0.0
    if searched.whole:
        return max(round(new), old + 1) if steps > 0 else min(round(new), old - 1)
    return float(short(new))


def same(one: Point, other: Point) -> bool:
    """Says whether two points are one, but for the rounding of their values."""
    alike = one.keys() == other.keys()
    return alike and all(_same(each, other[key]) for key, each in one.items())


def _same(one: Any, other: Any) -> bool:
    numbers = all(type(each) in (int, float) for each in (one, other))
    return math.isclose(one, other, rel_tol=NEAR) if numbers else one == other


def at_end(space: Space, at: Point) -> list[str]:
    """Returns the entries that have the first or last number of a list."""
    ends = {
        key: (min(searched), max(searched))
        for key, searched in space.items()
        if isinstance(searched, tuple)
        and len(searched) >= ORDERED
        and all(type(each) in (int, float) for each in searched)
    }
    return [key for key, both in ends.items() if at[key] in both]


def seed_of_tuning(seed: int) -> int:
    """Returns the seed of the trials of a study, from that of the runs that judge."""
    entropy = np.random.SeedSequence(seed, spawn_key=(zlib.crc32(b"compare"),))
    return int(entropy.generate_state(1, np.uint32)[0])


def study_of_trials(scenario: Any, points: Mapping[str, list[Point]]) -> Any:
    """Returns the scenario of the trials of all variants; it judges no claims.

    Args:
        scenario: Scenario with a comparison.
        points: Points of each variant, all different.
    """
    swept = {
        variant: {**changes, "sweep": {ZIPPED: _columns(points[variant])}}
        for variant, changes in scenario.variants.items()
    }
    of_tuning = {
        "name": f"{scenario.name}-tuning",
        "variants": swept,
        "seed": seed_of_tuning(scenario.seed),
        "replicates": scenario.compare.replicates,
        "claims": (),
        "looks": (),
        "compare": None,
    }
    return scenario.model_copy(update=of_tuning)


def _columns(points: list[Point]) -> dict[str, list[Any]]:
    return {key: [point[key] for point in points] for key in points[0]}


def at_best(scenario: Any, found: Mapping[str, Choice]) -> Any:
    """Returns a scenario whose variants have the values that were chosen for them."""
    variants = {}
    for variant, changes in scenario.variants.items():
        for key, value in found[variant].best.items():
            keys = tuple(key.split("."))
            changes = replace(changes, keys, value, nulls_remove=False)
        variants[variant] = changes
    compare = scenario.compare.model_copy(update={"found": dict(found)})
    return scenario.model_copy(update={"variants": variants, "compare": compare})


def tried(choice: Choice, at: Point) -> Trial | None:
    """Returns the trial at a point, if there was one."""
    return next((trial for trial in choice.trials if same(at, trial.point)), None)
