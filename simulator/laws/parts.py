"""Laws of durations: what a client's compute or idle time may be.

A law's parameters may be a number, a list with one entry per client, an arithmetic
expression in the 1-based client index `m` and the client count `M`, or a law itself:
then every client has a parameter of its own, drawn once.
"""

from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

from pydantic import ConfigDict, Field, model_serializer, model_validator

from simulator.config.base import (
    QUANTITY,
    Expression,
    FilePath,
    Quantity,
    Says,
    refuse_booleans,
)
from simulator.config.catalogue import AnyPart, parts
from simulator.config.parts import OPEN, Part, tag

if TYPE_CHECKING:
    Law = Any
else:
    Law = Annotated[Any, AnyPart("laws")]
"""Any law: ours by name, SciPy's by SciPy's name."""


class Constant(Part):
    """Always the same duration.

    Args of the scenario: `value` in virtual seconds, >= 0.
    """

    law: Literal["constant"] = "constant"
    made_by: ClassVar[str] = "simulator.laws.drawing:constant"
    value: "Parameter"


def _flat_schema(schema: dict[str, Any]) -> None:
    """Tells editors that shape parameters stand beside `law`, and are numbers."""
    shapes = schema["properties"].pop("parameters", None)
    if shapes is not None:
        schema["additionalProperties"] = shapes["additionalProperties"]
        schema["properties"]["law"]["not"] = {"enum": sorted(own_names())}


class Scipy(Part):
    """Any distribution of `scipy.stats`, by its SciPy name and parameters.

    A continuous law is `shift + loc + scale * X`, as SciPy has it; a discrete law, for
    which SciPy knows no scale, is `shift + scale * (loc + X)`. All in virtual seconds.
    """

    model_config = ConfigDict(json_schema_extra=_flat_schema)

    law: Annotated[str, Says("the name of a law", "constant or expon")]
    made_by: ClassVar[str] = "simulator.laws.drawing:scipy_law"
    loc: "Parameter" = 0
    scale: "Parameter" = 1
    shift: "Parameter" = 0
    parameters: dict[str, "Parameter"] = Field(default_factory=dict)
    """Shape parameters by SciPy's names; a scenario file writes them beside `law`."""

    @model_validator(mode="before")
    @classmethod
    def _gather_parameters(cls, data: Any) -> Any:
        if not isinstance(data, dict) or "parameters" in data:
            return data
        own = {"law", "loc", "scale", "shift"}
        for key, value in data.items():
            if key != "law":
                refuse_booleans(key, value)
        shapes = {key: value for key, value in data.items() if key not in own}
        return {k: v for k, v in data.items() if k in own} | {"parameters": shapes}

    @model_serializer
    def _flat(self) -> dict[str, Any]:
        return {
            "law": self.law,
            **self.parameters,
            "loc": self.loc,
            "scale": self.scale,
            "shift": self.shift,
        }


Parameter = Annotated[
    int | float | Expression | tuple[int | float, ...] | Scipy,
    Field(union_mode="left_to_right", description=f"{QUANTITY}, or a law"),
    Says(f"{QUANTITY}, or a law", '2, "1/(2*M)", [1, 2, 3] or {law: gamma, a: 2}'),
]
"""A quantity, or a law by which every client draws its own, once."""


class Empirical(Part):
    """Durations that were measured: a column of a CSV or Parquet file.

    `resample` draws them independently with equal chances; `replay` takes them in the
    file's order, and begins again at its end.
    """

    law: Literal["empirical"] = "empirical"
    made_by: ClassVar[str] = "simulator.laws.compound:empirical"
    path: FilePath
    """Of the file: in the working folder or the data folder."""
    column: str
    """Of durations, virtual seconds."""
    client: str | None = None
    """Column of client numbers from 1: each client has the rows of its number."""
    order: Literal["resample", "replay"] = "resample"


class Mixture(Part):
    """Each duration by one of several laws, chosen independently."""

    law: Literal["mixture"] = "mixture"
    made_by: ClassVar[str] = "simulator.laws.compound:mixture"
    of: Annotated[tuple[Law, ...], Field(min_length=1)]
    weights: tuple[Annotated[float, Field(ge=0)], ...]
    """Chances of the laws, up to a common factor."""

    @model_validator(mode="after")
    def _weighed(self) -> "Mixture":
        if len(self.weights) != len(self.of):
            raise ValueError(
                f"must have as many weights as laws ({len(self.of)}), got "
                f"{len(self.weights)}; add or remove some"
            )
        if not sum(self.weights) > 0:
            raise ValueError("must have a positive weight; raise one")
        return self


class Markov(Part):
    """Regime switching: a law for each regime of a client, changed by a Markov chain.

    Before each duration the client changes its regime by a row of `transition`; the
    first regime has the chain's stationary law.
    """

    law: Literal["markov"] = "markov"
    made_by: ClassVar[str] = "simulator.laws.compound:markov"
    of: Annotated[tuple[Law, ...], Field(min_length=1)]
    transition: tuple[tuple[Annotated[float, Field(ge=0, le=1)], ...], ...]
    """A row per regime: the chances of the regime that comes next, adding up to 1."""

    @model_validator(mode="after")
    def _stochastic(self) -> "Markov":
        n = len(self.of)
        if [len(row) for row in self.transition] != [n] * n:
            raise ValueError(
                f"must have a transition row of {n} chances for each of its {n} laws; "
                f"give {n} rows"
            )
        for number, row in enumerate(self.transition):
            if abs(sum(row) - 1) > 1e-9:
                raise ValueError(
                    f"must have transition rows that add up to 1, got {sum(row):g} in "
                    f"row {number + 1}; change it"
                )
        return self


class Truncated(Part):
    """A distribution of `scipy.stats` given that it lies in an interval."""

    law: Literal["truncated"] = "truncated"
    made_by: ClassVar[str] = "simulator.laws.compound:truncated"
    of: Scipy
    low: Annotated[float, Field(ge=0)] = 0.0
    """Least duration, virtual seconds."""
    high: Annotated[float, Field(gt=0)]
    """Longest duration, virtual seconds."""

    @model_validator(mode="after")
    def _ordered(self) -> "Truncated":
        if self.low >= self.high:
            raise ValueError(
                f"must have low below high, got {self.low:g} and {self.high:g}; "
                f"exchange them"
            )
        return self


class Scaled(Part):
    """Any law times a factor, plus a shift: `shift + scale * X`."""

    law: Literal["scaled"] = "scaled"
    made_by: ClassVar[str] = "simulator.laws.compound:scaled"
    of: Law
    scale: Quantity = 1
    shift: Quantity = 0


def own_names() -> set[str]:
    """Returns the names of the laws that are not SciPy's."""
    return {tag(part) for part in parts("laws")} - {OPEN}


for _model in (Constant, Scipy):
    _model.model_rebuild()
