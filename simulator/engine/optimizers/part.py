"""Options of optimisers, and optax's by name. No JAX until one is made."""

import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from importlib.metadata import version
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

from pydantic import (
    ConfigDict,
    Discriminator,
    Field,
    Tag,
    model_serializer,
    model_validator,
)

from ...parts.base import Config, LocatedError, Rule, refuse_booleans
from ...parts.errors import ScenarioError, nearest, one_line, shown

if TYPE_CHECKING:
    import optax

    from ..algorithm import Algorithm

Positive = Annotated[float, Field(gt=0)]
Number = Annotated[
    bool | int | float, Rule("a number, or true or false", "0.9 or true")
]
DIRECTIONS = ("momentum", "adam", "yogi", "adagrad", "rmsprop")
"""Kinds of `Direction`."""
DELAYED = "delayed_nesterov"
"""Kind of `DelayedNesterov`."""
LINEAR = ("optimistic_gradient_descent", "sgd")
"""Optimisers of optax whose steps are linear in the gradients."""


def _flat_schema(schema: dict[str, Any]) -> None:
    """Tells editors that parameters stand next to the name, and are numbers."""
    parameters = schema["properties"].pop("parameters", None)
    if parameters is not None:
        schema["additionalProperties"] = parameters["additionalProperties"]


class _Named(Config):
    """A function of optax by its name, with its own parameters next to it."""

    model_config = ConfigDict(json_schema_extra=_flat_schema)

    parameters: dict[str, Number] = Field(default_factory=dict)
    """Options by optax's names, which stand next to the name in a scenario."""

    @model_validator(mode="before")
    @classmethod
    def _gather_parameters(cls, data: object) -> object:
        if not isinstance(data, dict) or "parameters" in data:
            return data
        own = {key: value for key, value in data.items() if key in cls.model_fields}
        rest = {key: value for key, value in data.items() if key not in own}
        return own | {"parameters": rest}

    @model_serializer
    def _flat(self) -> dict[str, Any]:
        found = {
            key: value.model_dump() if isinstance(value, Config) else value
            for key in type(self).model_fields
            if key != "parameters" and (value := getattr(self, key)) is not None
        }
        return found | self.parameters


class RateSchedule(_Named):
    """A learning rate by one of optax's schedules, over the updates that were made.

    At the server these are commits; at a worker or party its own local steps, those of
    its earlier jobs included.
    """

    schedule: Annotated[str, Rule("a schedule of optax", "cosine_decay_schedule")]
    """Name of a schedule of optax."""


class Optax(_Named):
    """Any optimiser of optax by its name, and `muon`, with their own parameters.

    Its learning rate replaces the step size, which is left out.
    """

    kind: Annotated[str, Rule("an optimiser of optax", "adamw")]
    """Name of an optimiser of optax, or `muon`."""
    learning_rate: Annotated[
        Annotated[float, Field(ge=0)] | RateSchedule,
        Rule(
            "a number >= 0, or a schedule of optax",
            "0.001 or {schedule: cosine_decay_schedule, init_value: 0.001, "
            "decay_steps: 1000}",
        ),
    ]
    """Learning rate: a number or a schedule of optax."""
    clip_norm: Positive | None = None
    """Largest l2 norm of a gradient, to which it is scaled before the optimiser."""
    matrices: Literal["hidden", "all"] | None = None
    """Which matrices `muon` moves, all else being AdamW's: the `hidden` ones between a
    model's first and last layers, as its authors have it, which is the default, or
    `all`, which is optax's. Its step is longer by the root of outputs over inputs where
    that is above 1: matrices are `[inputs, outputs]` in Flax, else `[outputs,
    inputs]`."""

    @model_validator(mode="before")
    @classmethod
    def _matrices_are_muons(cls, data: object) -> object:
        if not isinstance(data, Mapping):
            return data
        given = data.get("matrices")
        if data.get("kind") == "muon":
            return {**data, "matrices": "hidden" if given is None else given}
        if given is not None:
            raise LocatedError(
                f"matrices is only valid for muon, got {shown(given)}; remove it",
            )
        return data

    @model_validator(mode="before")
    @classmethod
    def _rate_is_no_flag(cls, data: object) -> object:
        for key in ("learning_rate", "clip_norm"):
            if isinstance(data, dict) and key in data:
                refuse_booleans(key, data[key])
        return data

    @property
    def is_linear(self) -> bool:
        """Whether directions are linear in the gradients so far, so scale with them."""
        return self.kind in LINEAR and self.clip_norm is None

    def program(self) -> dict[str, object]:
        """Returns all but the numbers that runs of one program may differ in."""
        found: dict[str, object] = self.model_dump(mode="json")
        if not isinstance(self.learning_rate, RateSchedule):
            found["learning_rate"] = "number"
        return found | {"clip_norm": self.clip_norm is not None}


class LocalOptax(Optax):
    """A client's optimiser of its local steps.

    Its state restarts with every job, or is the client's own and stays.
    """

    state: Literal["anew", "kept"] = "anew"
    """`anew`: every job starts with moments of zero, as most implementations have it.
    `kept`: each client continues with the moments of its last job that was applied."""


class Direction(Config):
    """The direction of a step, in optax's forms; the step size multiplies it.

    Source: Reddi et al., Adaptive Federated Optimization (2021); optax corrects the
    moments' bias, which they do not.
    """

    kind: Literal["momentum", "adam", "yogi", "adagrad", "rmsprop"]
    """Form of the direction, by the name that optax has for it."""
    decay: Annotated[float, Field(ge=0, lt=1)] = 0.9
    """Decay of the momentum, or of the first moment."""
    second_decay: Annotated[float, Field(ge=0, lt=1)] = 0.99
    """Decay of the second moment (`adam`, `yogi`, `rmsprop`)."""
    small: Positive = 1e-3
    """Keeps denominators from zero: added to the root of the second moment (`adam`,
    `yogi`) or under it (`adagrad`, `rmsprop`), as optax does."""

    @property
    def is_linear(self) -> bool:
        """Whether directions are linear in the gradients so far, so scale with them."""
        return self.kind == "momentum"

    def program(self) -> dict[str, object]:
        """Returns its options, in all of which programs differ."""
        return self.model_dump(mode="json")


class DelayedNesterov(Config):
    """Nesterov's momentum for arrivals that come one by one (asynchronous DiLoCo).

    The momentum is renewed by the mean of `period` updates. Each of them moves the
    model by its own gradient over the period, and by the momentum only the last, or
    each by a part of it. Period 1 is Nesterov's momentum.

    Source: Liu et al., Asynchronous Local-SGD Training for Language Modeling (2024),
    Algorithm 3. Look-ahead: Al Asif et al., HeLoCo: Efficient Asynchronous
    Low-Communication Training (2026), Algorithm 1, line 3, without its corrections and
    with this momentum; after Ajanthan et al., Momentum Look-Ahead for Asynchronous
    Distributed Low-Communication Training (2025), who also extrapolate along the
    momentum, in a form that we have not read.
    """

    kind: Literal["delayed_nesterov"]
    """Name of it."""
    period: Annotated[int, Field(ge=1)]
    """N: updates of which the momentum's is the mean, such as the number of clients."""
    decay: Annotated[float, Field(ge=0, lt=1)] = 0.9
    """beta: decay of the momentum, once in a period."""
    is_linear: ClassVar[bool] = True
    spread: Annotated[float, Field(ge=0, le=1)] = 0.0
    """c: share of the momentum in every update but the last of a period, at most
    1 / `period`; the last has the rest."""
    look_ahead: bool = False
    """Whether clients read x - e beta m, where the momentum m leads the model x with
    the step size e, in place of x."""

    @model_validator(mode="after")
    def _shares_are_one(self) -> "DelayedNesterov":
        if self.spread * self.period > 1 + 1e-9:
            raise LocatedError(
                f"spread must be at most 1 / period, {1 / self.period:g}, got "
                f"{self.spread:g}; lower it",
            )
        return self

    def program(self) -> dict[str, object]:
        """Returns its options, in all of which programs differ."""
        return self.model_dump(mode="json")


def _form(value: object) -> str:
    """Says which form an optimiser has: optax's own has a learning rate."""
    kind, rate = getattr(value, "kind", None), hasattr(value, "learning_rate")
    if isinstance(value, Mapping):
        kind, rate = value.get("kind"), "learning_rate" in value
    if kind == DELAYED:
        return "delayed"
    return "optax" if rate else "direction"


def _form_of_worker(value: object) -> str:
    """Says the same where nothing arrives one by one."""
    form = _form(value)
    return "direction" if form == "delayed" else form


Optimizer = Annotated[
    Annotated[Direction, Tag("direction")] | Annotated[Optax, Tag("optax")],
    Discriminator(_form_of_worker),
]
"""By optax with its own learning rate, or a direction for the step size."""
ServerOptimizer = Annotated[
    Annotated[Direction, Tag("direction")]
    | Annotated[DelayedNesterov, Tag("delayed")]
    | Annotated[Optax, Tag("optax")],
    Discriminator(_form),
]
"""The same, or the momentum of a server to which contributions come one by one."""


def with_steps(data: object, **step_of: str) -> object:
    """Returns options in which a learning rate replaces a step size of 1.

    Args:
        data: Options of an algorithm, as they are written.
        step_of: Step size that each optimiser takes the place of, by its entry.

    Raises:
        LocatedError: A step size and a learning rate are set, or one of optax's
            optimisers has no learning rate.
    """
    if not isinstance(data, Mapping):
        return data
    for key, step in step_of.items():
        given = data.get(key)
        if _form(given) != "optax":
            kind = given.get("kind") if isinstance(given, Mapping) else None
            named = key == "optimizer" and isinstance(kind, str)
            known = (*DIRECTIONS, DELAYED)
            if named and kind not in known:
                raise LocatedError(
                    f"{key}.kind must be {', '.join(known)} without "
                    f"learning_rate, got {shown(kind)}; add learning_rate for one "
                    f"of optax's",
                )
            continue
        if data.get(step, 1) not in (None, 1):
            raise LocatedError(
                f"{step} must be left out with {key}.learning_rate, which takes its "
                f"place, got {data[step]!r}; remove one of them",
            )
        data = {**data, step: 1.0}
    return data


def chosen(algorithm: "Algorithm") -> dict[str, Direction | DelayedNesterov | Optax]:
    """Returns the optimisers of an algorithm, by entry."""
    entries = ("optimizer", "local_optimizer")
    found = {key: getattr(algorithm, key, None) for key in entries}
    for i, stage in enumerate(getattr(algorithm, "chain", ())):
        found |= {f"chain.{i}.{key}": given for key, given in chosen(stage).items()}
    return {key: given for key, given in found.items() if given is not None}


def programs(algorithm: "Algorithm") -> dict[str, object]:
    """Returns the optimisers' options in which programs differ, by entry."""
    return {key: given.program() for key, given in chosen(algorithm).items()}


CONTRIBUTED = ("muon",)
"""Those of `optax.contrib`."""
OTHERS = ("lbfgs", "noisy_sgd", "optimistic_adam")
"""Those of optax that need values of the loss or a random key, or are deprecated."""
BY_ARRAY = ("adafactor", "fromage", "lamb", "lars", "muon", "novograd", "sm3")
"""Those that use whole arrays of weights; the others work number by number."""
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
def optimisers() -> dict[str, Callable[..., "optax.GradientTransformation"]]:
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
def schedules() -> dict[str, Callable[..., "optax.Schedule"]]:
    """Returns the schedules of the installed optax, by name."""
    import optax

    return {name: getattr(optax, name) for name in SCHEDULES}


def options_of(function: Callable[..., object]) -> dict[str, object]:
    """Returns the numbers and flags that a function takes, with their defaults.

    Set what has no default.
    """
    return {
        name: parameter.default
        for name, parameter in inspect.signature(function).parameters.items()
        if name != "learning_rate"
        and not NO_NUMBER.search(name)
        and isinstance(parameter.default, int | float | None | type)
    }


def muon_of(hidden: Sequence[bool]) -> dict[str, object]:
    """Returns the option that leaves all arrays but hidden matrices to Muon's AdamW."""
    from optax.contrib import MuonDimensionNumbers

    moved = tuple(MuonDimensionNumbers() if one else None for one in hidden)
    return {"muon_weight_dimension_numbers": moved}


def check_options(config: Direction | DelayedNesterov | Optax, key: str) -> None:
    """Refuses optimisers, schedules and options that optax does not have.

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
    known: Mapping[str, Callable[..., object]],
    what: str,
    name: str,
    given: dict[str, bool | int | float],
    entry: tuple[str, str],
) -> None:
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


def _check_value(key: str, value: bool | int | float, default: object) -> None:
    """Refuses flags for numbers, numbers for flags, and fractions for counts."""
    rule = ""
    if isinstance(default, bool) != isinstance(value, bool):
        rule = "true or false" if isinstance(default, bool) else "a number"
    elif isinstance(default, int) and not float(value).is_integer():
        rule = "a whole number"
    if rule:
        raise ScenarioError(f"{key} must be {rule}, got {shown(value)}; change it")
