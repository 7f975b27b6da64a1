"""Laws of durations: what a client's compute or idle time may be.

A law's parameters may be a number, a list with one entry per client, or an arithmetic
expression in the 1-based client index `m` and the client count `M`.
"""

from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import (
    ConfigDict,
    Discriminator,
    Field,
    Tag,
    model_serializer,
    model_validator,
)

from simulator.scenario.base import Config, Quantity, Says, refuse_booleans
from simulator.scenario.entry import Entry, brought


class Constant(Config):
    """Always the same duration.

    Args of the scenario: `value` in virtual seconds, >= 0.
    """

    law: Literal["constant"] = "constant"
    value: Quantity


def _flat_schema(schema: dict[str, Any]) -> None:
    """Tells editors that shape parameters stand beside `law`, and are numbers."""
    shapes = schema["properties"].pop("parameters", None)
    if shapes is not None:
        schema["additionalProperties"] = shapes["additionalProperties"]
        schema["properties"]["law"]["not"] = {"enum": sorted(own_names())}


class Scipy(Config):
    """Any distribution of `scipy.stats`, by its SciPy name and parameters.

    A continuous law is `shift + loc + scale * X`, as SciPy has it; a discrete law, for
    which SciPy knows no scale, is `shift + scale * (loc + X)`. All in virtual seconds.
    """

    model_config = ConfigDict(json_schema_extra=_flat_schema)

    law: Annotated[str, Says("the name of a law", "constant or expon")]
    loc: Quantity = 0
    scale: Quantity = 1
    shift: Quantity = 0
    parameters: dict[str, Quantity] = Field(default_factory=dict)
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


LAWS: tuple[Entry, ...] = (
    Entry(Constant, "simulator.world.laws:constant"),
    Entry(Scipy, "simulator.world.laws:scipy_law"),
)


def _law_name(entry: Entry) -> str:
    own = entry.config is not Scipy
    return str(entry.config.model_fields["law"].default) if own else "scipy"


def own_names() -> set[str]:
    """Returns the names of the laws that are not SciPy's."""
    return {_law_name(entry) for entry in LAWS + brought("laws")} - {"scipy"}


def _union() -> Any:
    known = LAWS + brought("laws")
    names = {_law_name(entry) for entry in known}

    def name_of(value: Any) -> str:
        law = getattr(value, "law", None)
        law = value.get("law") if isinstance(value, dict) else law
        return law if isinstance(law, str) and law in names else "scipy"

    configs: Any = None
    for entry in known:
        tagged = Annotated[entry.config, Tag(_law_name(entry))]
        configs = tagged if configs is None else configs | tagged
    return Annotated[configs, Discriminator(name_of)]


if TYPE_CHECKING:
    Law = Any
else:
    Law = _union()
"""Any law: ours by name, SciPy's by SciPy's name."""
