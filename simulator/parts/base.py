"""Types and checks that the parts of a scenario share."""

from enum import Enum
from typing import Annotated, Any, ClassVar, NamedTuple, get_args

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    model_validator,
)

from .errors import ScenarioError
from .expressions import check_syntax
from .named import NamedPart


class Rule(NamedTuple):
    """Rule of a value and an example of it, for messages; put into `Annotated`."""

    rule: str
    example: str


class Reads(Enum):
    """Marks an entry whose value names what a run reads; put into `Annotated`."""

    FILE = "file"
    RECORDING = "recording"
    """The folder of a recorded timeline."""
    FUNCTION = "function"
    """A function of a module of the user's own; see `parts/functions.py`."""


FilePath = Annotated[str, Field(json_schema_extra={"format": "file-path"}), Reads.FILE]
"""A file that a run reads: in the working folder, or in the data folder. What it holds
is a part of what the run is identified by."""
RecordingPath = Annotated[
    str,
    Field(min_length=1, json_schema_extra={"format": "directory-path"}),
    Reads.RECORDING,
]
"""A folder that `stalesim timeline` wrote, and whose content counts in the same way."""


MOST_CLIENTS = 1_000_000
"""Clients or parties of a world: each has durations, jobs and rows of its own."""
NumClients = Annotated[int, Field(ge=1, le=MOST_CLIENTS)]


class LocatedError(ScenarioError):
    """A mistake in a known entry of a scenario.

    Args:
        message: One line that begins with the dotted key of the entry.
        keys: Keys of the entry, from the part of the scenario that was validated; by
            default those that the message begins with.
    """

    def __init__(self, message: str, keys: tuple[str | int, ...] | None = None) -> None:
        super().__init__(message)
        written = message.partition(" ")[0].split(".")
        found = tuple(int(key) if key.isdecimal() else key for key in written)
        self.keys = found if keys is None else keys


def refuse_booleans(key: str, value: Any) -> None:
    """Refuses true and false, alone or in a list, where numbers must stand.

    Raises:
        LocatedError: there is one, at the key.
    """
    items = value if isinstance(value, list | tuple) else (value,)
    if any(isinstance(item, bool) for item in items):
        got = str(value).lower()
        raise LocatedError(
            f"{key} must be a number, got {got}; write 1 or 0 if that is meant", (key,)
        )


Expression = Annotated[str, AfterValidator(check_syntax)]
"""Arithmetic in `m` and `M`."""

QUANTITY = "a number, an expression in m and M, or a list with one number per client"
Quantity = Annotated[
    int | float | Expression | tuple[int | float, ...],
    Field(union_mode="left_to_right", description=QUANTITY),
    Rule(QUANTITY, '2, "1/(2*M)" or [1, 2, 3]'),
]
"""A number, an expression in `m` and `M`, or one number per client."""


class Config(BaseModel):
    """A part of a scenario: immutable, and refusing keys that it does not know.

    Its schema is made when it is first used, not with the class: by then all parts of
    plug-ins are known.
    """

    model_config: ClassVar[ConfigDict] = ConfigDict(
        frozen=True,
        extra="forbid",
        allow_inf_nan=False,
        validate_default=True,
        defer_build=True,
    )

    @model_validator(mode="before")
    @classmethod
    def _no_booleans(cls, data: Any) -> Any:
        """Refuses true and false where a number must stand; Python has them as 1, 0."""
        for key, value in data.items() if isinstance(data, dict) else ():
            field = cls.model_fields.get(key)
            accepted = _plain_types(field.annotation) if field else {bool}
            if accepted & {int, float} and not accepted & {bool, Any}:
                refuse_booleans(key, value)
        return data

    def named_parts(self) -> tuple[NamedPart, ...]:
        """Returns the records that the entries name, such as metrics."""
        return ()

    def replaced(self, **changes: Any) -> Any:
        """Returns a validated copy with some fields replaced."""
        return type(self).model_validate({**self.model_dump(), **changes})


def _plain_types(annotation: Any) -> set[Any]:
    parts = get_args(annotation)
    return set().union(*map(_plain_types, parts)) if parts else {annotation}
