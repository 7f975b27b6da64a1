"""Entries and rules of all kinds of claims, and their reading and writing."""

from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    ClassVar,
    Literal,
    Union,
    get_args,
)

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Discriminator,
    Field,
    GetCoreSchemaHandler,
    Tag,
    TypeAdapter,
    ValidationInfo,
    model_serializer,
    model_validator,
)
from pydantic.config import JsonDict
from pydantic_core import core_schema

from ...parts import metrics
from ...parts.base import Config, LocatedError, Part, Rule, function_at
from ...parts.catalogue import AnyName, AnyPart, classes
from ...parts.errors import suggestion

if TYPE_CHECKING:
    from ....analysis.claims.numbers import Frame
    from ....analysis.claims.verdict import Judged

Metric = Annotated[str, AnyName("metrics")]
"""Name of a metric."""
Within = Annotated[float, Field(ge=0)]
"""Tolerance."""


def known_to(info: ValidationInfo, name: str) -> metrics.Metric:
    """Returns a metric: the registered one, or the study's description of it.

    Raises:
        UserError: There is neither.
    """
    return metrics.find(name) or _of_study(info).get(name) or metrics.metric(name)


def _of_study(info: ValidationInfo) -> dict[str, metrics.Metric]:
    return (info.context or {}).get("metrics", {})


def _known_quantity(of: str, info: ValidationInfo) -> str:
    """Refuses what a run does not come to, without a list of all that it does."""
    known = (*metrics.names(), *metrics.QUANTITIES, *_of_study(info))
    if of not in known:
        raise LocatedError(
            f"of must be a metric or another result of runs, got {of!r}; "
            f"{suggestion(of, known)}",
            (),
        )
    return of


def _enumerated(schema: JsonDict) -> None:
    schema["enum"] = [*metrics.names(), *metrics.QUANTITIES]


Of = Annotated[
    str, AfterValidator(_known_quantity), Field(json_schema_extra=_enumerated)
]
"""Name of a metric, or of another quantity that a run has come to at its end."""


Origin = Literal["paper", "specification", "own", "identity"]
ORIGINS: tuple[str, ...] = get_args(Origin)
"""Sources of claims."""
FINAL_VALUES = "stalesim.analysis.claims.numbers:final_values"
"""Function that measures the final values of a claim's entry `metric`."""


def _listing(values: object) -> object:
    """Returns the values that a claim is made for as a list, also a single one."""
    if not isinstance(values, dict):
        return values
    return {k: v if isinstance(v, list | tuple) else [v] for k, v in values.items()}


At = Annotated[
    dict[str, Annotated[tuple[Any, ...], Field(min_length=1)]],
    BeforeValidator(_listing, json_schema_input_type=dict[str, Any]),
    Rule("keys of the sweep, each with a value or a list", "{algorithm.epsilon: 0.5}"),
]
"""Swept keys, and for each the values that a claim is made for."""


def is_at(parameters: Mapping[str, object], at: Mapping[str, Sequence[object]]) -> bool:
    """Returns whether a claim for some swept values is about a run.

    Args:
        parameters: Swept keys of the run and their values.
        at: Entry of the claim. A key that the run is not swept over leaves it in.
    """
    return all(
        parameters[key] in values for key, values in at.items() if key in parameters
    )


class Claim(Part):
    """One claim of a source on variants of a study."""

    named: ClassVar[str]
    """Name of the kind: the entry that names the variant, or the variants."""
    lacking: ClassVar[str] = ""
    """Remedy for a claim without one of the entries that the kind needs."""
    words: ClassVar[str] = ", "
    """Words between the groups of a claim."""
    along_sweep: ClassVar[bool] = False
    """Whether one claim is about a whole sweep, and not about each of its points."""
    compares: ClassVar[bool] = True
    """Whether replicates are compared with each other, or measured one by one."""

    at: At = Field(default_factory=dict)
    """Swept values that the claim is made for; all values of keys that are left out."""
    origin: Origin = "paper"
    """Source of the claim: the paper; a specification, which reads or calibrates the
    paper; the scenario itself (`own`, the default where the scenario has no `source`);
    or algebra, as two ways to compute the same."""
    says: str
    """The claim as text, for pages and tables."""

    @property
    def kind(self) -> str:
        """Name of the kind."""
        return self.named

    @property
    def swept_key(self) -> str | None:
        """Key of the sweep that the claim is about, its entry `over`, if it has one."""
        return getattr(self, "over", None)

    def variants(self) -> dict[str, tuple[str, ...]]:
        """Returns the variants that the claim names, by entry."""
        found = getattr(self, self.named)
        return {self.named: (found,) if isinstance(found, str) else tuple(found)}

    @property
    def counted(self) -> str | None:
        """Count in which runs are compared; None if that by which they end."""
        return None

    def targets(self) -> Iterator[tuple[tuple[str, ...], str, float]]:
        """Yields the target values of metrics: their places, metrics, values."""
        yield from ()

    def quantities(self) -> dict[str, "Frame"]:
        """Returns the judge's quantities of a study, each by its name.

        Each is a function from the study to a frame with a row per run, in columns
        `low` and `high`; by default the final values of the entry `metric`.
        """
        return function_at(FINAL_VALUES, "Claim.quantities")(self)

    @abstractmethod
    def judge(self, *args: Any, **options: Any) -> "Judged":
        """Weighs the evidence for and against the claim.

        Args:
            *args: The measured quantities, an `analysis.claims.Measured`, then the
                names of the claim's groups: its variants, or these at one point of a
                sweep.
            **options: None.

        Returns:
            An `analysis.claims.Judged`.

        Raises:
            StudyError: The measured quantities are not enough for the claim.
        """

    @model_validator(mode="before")
    @classmethod
    def _of_one_kind(cls, data: object) -> object:
        """Takes the entries of the kind, and refuses those of other kinds."""
        if not isinstance(data, dict):
            return data
        own, known = _entries(cls), _known()
        # Null says nothing, unless it is an entry's default.
        nothing = known - {key for key, required in own.items() if not required}
        given = {k: v for k, v in data.items() if v is not None or k not in nothing}
        if own.get("than") and "than" not in given:
            raise LocatedError("than is missing; add the variant to compare with")
        for key in [key for key in given if key in known and key not in own]:
            having = [kind.named for kind in _kinds() if key in _entries(kind)]
            raise LocatedError(
                f"{key} belongs to {_listed(having)}, not to {cls.named}; remove it",
                (key,),
            )
        needed = [key for key, required in own.items() if required and key != "says"]
        if cls.lacking and any(key not in given for key in needed):
            raise ValueError(f"must say {cls.lacking}")
        return given

    @model_serializer(mode="wrap")
    def _with_its_own_entries_first(
        self, dump: Callable[["Claim"], dict[str, object]]
    ) -> dict[str, object]:
        own = {key.removesuffix("_"): value for key, value in dump(self).items()}
        first = sorted(own, key=lambda key: (key != self.named, key in COMMON))
        return {key: own[key] for key in first}


COMMON = tuple(Claim.model_fields)
"""Entries of claims of all kinds."""


class OfPair(Claim):
    """A claim that compares a variant with another."""

    than: str
    """Variant that it is compared with."""

    def variants(self) -> dict[str, tuple[str, ...]]:
        return {**super().variants(), "than": (self.than,)}


class AnyClaim(AnyPart):
    """Annotates claims of all kinds, which their entries identify.

    The union is made when a scenario is first read, as `AnyPart` does it.
    """

    def __get_pydantic_core_schema__(
        self, source: object, handler: GetCoreSchemaHandler
    ) -> core_schema.CoreSchema:
        # Tags are no keys of any claim, so that messages leave them out.
        tagged = (Annotated[kind, Tag(f"<{kind.named}>")] for kind in _kinds())
        apart = Discriminator(lambda value: f"<{_kind_of(value)}>")
        schema = handler.generate_schema(Annotated[Union[*tagged], apart])
        return core_schema.no_info_before_validator_function(_with_one_kind, schema)


@cache
def _adapter() -> TypeAdapter[Claim]:
    return TypeAdapter(Annotated[Claim, AnyClaim("claims")])


def read(
    claim: Mapping[str, object], metrics: Mapping[str, metrics.Metric] | None = None
) -> Claim:
    """Returns a claim as a scenario or a manifest has it.

    Raises:
        pydantic.ValidationError: It makes no sense.
    """
    return _adapter().validate_python(dict(claim), context={"metrics": metrics or {}})


def _kinds() -> tuple[type[Claim], ...]:
    return classes("claims", Claim)


@cache
def _entries(kind: type[Config]) -> dict[str, bool]:
    """Returns the entries of a kind, and of each whether it is required."""
    fields = kind.model_fields.items()
    return {field.alias or name: field.is_required() for name, field in fields}


def _known() -> set[str]:
    return {key for kind in _kinds() for key in _entries(kind)}


def _kind_of(value: object) -> str:
    """Returns the name of a claim's kind; of what is no claim, that of any."""
    if isinstance(value, Claim):
        return value.named
    names = [kind.named for kind in _kinds()]
    given = value if isinstance(value, Mapping) else {}
    return next((name for name in names if given.get(name) is not None), names[0])


def _with_one_kind(data: object) -> object:
    """Refuses a mapping that is no claim of exactly one kind."""
    if not isinstance(data, dict):
        return data
    names = [kind.named for kind in _kinds()]
    given = sum(data.get(name) is not None for name in names)
    if given == 1:
        return data
    for key in data if not given else ():
        if key not in _known():  # perhaps the kind, misspelt
            raise LocatedError(
                f"{key} is not a known key; {suggestion(key, _known())}", (key,)
            )
    raise ValueError(f"must have exactly one of {_listed(names)}; keep one, or add one")


def _listed(words: Sequence[str]) -> str:
    return " and ".join((", ".join(words[:-1]), words[-1]) if words[1:] else words)
