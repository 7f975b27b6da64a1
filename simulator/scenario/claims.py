"""What a source says, as data: typed claims to check a finished study against."""

from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any, ClassVar, Literal, get_args

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    model_serializer,
    model_validator,
)

from simulator.config.base import Config, PlacedError, Says
from simulator.config.text import suggestion
from simulator.scenario.metrics import HIGHER_IS_BETTER, METRICS, QUANTITIES, Metric

OF_PAIRS = ("faster", "fewer", "higher", "no_worse", "close", "ratio")
"""Kinds that compare a variant with another."""
KINDS = (*OF_PAIRS, "value", "slope", "monotone", "steady")
"""Of a claim; each names the variant that it is about."""
BELONGS = {
    "than": OF_PAIRS,
    "to": ("faster",),
    "counted_in": ("faster",),
    "by_at_least": ("faster", "fewer"),
    "metric": (
        *("higher", "no_worse", "close", "value", "slope", "monotone", "steady"),
    ),
    "of": ("ratio",),
    "over": ("monotone", "steady"),
    "direction": ("monotone",),
    "is_": ("ratio", "value", "slope"),
    "within": ("no_worse", "close", "ratio", "value", "slope", "steady"),
}
"""Entries of a claim, and the kinds that have them."""
NEEDS = {
    "faster": (("to",), "what faster leads to; add to: {test_accuracy: 0.9}"),
    "no_worse": (("within",), "how much worse at most; add within: 0.01"),
    "close": (("within",), "how close; add within: 0.01"),
    "ratio": (("of", "is_", "within"), "of what; add of: virtual_s, is: 2, within: 1"),
    "value": (("is_", "within"), "which value; add is: 0.9 and within: 0.01"),
    "slope": (("is_", "within"), "which slope; add is: -1 and within: 0.25"),
    "monotone": (("over",), "over what; add over: a key of the sweep"),
    "steady": (("over", "within"), "over what, how steady; add over: KEY, within: 1"),
}
"""Entries that a kind cannot do without, and how their lack is told."""


Origin = Literal["paper", "specification", "own", "identity"]
ORIGINS: tuple[str, ...] = get_args(Origin)
"""Who claims something."""
OF = (*METRICS, *QUANTITIES)


def _known(of: str) -> str:
    """Refuses what a run does not come to, without a list of all that it does."""
    if of not in OF:
        raise PlacedError(
            f"of must be a metric, or what else a run comes to, got {of!r}; "
            f"{suggestion(of, OF)}",
            (),
        )
    return of


Of = Annotated[str, AfterValidator(_known), Field(json_schema_extra={"enum": list(OF)})]
"""A metric or a quantity."""


def _listing(values: Any) -> Any:
    """Returns the values that a claim is made for as a list, also a single one."""
    if not isinstance(values, dict):
        return values
    return {k: v if isinstance(v, list | tuple) else [v] for k, v in values.items()}


At = Annotated[
    dict[str, Annotated[tuple[Any, ...], Field(min_length=1)]],
    BeforeValidator(_listing),
    Says("keys of the sweep, each with a value or a list", "{algorithm.epsilon: 0.5}"),
]
"""Swept keys, and of each the values that a claim is made for."""


def is_at(parameters: Mapping[str, Any], at: Mapping[str, Sequence[Any]]) -> bool:
    """Says whether a claim that is made for some swept values is about a run.

    Args:
        parameters: of the run, by swept key.
        at: of the claim. A key that the run is not swept over leaves it in.
    """
    return all(
        parameters[key] in values for key, values in at.items() if key in parameters
    )


class Claim(Config):
    """One thing that a source says, of exactly one of these kinds.

    - `faster`: reaches `to` in less virtual time than `than`, or in less of what else
      is counted, `by_at_least` so many times.
    - `fewer`: stops at its target after fewer commits than `than`.
    - `higher`: ends with a larger final value of `metric` than `than`.
    - `no_worse`: final values of `metric` are worse than those of `than` by less than
      `within`; they may be better by any amount.
    - `close`: final values of `metric` differ from those of `than` by at most `within`.
    - `ratio`: `of` a run, over that of `than`, is `is` to `within`.
    - `value`: the final value of `metric` is `is` to `within`.
    - `slope`: `metric` falls with the commits like a power of them, whose exponent is
      at most `is`, to `within`.
    - `monotone`: the final value of `metric` grows with the swept `over`, or falls.
    - `steady`: it does not change with the swept `over` by more than `within`.
    """

    KINDS: ClassVar[tuple[str, ...]] = KINDS

    faster: str | None = None
    fewer: str | None = None
    higher: str | None = None
    no_worse: str | None = None
    close: str | None = None
    ratio: str | None = None
    value: str | None = None
    slope: Annotated[
        str | tuple[str, ...] | None,
        Says("a variant, or a list of variants with different horizons", "async"),
    ] = None
    """One variant: of the metric over the last decade of its commits. Several: of their
    means over all commits, against how many those are."""
    monotone: str | None = None
    steady: str | None = None
    than: str | None = None
    to: dict[str, float] | None = None
    counted_in: Literal[
        "time",
        "commits",
        "epochs",
        "rounds",
        "messages",
        "bytes",
        "epsilon",
        "computation_s",
        "communication_s",
    ] = "time"
    """What is compared at the target."""
    by_at_least: float = 1.0
    """Smallest ratio of the larger number to the smaller one."""
    metric: Metric = "test_accuracy"
    of: Of | None = None
    """A metric's final value, or what else a run has come to at its end."""
    over: str | None = None
    """A key of the sweep."""
    direction: Literal["rising", "falling"] = "rising"
    is_: Annotated[float | None, Field(alias="is", strict=True)] = None
    """A value, a ratio > 0, or the exponent of a bound, which a steeper fall obeys."""
    within: Annotated[float, Field(ge=0)] | None = None
    at: At = Field(default_factory=dict)
    """For which swept values it is made; for all that are not restricted."""
    origin: Origin = "paper"
    """Who claims it: the paper; a specification, which reads or calibrates the paper;
    the scenario itself; or algebra, of two ways to compute the same."""
    says: str

    @model_validator(mode="before")
    @classmethod
    def _without_old_words(cls, data: Any) -> Any:
        """Refuses a word that is no longer known; older manifests have it as null."""
        if not isinstance(data, dict) or "rises" not in data:
            return data
        if data["rises"] is not None:
            raise PlacedError(
                "rises is called monotone; write monotone in its place", ("rises",)
            )
        return {key: value for key, value in data.items() if key != "rises"}

    @model_serializer(mode="wrap")
    def _by_alias(self, dump: Callable[[Any], dict[str, Any]]) -> dict[str, Any]:
        return {key.removesuffix("_"): value for key, value in dump(self).items()}

    @property
    def kind(self) -> str:
        """Which of the kinds it is."""
        return next(kind for kind in KINDS if getattr(self, kind) is not None)

    @model_validator(mode="after")
    def _one_kind(self) -> "Claim":
        if sum(getattr(self, kind) is not None for kind in KINDS) != 1:
            raise ValueError(
                f"must have exactly one of {_listed(KINDS)}; keep one, or add one"
            )
        kind = self.kind
        if self.than is None and kind in BELONGS["than"]:
            raise PlacedError("than is missing; add the variant beside it", ("than",))
        for name, kinds in BELONGS.items():
            given = getattr(self, name) != type(self).model_fields[name].default
            if given and kind not in kinds:
                key = name.removesuffix("_")
                raise PlacedError(
                    f"{key} belongs to {_listed(kinds)}, not to {kind}; remove it",
                    (key,),
                )
        names, how = NEEDS.get(kind, ((), ""))
        if any(getattr(self, name) is None for name in names):
            raise ValueError(f"must say {how}")
        if self.to is not None and len(self.to) != 1:
            raise ValueError(f"must say {NEEDS['faster'][1]}")
        if kind == "ratio" and not (self.is_ or 0) > 0:
            raise PlacedError(
                f"is must be > 0 for a ratio, got {self.is_:g}; write a larger number",
                ("is",),
            )
        return self._check_slope(self.slope) if self.slope is not None else self

    def _check_slope(self, slope: str | tuple[str, ...]) -> "Claim":
        if self.metric in HIGHER_IS_BETTER:
            raise PlacedError(
                f"metric must go to zero to have a slope, got {self.metric!r}; write "
                f"for example metric: optimality_gap",
                ("metric",),
            )
        if not isinstance(slope, str) and not 2 <= len(slope) == len({*slope}):
            raise PlacedError(
                f"slope must list two or more different variants, got "
                f"[{', '.join(slope)}]; name one without a list, or add another",
                ("slope",),
            )
        return self


def _listed(words: tuple[str, ...]) -> str:
    return " and ".join((", ".join(words[:-1]), words[-1]) if words[1:] else words)
