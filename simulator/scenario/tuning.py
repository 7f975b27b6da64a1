"""Tuning: the entries that a search or a comparison varies, and its objective."""

import itertools
import json
import math
import re
import zlib
from collections.abc import Iterator, Mapping, Sequence
from itertools import zip_longest
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import numpy as np
from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from ..parts import metrics
from ..parts.base import Config, LocatedError, Rule
from ..parts.errors import ScenarioError, shown, suggestion
from ..parts.stop import Stop
from .grid import MOST, ZIPPED, Range, Span, short
from .study import replace

if TYPE_CHECKING:
    from .scenario import Scenario

COUNTS = ("s", "commits", "contributions", "rounds", "epochs")
"""Units of the instant at which a metric is taken; `s` is virtual seconds."""
OBJECTIVE = re.compile(
    rf"(?P<metric>[A-Za-z_]\w*)"
    rf"(?:@(?P<at>[0-9.eE+-]+) ?(?P<unit>{'|'.join(COUNTS)})|=(?P<target>[0-9.eE+-]+))?"
)
RULE = (
    "METRIC, METRIC=TARGET, or METRIC@NUMBER with s, commits, contributions, rounds or "
    "epochs"
)


class Objective(NamedTuple):
    """The objective of trials.

    Attributes:
        metric: Metric of the table `evaluations`; its record has the better direction.
        at: Instant at which it is taken; None for its final value.
        unit: Unit of the instant, one of `COUNTS`.
        target: Value whose time (virtual s) is compared in place of the metric's own.
    """

    metric: str
    at: float | None = None
    unit: str = ""
    target: float | None = None

    @property
    def column(self) -> str:
        """Column of the table `evaluations` that counts to the instant or target."""
        return "time" if self.unit in ("", "s") else self.unit


def objective(text: str) -> Objective:
    """Returns a text's objective: `test_loss`, `test_loss@200s`, `test_accuracy=0.9`.

    Raises:
        ValueError: It is not of this form.
    """
    found = OBJECTIVE.fullmatch(text.strip())
    try:
        at = None if found is None or not found["at"] else float(found["at"])
        goal = None if found is None or not found["target"] else float(found["target"])
    except ValueError:
        found, at, goal = None, None, None
    if found is None or (at is not None and not 0 < at < float("inf")):
        raise ValueError(f"must be {RULE}, got {shown(text)}; write test_loss@200s")
    return Objective(found["metric"], at, found["unit"] or "", goal)


def _sound(text: str) -> str:
    objective(text)
    return text


def falls(sought: Objective) -> bool:
    """Returns whether a larger value of the objective is better."""
    return sought.target is None and metrics.metric(sought.metric).higher_is_better


ObjectiveText = Annotated[str, AfterValidator(_sound), Rule(RULE, "test_loss@200s")]
"""The objective of trials, as it is written."""


def _numbers_or_list(rule: str, example: str) -> BeforeValidator:
    def check(value: object) -> object:
        if isinstance(value, Mapping | list | tuple | Span):
            return value
        raise ValueError(
            f"must be {rule}, or a list to choose from, got {shown(value)}; write for "
            f"example {example}"
        )

    return BeforeValidator(check)


Searched = Annotated[
    Span | Annotated[tuple[Any, ...], Field(min_length=2)],
    _numbers_or_list("two ends", "{from: 0.001, to: 1, scale: log}"),
]
"""Numbers between two ends, or a list to choose from."""


class Tune(Config):
    """A search of the best values of some entries; for `stalesim tune`."""

    over: Annotated[dict[str, Searched], Field(min_length=1)]
    """Dotted keys and where their values are searched: `{from, to, scale, whole}`, or a
    list to choose from."""
    objective: ObjectiveText | None = None
    """Metric to optimise, at the end or, as in `test_loss@200s`, at an instant in
    virtual seconds (s), commits, contributions, rounds or epochs; or, as in
    `test_accuracy=0.9`, a target to reach as soon as possible. By default the final
    value of the first metric that is evaluated."""
    trials: Annotated[int, Field(ge=2, le=MOST)] = 30
    """Points that are tried."""


def check(tune: Tune, evaluated: tuple[str, ...], stop: Stop) -> None:
    """Refuses a search with an objective that is not measured."""
    for key, values in tune.over.items():
        counts = isinstance(values, Span) and values.whole and values.scale == "log"
        least = min(values.from_, values.to) if isinstance(values, Span) else 1
        if counts and least < 1:
            raise LocatedError(
                f"tune.over.{key} must be from 1 on for whole numbers on a logarithmic "
                f"scale, got {least:g}; raise it",
                ("tune", "over", key),
            )
        texts = [json.dumps(v, sort_keys=True, default=str) for v in _list(values)]
        if len({*texts}) < len(texts):
            raise LocatedError(
                f"tune.over.{key} must have different values, got "
                f"{shown(list(_list(values)))}; remove one",
                ("tune", "over", key),
            )
    check_objective(of(tune, evaluated), ("tune", "objective"), evaluated, stop)


def check_objective(
    sought: Objective, place: tuple[str, ...], evaluated: tuple[str, ...], stop: Stop
) -> None:
    """Refuses objectives that trials cannot have.

    Raises:
        LocatedError: The metric is not evaluated, cannot have the target, or its
            instant is beyond the end.
    """
    name = ".".join(place)
    if sought.metric not in evaluated:
        raise LocatedError(
            f"{name} must name a metric of evaluate.metrics "
            f"({', '.join(evaluated)}), got {sought.metric!r}; "
            f"{suggestion(sought.metric, metrics.names())}",
            place,
        )
    if sought.target is not None:
        rule = metrics.metric(sought.metric).range_missed(sought.target)
        if rule:
            raise LocatedError(
                f"{name} must have a target {rule}, which {sought.metric} can be, got "
                f"{sought.target:g}; change it",
                place,
            )
    last = getattr(stop, sought.column, None) if sought.unit else None
    if last is not None and sought.at is not None and sought.at > last:
        raise LocatedError(
            f"{name} must be within the runs, which end at stop."
            f"{sought.column}: {last:g}, got {sought.at:g}; lower it, or raise stop",
            place,
        )


def refuse_untuned(scenario: "Scenario") -> None:
    """Refuses to run a scenario without the tuning that it requires.

    Raises:
        ScenarioError: It has a search and no trials, or a comparison and no choices.
    """
    if scenario.compare is not None and scenario.compare.found is None:
        raise ScenarioError(
            f"{scenario.name}: must have its variants tuned before it is run; compare "
            f"them by stalesim run or stalesim.compare, or remove compare by "
            f"-s compare=null"
        )
    if scenario.tune is not None and not scenario.sweep:
        raise ScenarioError(
            f"{scenario.name}: must have no tune to be run directly; search by "
            "stalesim tune, or remove it by -s tune=null"
        )


def _list(values: Searched) -> tuple[object, ...]:
    return () if isinstance(values, Span) else values


def of(tune: Tune, evaluated: tuple[str, ...]) -> Objective:
    """Returns the objective of a search; by default the first metric's final value."""
    return objective(tune.objective or evaluated[0])


def sweep(trials: Mapping[str, int]) -> dict[str, dict[str, list[object]]]:
    """Returns the sweep of some trials, whose replicates are listed by name."""
    points = [json.loads(name) for name in trials]
    keys = points[0] if points else {}
    columns = {key: [point[key] for point in points] for key in keys}
    return {"zipped": {**columns, "replicates": [*trials.values()]}} if points else {}


def trials(swept: Mapping[str, object]) -> dict[str, int] | None:
    """Returns the trials of such a sweep; None if it is another one."""
    zipped = swept.get("zipped")
    if {*swept} != {"zipped"} or not isinstance(zipped, Mapping):
        return None if swept else {}
    if "replicates" not in zipped:
        return None
    numbers = zipped["replicates"]
    columns = {key: values for key, values in zipped.items() if key != "replicates"}
    rows = zip_longest(*columns.values())
    names = [name(dict(zip(columns, row, strict=True))) for row in rows]
    return dict(zip(names, numbers, strict=True))


def name(parameters: Mapping[str, object]) -> str:
    """Returns the name of a trial: its values as JSON."""
    return json.dumps(dict(parameters), sort_keys=True)


NEAR = 1e-3
"""Relative difference of values that are the same trial: they have four digits."""
NEARER = 4
"""Values to one side of the best, each half as far away: a whole step to an eighth."""
ORDERED = 3
"""Numbers of a list from which on the first and the last are taken to be its ends."""

Point = dict[str, Any]
"""Values of the entries that are searched."""


Space = dict[
    str,
    Annotated[
        Range | Annotated[tuple[Any, ...], Field(min_length=2)],
        _numbers_or_list("a range", "{from: 0.01, to: 1, num: 3, scale: log}"),
    ],
]
"""Dotted keys and their grids: `{from, to, num, scale, whole}`, or a list."""


class TuningBudget(Config):
    """Budget of the tuning of each variant: exactly one of trials and time."""

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
    """The result of the tuning of a variant, and its cost."""

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
    """Budget of the tuning of each variant, the same for all."""
    replicates: Annotated[int, Field(ge=1)] = 5
    """Replicates of each trial; their seeds differ from those of the final runs."""
    found: dict[str, Choice] | None = None
    """Choices of all variants; written by `stalesim run`."""

    def space(self, variant: str) -> Space:
        """Returns the search space of a variant."""
        return {**self.over, **self.also.get(variant, {})}


def check_comparison(scenario: "Scenario", compare: Compare) -> None:
    """Refuses a comparison that is none.

    Raises:
        LocatedError: There are too few variants, one is not tuned or unknown, a grid
            is beyond the budget, or there is a sweep or another search.
    """
    variants = scenario.variants
    others = {"tune": scenario.tune, "sweep": scenario.sweep}
    others |= {f"variants.{k}.sweep": v.get("sweep") for k, v in variants.items()}
    for key, other in others.items():
        if other:
            raise LocatedError(
                f"compare must be without {key}, because it tunes its own entries; "
                "remove one of them"
            )
    if len(variants) < 2:
        raise LocatedError(
            f"compare must have at least two variants to compare, got {len(variants)}; "
            f"add some"
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
                f"add an entry there, or one for all to compare.over"
            )
        size = math.prod(len(values(each)) for each in space.values())
        if trials is not None and size > trials:
            raise LocatedError(
                f"compare.budget.trials must be >= {size:,}, the grid of {variant}, "
                f"and a few more for both sides of its best, got {trials:,}; raise it, "
                f"or lower num"
            )
        if size > MOST:
            raise LocatedError(
                f"compare must have at most {MOST:,} points in a grid, got {size:,} of "
                f"{variant}; lower num"
            )
    sought = objective(compare.objective)
    place = ("compare", "objective")
    check_objective(sought, place, scenario.evaluate.metrics, scenario.stop)


def values(searched: Range | tuple[object, ...]) -> Sequence[object]:
    """Returns the values of a grid along one entry."""
    return searched.values() if isinstance(searched, Range) else list(searched)


def grid(space: Space) -> list[Point]:
    """Returns the points of a grid, the last key changing fastest."""
    axes = [values(each) for each in space.values()]
    return [dict(zip(space, point, strict=True)) for point in itertools.product(*axes)]


def sides(space: Space, at: Point) -> Iterator[tuple[str, list[Point]]]:
    """Yields the next points next to a point: an entry, and points that differ in it.

    Of a logarithmic range one side is half the value and the other one twice, of a
    linear one a step of the grid, of a list every other value. The first valid point
    counts: each further one halves the step.
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
    """Returns whether two points are equal but for rounding."""
    alike = one.keys() == other.keys()
    return alike and all(_same(each, other[key]) for key, each in one.items())


def _same(one: object, other: object) -> bool:
    both = [each for each in (one, other) if isinstance(each, int | float)]
    if len(both) < 2 or any(isinstance(each, bool) for each in both):
        return one == other
    return math.isclose(*both, rel_tol=NEAR)


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
    """Returns the seed of the trials of a study, from the seed of the final runs."""
    entropy = np.random.SeedSequence(seed, spawn_key=(zlib.crc32(b"compare"),))
    return int(entropy.generate_state(1, np.uint32)[0])


def study_of_trials(
    scenario: "Scenario", points: Mapping[str, list[Point]]
) -> "Scenario":
    """Returns the scenario of the trials of all variants; it judges no claims."""
    assert scenario.compare is not None
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


def _columns(points: list[Point]) -> dict[str, list[object]]:
    return {key: [point[key] for point in points] for key in points[0]}


def at_best(scenario: "Scenario", found: Mapping[str, Choice]) -> "Scenario":
    """Returns a scenario whose variants have the values that were chosen for them."""
    variants = {}
    for variant, changes in scenario.variants.items():
        for key, value in found[variant].best.items():
            keys = tuple(key.split("."))
            changes = replace(changes, keys, value, nulls_remove=False)
        variants[variant] = changes
    assert scenario.compare is not None
    compare = scenario.compare.model_copy(update={"found": dict(found)})
    return scenario.model_copy(update={"variants": variants, "compare": compare})


def tried(choice: Choice, at: Point) -> Trial | None:
    """Returns the trial at a point, if there was one."""
    return next((trial for trial in choice.trials if same(at, trial.point)), None)
