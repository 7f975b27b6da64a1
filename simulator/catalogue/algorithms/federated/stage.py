"""A stage of a chain: its options and its computation, in one class.

In a program a stage is a tree of arrays: its numbers, and facts of the run that are
arrays. Its other attributes are static. No JAX is imported until a run needs it.
"""

from collections.abc import Callable, Iterable
from functools import cache, partial
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, TypeVar

from pydantic import Field, model_validator

from ....engine.algorithm import StepSize
from ....engine.optimizers.part import LocalOptax
from ....parts.base import Config, LocatedError, Part, tag
from ....parts.expressions import Quantity
from ....parts.lazy import Late
from ....problem.constants import Constants
from .abilities import HasNumbers

if TYPE_CHECKING:
    import equinox as eqx
    import jax
    import jax.numpy as jnp
    from jaxtyping import Array

    from ....engine.setup import RunSetup
    from ....problem.horizontal import HorizontalProblem
    from .chain import Chained
else:
    eqx, jax, jnp = Late("equinox"), Late("jax"), Late("jax.numpy")


Count = Annotated[int, Field(ge=1)]


class StagePart(Part):
    """Common base of the stages of a chain: their options and their computation.

    A stage inherits from the base of its place, below, which defines the arguments of
    its call. Its state is the last argument, and the call returns the state after the
    row; a state is any tree of arrays, by default None. Programs get the object that
    `make` returns. Abilities of few stages are in `abilities`.
    """

    place: ClassVar[str]
    """Place in the chain, a key of `PLACES`."""

    def structure(self) -> dict[str, object]:
        """Returns its options, without those that may differ within one program."""
        numbers = dict.fromkeys(numbers_of(self), "number")
        return {**self.model_dump(mode="json"), **numbers}

    def fits(self, method: "Chained") -> None:
        """Refuses other stages and options of a method that the stage does not fit.

        Raises:
            LocatedError: By `method.refusal`.
        """

    def make(self, setup: "RunSetup", constants: Constants) -> "StagePart":
        """Returns the stage as a program is called with it.

        By default that is `in_program` without facts of the run; where these matter,
        pass them to it, or return another object with the same call.
        """
        return in_program(self)

    def start(self, problem: "HorizontalProblem", weights: "Array") -> object:
        """Returns the state before the first row: by default none.

        A client's stage returns the state of one client; the chain keeps a table.
        """

    __call__: ClassVar[Callable[..., Any]]
    """Returns what the chain hands on, as the table of `stages` says."""


class LocalOptions(Config):
    """Options of local steps, of a method or of a stage."""

    local_steps: Count | None = 1
    """Q: steps that a client makes on its own copy, each on a new batch."""
    local_epochs: Count | None = None
    """E, in place of `local_steps`: passes over a client's own samples, each in a new
    order, with the rest as last batch. Clients with more samples make more steps, which
    take longer with `clients.compute_per`."""
    speeds: Quantity | None = None
    """Speeds of the clients, up to a common factor: one of speed v makes floor(Q v /
    v_max) local steps, at least one (DyLU of asynchronous DiLoCo), which take their
    time with `clients.compute_per: step`; by default all make Q."""
    local_optimizer: LocalOptax | None = None
    """The clients' optimiser of their local steps; by default plain SGD."""

    @model_validator(mode="after")
    def _works_in_steps_or_epochs(self) -> "LocalOptions":
        if self.local_epochs is None:
            return self
        if (self.local_steps or 1) > 1:
            raise LocatedError(
                f"local_epochs must not be set with local_steps, got both "
                f"{self.local_epochs} and {self.local_steps}; remove one of them",
            )
        if self.speeds is not None:
            raise LocatedError(
                f"speeds must be left out with local_epochs, got {self.speeds!r}; "
                f"remove one of them",
            )
        return self


class ReadPart(StagePart):
    """The model that a client gets: of a `ClientJob`, returns a `ClientJob`.

    It has a state for each client. One that makes messages smaller has `sent_bytes`.
    """

    place: ClassVar[str] = "read"


class WorkPart(StagePart):
    """A client's work: of a `ClientJob`, returns a `Work`, its contribution."""

    place: ClassVar[str] = "work"
    clips_samples: ClassVar[bool] = False
    """Whether the gradient of each sample is clipped by itself."""

    @property
    def beyond_gradients(self) -> str:
        """Option by which it does more than to add up gradients; "" if none does.

        By default it does, and the option is the stage itself.
        """
        return tag(type(self))


class SendPart(StagePart):
    """The message of a contribution: of a `ClientJob` and a `Work`, returns a `Work`.

    It has a state for each client. One that makes messages smaller has `sent_bytes`.
    """

    place: ClassVar[str] = "sent"


class AttackPart(StagePart):
    """Changes what some clients send: of a `ServerRow` and `Contributions`."""

    place: ClassVar[str] = "attack"


class ReceivePart(StagePart):
    """Changes contributions as they arrive: of a `ServerRow` and `Contributions`."""

    place: ClassVar[str] = "received"
    keeps_bound: ClassVar[bool] = False
    """Whether a client's contribution stays within the bound that it was clipped to."""


class WeightPart(StagePart):
    """Weights of contributions: of a `ServerRow` and `[W, ...]`, the models read.

    It returns their factors and their shares in a mean, `[W]`, and its state.
    """

    place: ClassVar[str] = "weight"


class AggregatePart(StagePart):
    """Makes of a `ServerRow` and `Contributions` a `Step`, by `ServerRow.step`.

    It returns the step, its state, and diagnostics by name.
    """

    place: ClassVar[str] = "aggregation"


class AdjustPart(StagePart):
    """Changes the server's `Step` before it is made: of a `ServerRow` and a `Step`.

    In a NULL row its state must stay as it is.
    """

    place: ClassVar[str] = "adjusted"


class ServerPart(StagePart):
    """Makes the next model: the last stage.

    One that `aggregates` is called with a `ServerRow` and the `Step`, else with a
    `ServerRow` and `Contributions`; it returns the model, its state, and diagnostics by
    name.
    """

    place: ClassVar[str] = "server"
    aggregates: ClassVar[bool] = False
    """Whether an aggregation comes before it."""

    @property
    def rule(self) -> StepSize | None:
        """The server's step size; by default the local step size."""
        return None

    def read_out(self, weights: "Array", state: object) -> "Array":
        """Returns the model to evaluate: by default the server's."""
        return weights


PLACES = {
    "read": "the download",
    "work": "the client's work",
    "sent": "the message",
    "attack": "the attack",
    "received": "the receipt",
    "weight": "the weight",
    "aggregation": "the aggregation",
    "adjusted": "adjustments of the step",
    "server": "the server's step",
}
"""Places of a chain in their order, and the base of their stages."""
ONE = {"work": "local_work", "weight": "weigh", "aggregation": "mean", "server": "step"}
"""Places of exactly one stage, with an example."""


Some = TypeVar("Some", bound=StagePart)
Static = tuple[tuple[str, ...], tuple[tuple[str, Any], ...]]
"""Names of a stage's arrays, and its other attributes by name."""


def numbers_of(stage: StagePart) -> dict[str, float]:
    """Returns the options in which runs of one program may differ.

    By default the fractions; they are arrays when the stage is called.
    """
    if isinstance(stage, HasNumbers):
        return stage.numbers
    return {key: value for key, value in stage if isinstance(value, float)}


def in_program(
    stage: Some, options: Iterable[str] | None = None, **facts: object
) -> Some:
    """Returns the same stage, its numbers being arrays, with facts of a run.

    Args:
        stage: Stage.
        options: The options of its computation; by default all.
        facts: Values of its private attributes. Those without arrays are static: runs
            that differ in them have different programs.
    """
    kind = type(stage)
    kept = {*kind.model_fields} if options is None else {"kind", *options}
    attributes = {name: value for name, value in stage if name in kept} | facts
    numbers = {
        name: jnp.asarray(value, float)
        for name, value in numbers_of(stage).items()
        if name in kept
    }
    trees = [
        name
        for name, value in facts.items()
        if all(map(eqx.is_array, jax.tree.leaves(value)))
    ]
    arrays = (*numbers, *trees)
    static = tuple((k, v) for k, v in attributes.items() if k not in arrays)
    _register(kind)
    return _made(kind, (arrays, static), attributes | numbers)


def _made(kind: type[Some], static: Static, attributes: dict[str, object]) -> Some:
    stage = kind.model_construct(None, **attributes)
    # A stage is flattened at each call of a program, so what is static stays with it.
    vars(stage).update(attributes, _static=static)
    return stage


@cache
def _register(kind: type[StagePart]) -> None:
    jax.tree_util.register_pytree_node(kind, _flatten, partial(_unflatten, kind))


def _flatten(stage: StagePart) -> tuple[list[object], Static]:
    attributes = vars(stage)
    static = attributes["_static"]
    return [attributes[name] for name in static[0]], static


def _unflatten(kind: type[Some], static: Static, values: Iterable[object]) -> Some:
    arrays, rest = static
    return _made(kind, static, dict(rest) | dict(zip(arrays, values, strict=True)))
