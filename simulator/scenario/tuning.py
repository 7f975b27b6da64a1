"""What is tuned: the entries that a search varies, and what it goes by."""

import json
import re
from collections.abc import Mapping
from itertools import zip_longest
from typing import Annotated, Any, NamedTuple

from pydantic import AfterValidator, BeforeValidator, Field

from ..parts import metrics
from ..parts.base import Config, LocatedError, Rule
from ..parts.errors import ScenarioError
from ..parts.text import shown, suggestion
from .grid import MOST, Span

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
    """What trials are compared by.

    Attributes:
        metric: Metric of the table `evaluations`; its record says which way is better.
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
    """Returns what a text says: `test_loss`, `test_loss@200s`, `test_accuracy=0.9`.

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
    """Says whether what is compared is better the larger it is."""
    return sought.target is None and metrics.metric(sought.metric).higher_is_better


ObjectiveText = Annotated[str, AfterValidator(_sound), Rule(RULE, "test_loss@200s")]
"""What trials are compared by, as it is written."""


def _searched(value: Any) -> Any:
    if isinstance(value, Mapping | list | tuple | Span):
        return value
    raise ValueError(
        f"must be two ends, or a list to choose from, got {shown(value)}; write for "
        f"example {{from: 0.001, to: 1, scale: log}}"
    )


Searched = Annotated[
    Span | Annotated[tuple[Any, ...], Field(min_length=2)], BeforeValidator(_searched)
]
"""Numbers between two ends, or a list to choose from."""


class Tune(Config):
    """A search of the best values of some entries; for `stalesim tune`."""

    over: Annotated[dict[str, Searched], Field(min_length=1)]
    """Dotted keys and where their values are searched: `{from, to, scale, whole}`, or a
    list to choose from."""
    objective: ObjectiveText | None = None
    """Metric that is to be as good as can be, at the end or, as in `test_loss@200s`, at
    an instant in virtual seconds (s), commits, contributions, rounds or epochs; or, as
    in `test_accuracy=0.9`, a target that is to be reached as soon as can be. By
    default the final value of the first metric that is evaluated."""
    trials: Annotated[int, Field(ge=2, le=MOST)] = 30
    """Points that are tried."""


def check(tune: Tune | None, evaluated: tuple[str, ...], stop: Any) -> None:
    """Refuses a search by what is not measured.

    Args:
        tune: The search, if there is one.
        evaluated: Metrics of the scenario.
        stop: End of its runs.

    Raises:
        LocatedError: The metric is not evaluated, or its instant is beyond the end.
    """
    if tune is None:
        return
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
    sought: Objective, place: tuple[str, ...], evaluated: tuple[str, ...], stop: Any
) -> None:
    """Refuses what trials cannot be compared by.

    Args:
        sought: What they are compared by.
        place: Where it stands in the scenario.
        evaluated: Metrics of the scenario.
        stop: End of its runs.

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


def refuse_untuned(scenario: Any) -> None:
    """Refuses to run a scenario that is to be tuned as though it were not.

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
            f"{scenario.name}: must have no tune to be run as it is; search by "
            f"stalesim tune, or remove it by -s tune=null"
        )


def _list(values: Searched) -> tuple[Any, ...]:
    return () if isinstance(values, Span) else values


def of(tune: Tune, evaluated: tuple[str, ...]) -> Objective:
    """Returns what a search goes by; by default the first metric's final value."""
    return objective(tune.objective or evaluated[0])


def sweep(trials: Mapping[str, int]) -> dict[str, Any]:
    """Returns the sweep of some trials, in their order.

    Args:
        trials: Replicates of each trial, by its name.
    """
    points = [json.loads(name) for name in trials]
    keys = points[0] if points else {}
    columns = {key: [point[key] for point in points] for key in keys}
    return {"zipped": {**columns, "replicates": [*trials.values()]}} if points else {}


def trials(swept: Mapping[str, Any]) -> dict[str, int] | None:
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


def name(parameters: Mapping[str, Any]) -> str:
    """Returns the name of a trial: its values as JSON."""
    return json.dumps(dict(parameters), sort_keys=True)
