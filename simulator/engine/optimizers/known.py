"""Optax's optimisers and schedules by name, and the options that they take."""

import inspect
import re
from collections.abc import Callable, Sequence
from functools import cache
from importlib.metadata import version
from typing import Any

from ...parts.errors import ScenarioError
from ...parts.text import nearest, one_line, shown
from .part import DelayedNesterov, Direction, Optax, RateSchedule

CONTRIBUTED = ("muon",)
"""Those of `optax.contrib`."""
OTHERS = ("lbfgs", "noisy_sgd", "optimistic_adam")
"""Those of optax that need values of the loss or a random key, or are deprecated."""
BY_ARRAY = ("adafactor", "fromage", "lamb", "lars", "muon", "novograd", "sm3")
"""Those that look at whole arrays of weights; the others take number by number."""
SCHEDULES = (
    *("constant_schedule", "cosine_decay_schedule", "cosine_onecycle_schedule"),
    *("exponential_decay", "linear_onecycle_schedule", "linear_schedule"),
    *("polynomial_schedule", "warmup_constant_schedule"),
    *("warmup_cosine_decay_schedule", "warmup_exponential_decay_schedule"),
)
"""Schedules whose options are numbers."""
NO_NUMBER = re.compile("dtype|mask|numbers")
"""Names of options that are no numbers, whatever their default is."""


@cache
def optimisers() -> dict[str, Callable[..., Any]]:
    """Returns the optimisers of the installed optax, by name."""
    import optax.contrib  # 0.1 s: only where a run needs it

    found = {
        name: function
        for name, function in inspect.getmembers(optax, inspect.isfunction)
        if not name.startswith(("_", "scale_by_"))
        and name not in OTHERS
        and next(iter(inspect.signature(function).parameters), "") == "learning_rate"
    }
    contributed = {name: getattr(optax.contrib, name, None) for name in CONTRIBUTED}
    return found | {name: made for name, made in contributed.items() if made}


@cache
def schedules() -> dict[str, Callable[..., Any]]:
    """Returns the schedules of the installed optax, by name."""
    import optax

    return {name: getattr(optax, name) for name in SCHEDULES}


def options_of(function: Callable[..., Any]) -> dict[str, Any]:
    """Returns the numbers and flags that a function takes, with their defaults.

    What has no default must be given.
    """
    return {
        name: parameter.default
        for name, parameter in inspect.signature(function).parameters.items()
        if name != "learning_rate"
        and not NO_NUMBER.search(name)
        and isinstance(parameter.default, int | float | None | type)
    }


def muon_of(hidden: Sequence[bool]) -> dict[str, Any]:
    """Returns the option that leaves all arrays but hidden matrices to Muon's AdamW."""
    from optax.contrib import MuonDimensionNumbers

    moved = tuple(MuonDimensionNumbers() if one else None for one in hidden)
    return {"muon_weight_dimension_numbers": moved}


def check(config: Direction | DelayedNesterov | Optax, key: str) -> None:
    """Refuses optimisers, schedules and options that optax does not have.

    Args:
        config: An optimiser of a scenario.
        key: Dotted entry in which it stands.

    Raises:
        ScenarioError: naming the entry, and the nearest name.
    """
    if not isinstance(config, Optax):
        return
    _check(optimisers(), "an optimiser", config.kind, config.parameters, (key, "kind"))
    rate = config.learning_rate
    if isinstance(rate, RateSchedule):
        entry = (f"{key}.learning_rate", "schedule")
        _check(schedules(), "a schedule", rate.schedule, rate.parameters, entry)


def _check(
    known: dict[str, Callable[..., Any]],
    what: str,
    name: str,
    given: dict[str, Any],
    entry: tuple[str, str],
) -> None:
    """Refuses a name or its options."""
    above, key = entry
    if name not in known:
        near = nearest(name, known)
        hint = f"did you mean {near!r}?" if near else f"known are {', '.join(known)}"
        raise ScenarioError(
            f"{above}.{key} must be {what} of optax {version('optax')}, got "
            f"{shown(name)}; {hint}"
        )
    options = options_of(known[name])
    for option, value in given.items():
        if option not in options:
            near = nearest(option, options)
            hint = f"did you mean {near!r}?" if near else "remove it"
            raise ScenarioError(
                f"{above}.{option} must be an option of optax's {name} "
                f"({', '.join(options) or 'it has none'}), got {shown(value)}; {hint}"
            )
        _check_value(f"{above}.{option}", value, options[option])
    for option, default in options.items():
        if default is inspect.Parameter.empty and option not in given:
            raise ScenarioError(
                f"{above}.{option} must be given for optax's {name}, got nothing; "
                "add a number"
            )
    rate = {"learning_rate": 0.1} if known is optimisers() else {}
    try:
        known[name](**rate, **given)
    except (ValueError, TypeError) as error:
        raise ScenarioError(
            f"{above} must be what optax's {name} takes, got {shown(given)}: "
            f"{one_line(str(error))}; change it"
        ) from error


def _check_value(key: str, value: Any, default: Any) -> None:
    """Refuses flags for numbers, numbers for flags, and fractions for counts."""
    rule = ""
    if isinstance(default, bool) != isinstance(value, bool):
        rule = "true or false" if isinstance(default, bool) else "a number"
    elif isinstance(default, int) and not float(value).is_integer():
        rule = "a whole number"
    if rule:
        raise ScenarioError(f"{key} must be {rule}, got {shown(value)}; change it")
