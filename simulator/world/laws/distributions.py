"""Any distribution of `scipy.stats`, by its name.

Draws are quantiles. SciPy's few laws without a quantile function in closed form are
inverted numerically, which takes about a millisecond a draw, of some much longer.
"""

from fractions import Fraction
from functools import lru_cache
from typing import Annotated, Any, Literal

import numpy as np
from jaxtyping import Bool, Float
from pydantic import ConfigDict, Field, model_serializer, model_validator

from ...parts.base import OPEN, LocatedError, Rule, refuse_booleans, tag
from ...parts.catalogue import parts
from ...parts.errors import ScenarioError, nearest, shown, suggestion
from ...parts.expressions import QUANTITY, Expression, Number, Quantity
from ...parts.plugins import IMPORTED
from . import usual
from .base import (
    LONGEST_S,
    ClientValues,
    ClosedForm,
    Draws,
    Durations,
    DurationSampler,
    Law,
    Population,
    Who,
    check_drawn,
    distinct_values,
    for_each,
    keys,
    known_values,
    positive,
    refuse_two_sizes,
    scaled_to_mean,
)
from .usual import USUAL, Family, Usual

PLACES = ("loc", "scale", "shift")
"""Parameters that are no shapes."""
WRITTEN = {
    "uniform": ("loc: low, scale: high - low", ("low", "high", "a", "b", "min", "max")),
    "lognorm": ("s: sigma, scale: exp(mu)", ("mu", "sigma")),
}
"""How laws are written whose parameters have other names elsewhere, and these names."""
RARE = 1e-9
"""Chance of a draw that cannot be made, up to which a law is accepted."""


def _flat_schema(schema: dict[str, Any]) -> None:
    """Tells editors that shape parameters stand next to `law`, and are numbers."""
    shapes = schema["properties"].pop("parameters", None)
    if shapes is not None:
        schema["additionalProperties"] = shapes["additionalProperties"]
        schema["properties"]["law"]["not"] = {"enum": sorted(own_names())}


class Scipy(Law):
    """Any distribution of `scipy.stats`, by its SciPy name and parameters.

    A continuous law is `shift + loc + scale * X`, as SciPy has it; a discrete law, for
    which SciPy knows no scale, is `shift + scale * (loc + X)`. All in virtual seconds.
    """

    model_config = ConfigDict(json_schema_extra=_flat_schema)

    law: Annotated[str, Rule("the name of a law", "constant or expon")]
    """Name of a distribution of scipy.stats."""
    loc: "Parameter" = 0
    """Shift of the distribution, as in SciPy."""
    scale: "Parameter" = 1
    """Factor of the distribution, as in SciPy."""
    mean: Quantity | None = None
    """Virtual seconds of the mean duration, in place of `scale`."""
    shift: "Parameter" = 0
    """Virtual seconds that are added to each draw."""
    parameters: dict[str, "Parameter"] = Field(default_factory=dict)
    """Shape parameters by SciPy's names, which are next to `law` in a scenario."""

    @model_validator(mode="before")
    @classmethod
    def _gather_parameters(cls, data: object) -> object:
        if not isinstance(data, dict) or "parameters" in data:
            return data
        own = {"law", "loc", "scale", "mean", "shift"}
        for key, value in data.items():
            if key in ("unit", "units"):
                raise ValueError(
                    f"must not have {key!r}, as times are seconds; remove it"
                )
            if key != "law":
                refuse_booleans(key, value)
        shapes = {key: value for key, value in data.items() if key not in own}
        return {k: v for k, v in data.items() if k in own} | {"parameters": shapes}

    @model_validator(mode="after")
    def _one_size(self) -> "Scipy":
        refuse_two_sizes(self)
        return self

    @model_serializer
    def _flat(self) -> dict[str, object]:
        return {
            "law": self.law,
            **self.parameters,
            "loc": self.loc,
            **({"scale": self.scale} if self.mean is None else {"mean": self.mean}),
            "shift": self.shift,
        }

    def scaled(self, num_clients: int, name: str = "law") -> "Scipy":
        """Returns the law with the scale that gives its mean, if it has one."""
        if self.mean is None:
            return self
        discrete = is_discrete(distribution(self.law, name))
        added = ("shift",) if discrete else ("shift", "loc")
        return scaled_to_mean(self, added, num_clients, name)

    @property
    def has_quantiles(self) -> bool:
        return True

    def make(self, population: Population) -> "ScipySampler":
        return ScipySampler(self, population)

    def check(self, num_clients: int, name: str) -> Bool[np.ndarray, " n"]:
        placed = {key: getattr(self, key) for key in PLACES}
        if check_drawn(self.parameters | placed, num_clients, name):
            distribution(self.law, name)
            self.scaled(num_clients, name)
            return np.ones(num_clients, bool)
        return _check_scipy(self.model_dump_json(), num_clients, name)

    def closed_form(self, num_clients: int) -> ClosedForm:
        try:
            family = distribution(self.law, "law")
        except LocatedError:
            return super().closed_form(num_clients)
        shapes = {
            name: known_values(value, num_clients, name)
            for name, value in self.parameters.items()
        }
        law = self.scaled(num_clients)
        loc, scale, shift = (
            known_values(getattr(law, at), num_clients, at) for at in PLACES
        )
        return ClosedForm(num_clients, family, shapes, loc, scale, shift)

    def mean_seconds(self, num_clients: int) -> Float[np.ndarray, " _"]:
        form = self.closed_form(num_clients)
        family, shapes, scale = form.family, form.shapes, form.scale
        assert family is not None
        if not is_discrete(family):
            found = family.mean(**shapes, loc=form.loc + form.shift, scale=scale)
        else:
            usual.check_short(family, *shapes.values())
            found = form.shift + scale * family.mean(**shapes, loc=form.loc)
        return np.atleast_1d(np.asarray(found, np.float64))


Parameter = Annotated[
    int | float | Expression | tuple[int | float, ...] | Scipy,
    Field(union_mode="left_to_right", description=f"{QUANTITY}, or a law"),
    Rule(f"{QUANTITY}, or a law", '2, "1/(2*M)", [1, 2, 3] or {law: gamma, a: 2}'),
]
"""A quantity, or a law by which every client draws its own, once."""


Scipy.model_rebuild()


def own_names() -> set[str]:
    """Returns the names of the laws that are not SciPy's."""
    return {tag(part) for part in parts("laws")} - {OPEN}


def distribution(law: str, name: str) -> Family:
    """Returns SciPy's distribution of that name, or the faster form of a common one.

    Raises:
        LocatedError: there is none; naming the nearest.
    """
    return USUAL[law] if law in USUAL else family(law, name)


def family(law: str, name: str) -> Family:
    """Returns SciPy's own distribution of that name.

    Raises:
        LocatedError: there is none; naming the nearest.
    """
    import scipy.stats  # 0.7 s: only where a law needs it

    kinds = scipy.stats.rv_continuous | scipy.stats.rv_discrete
    found = getattr(scipy.stats, law, None)
    if found is not None and isinstance(found, kinds):
        return found
    names = [n for n in dir(scipy.stats) if isinstance(getattr(scipy.stats, n), kinds)]
    near = nearest(law, [*names, *own_names()])
    raise LocatedError(
        f"{name}.law must be {', '.join(sorted(own_names()))} or a distribution of "
        f"scipy.stats, got {shown(law)}; "
        + (
            f"did you mean {near!r}?"
            if near
            else f"write for example expon or gamma; yours is known after {IMPORTED}"
        ),
        keys(f"{name}.law"),
    )


@lru_cache(maxsize=256)
def _check_scipy(text: str, num_clients: int, name: str) -> np.ndarray:
    law = Scipy.model_validate_json(text)
    known = distribution(law.law, name)
    names = [n for n in (known.shapes or "").split(", ") if n]
    check_names(law, names, name)
    law = law.scaled(num_clients, name)
    quantities = {n: law.parameters[n] for n in names}
    quantities |= {"loc": law.loc, "scale": law.scale, "shift": law.shift}
    columns = {
        n: distinct_values(quantity, num_clients, f"{name}.{n}")
        for n, quantity in quantities.items()
    }
    most = max(map(len, columns.values()))
    rows = list(zip(*(_all(values, most) for values in columns.values()), strict=True))
    moves: dict[tuple[Number, ...], bool] = {}
    # Clients who share their parameters are checked once, as the first of them.
    for client, row in enumerate(rows):
        if row not in moves:
            own = dict(zip(columns, row, strict=True))
            moves[row] = _check_row(known, own, name, f"for client {client + 1}")
    return for_each([moves[row] for row in rows], num_clients)


def is_discrete(known: Family) -> bool:
    """Returns whether the result of `distribution` has integers alone as values."""
    if isinstance(known, Usual):
        return known.discrete
    import scipy.stats

    return isinstance(known, scipy.stats.rv_discrete)


def check_names(law: Scipy, names: list[str], name: str) -> None:
    """Refuses shape parameters that a distribution does not have, or lacks.

    Raises:
        LocatedError: naming the parameter.
    """
    for given in law.parameters:
        if given not in names:
            shapes = ", ".join(names) or "no shape parameters"
            near = nearest(given, [*names, "loc", "scale", "shift"])
            near = f"did you mean {near!r}?" if near else suggestion("", names)
            remedy = near if names else "remove it"
            if given in ("rate", "lambda", "lam"):
                other = "law: expon with " if law.law == "poisson" else ""
                remedy = f"write {other}scale: 1/rate"
            elif given in WRITTEN.get(law.law, ("", ""))[1]:
                remedy = f"write {WRITTEN[law.law][0]}"
            elif given == "shape" and names:
                remedy = f"write {names[0]}"
            raise LocatedError(
                f"{name}.{given} is not a parameter of the law {law.law!r}, which has "
                f"{shapes} besides loc, scale and shift; {remedy}",
                keys(f"{name}.{given}"),
            )
    for needed in names:
        if needed not in law.parameters:
            raise LocatedError(
                f"{name}.{needed} is missing; the law {law.law!r} needs "
                f"{', '.join(names)}, as in scipy.stats.{law.law}; add it"
                + (" or, for intervals, law: expon" if law.law == "poisson" else ""),
                keys(f"{name}.{needed}"),
            )


def _check_row(known: Family, values: dict[str, Number], name: str, who: str) -> bool:
    """Checks a law for one client; returns whether it can take time."""
    law = known.name
    *shapes, loc, scale, shift = values.values()
    floats = [float(shape) for shape in shapes]
    if scale <= 0:
        raise LocatedError(
            f"{name}.scale must be > 0, got {float(scale):g} {who}; change it",
            keys(f"{name}.scale"),
        )
    place = abs(float(loc)) + abs(float(shift))
    if max(place, scale) > LONGEST_S:
        raise LocatedError(
            f"{name} must have loc, scale and shift of at most {LONGEST_S:g} s, the "
            f"largest time of a clock, got {float(max(place, scale)):g} {who}; use "
            "larger units of time",
            keys(name),
        )
    if not is_discrete(known) and scale < np.spacing(place):
        raise LocatedError(
            f"{name}.scale must be larger than the clock's resolution near {place:g} "
            f"s, {np.spacing(place):.2g} s, got {float(scale):g} {who}, which would "
            "be lost; take law: constant, or a larger scale",
            keys(f"{name}.scale"),
        )
    low, high = (float(end) for end in known.support(*floats))
    if np.isnan(low) or np.isnan(high):
        given = ", ".join(f"{n} = {v:g}" for n, v in zip(values, floats, strict=False))
        raise LocatedError(
            f"{name} must be a law that exists, but {law!r} does not for {given} "
            f"{who}; see scipy.stats.{law} for its parameters' ranges",
            keys(name),
        )
    steps = is_discrete(known)
    # In fractions, where 0.3 - 0.1 - 0.2 is zero.
    standing: Number = low if np.isinf(low) else type(loc)(low)
    least = shift + (scale * (loc + standing) if steps else loc + scale * standing)
    if least < 0:
        raise LocatedError(
            f"{name} must be a law of durations >= 0, got {law!r} that reaches down "
            f"to {float(least):g} s {who}; shift it, or put it in law: truncated "
            f"or law: clipped (max(0, X)), or take lognorm or gamma",
            keys(name),
        )
    beyond = low + usual.REACH
    far = steps and high > beyond
    if far and usual.adds_up(known) and known.sf(beyond, *floats) > RARE:
        raise LocatedError(
            f"{name} must be a law whose draws lie within {usual.REACH:,} steps, got "
            f"{law!r} {who}, which draws beyond with a probability of "
            f"{known.sf(beyond, *floats):.2g}; {usual.remedy(known)}",
            keys(name),
        )
    return bool(least > 0 or known.sf(low, *floats) > 0)


def _all(values: list[Number], number: int) -> list[Number]:
    return values * number if len(values) == 1 else values


class ScipySampler(DurationSampler):
    """Any distribution of `scipy.stats`, shifted and scaled."""

    def __init__(self, config: Scipy, population: Population) -> None:
        config = config.scaled(population.size)
        self._name, self._first = config.law, population.first
        self._distribution = distribution(config.law, "law")
        self._discrete = is_discrete(self._distribution)
        names = [n for n in (self._distribution.shapes or "").split(", ") if n]

        def column(name: str, quantity: Parameter) -> ClientValues:
            return ClientValues.given(quantity, population, f"{config.law}.{name}")

        self._shapes = [column(name, config.parameters[name]) for name in names]
        self._loc = column("loc", config.loc)
        self._scale = column("scale", config.scale)
        self._shift = column("shift", config.shift)
        self._least = self._shift.plus(self._scale, self._loc)

    def lattice(self) -> set[Fraction] | None:
        if not self._discrete:
            return None
        scale, loc = self._scale.rational, self._loc.rational
        shift = self._shift.rational
        if scale is None or loc is None or shift is None:
            return None
        return scale | {s * at for s in scale for at in loc} | shift

    def draw(self, draws: Draws, tick: Fraction | None) -> Durations:
        who = draws.who
        standard = self.quantile(draws.uniform, who)
        values = self.place(standard, who)
        longest = np.inf if tick is None else min(LONGEST_S, float(2**62 * tick))
        wrong = ~(np.isfinite(values) & (values >= 0) & (values <= longest))
        if wrong.any():
            at = int(wrong.argmax())
            client = who if isinstance(who, int) else int(who[at])
            raise ScenarioError(
                f"law {self._name!r} must give finite durations >= 0 that a clock "
                f"counts, gave {values[at]:.6g} s to client "
                f"{self._first + client + 1}; shift it, or choose a law of positive "
                f"values and larger units of time"
            )
        if tick is None:
            return values
        scale = self._scale.ticks(who, tick)
        return self._least.ticks(who, tick) + scale * standard.astype(np.int64)

    def quantile(self, uniform: Float[np.ndarray, " n"], who: Who) -> np.ndarray:
        """Returns the standard law's quantiles, neither scaled nor shifted."""
        shapes = [column.of(who) for column in self._shapes]
        law = self._distribution
        if not isinstance(law, Usual) and usual.is_searched(law):
            return usual.ppf(law, uniform, *shapes)
        try:
            return law.ppf(uniform, *shapes)
        except (ArithmeticError, RuntimeError, ValueError) as error:
            raise ScenarioError(
                f"law {self._name!r} must have quantiles that SciPy finds, but "
                f"{str(error).splitlines()[0]}; change its shape parameters"
            ) from None

    def probability(self, seconds: float, who: Who, *, below: bool) -> usual.Values:
        """Returns the chance of at most (`below`: less than) this many seconds."""
        shapes = [column.of(who) for column in self._shapes]
        loc, scale, shift = (c.of(who) for c in (self._loc, self._scale, self._shift))
        if not self._discrete:
            at = (seconds - shift - loc) / scale
        else:
            at = (seconds - shift) / scale - loc
            at = np.ceil(at - 1e-9) - 1 if below else np.floor(at + 1e-9)
        return usual.cdf(self._distribution, at, *shapes)

    def place(self, standard: np.ndarray, who: Who) -> np.ndarray:
        """Scales and shifts values of the standard law, to seconds."""
        loc, scale, shift = (c.of(who) for c in (self._loc, self._scale, self._shift))
        if self._discrete:
            return shift + scale * (loc + standard)
        return shift + loc + scale * standard


class Constant(Law):
    """Always the same duration.

    Args of the scenario: `value` in virtual seconds, >= 0.
    """

    law: Literal["constant"] = "constant"
    value: Parameter
    """Virtual seconds."""

    @property
    def has_quantiles(self) -> bool:
        return True

    def make(self, population: Population) -> "ConstantSampler":
        return ConstantSampler(self, population)

    def check(self, num_clients: int, name: str) -> Bool[np.ndarray, " n"]:
        if check_drawn({"value": self.value}, num_clients, name):
            return np.ones(num_clients, bool)
        return positive(self.value, num_clients, f"{name}.value")

    @property
    def varies(self) -> bool:
        return False

    def closed_form(self, num_clients: int) -> ClosedForm:
        value = self.mean_seconds(num_clients)
        return ClosedForm(num_clients, None, {}, value, np.ones(1), np.zeros(1))

    def mean_seconds(self, num_clients: int) -> Float[np.ndarray, " _"]:
        return known_values(self.value, num_clients, "value")


class ConstantSampler(DurationSampler):
    """Always the same duration of a client."""

    def __init__(self, config: Constant, population: Population) -> None:
        self._value = ClientValues.given(config.value, population, "constant.value")

    def lattice(self) -> set[Fraction] | None:
        return self._value.rational

    def draw(self, draws: Draws, tick: Fraction | None) -> Durations:
        if tick is None:
            value = self._value.of(draws.who)
            return np.zeros(draws.uniform.size) + value
        value = self._value.ticks(draws.who, tick)
        return np.zeros(draws.uniform.size, np.int64) + value
