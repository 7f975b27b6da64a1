"""Abilities of few stages, each a method by its name. No JAX here.

A stage that has the members of a class here is one of it, without inheriting from it.
"""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, ClassVar, Protocol, runtime_checkable

from ....engine.algorithm import ProblemShape
from ....privacy.releases import Calibrated, Guarantee

if TYPE_CHECKING:
    from jaxtyping import Array

    from ....world.protocol import Protocol as Coordination
    from .chain import Chained


@runtime_checkable
class AddsNoise(Protocol):
    """Adds noise, of which privacy is accounted."""

    @property
    def noise_law(self) -> str | None:
        """Law of the noise."""
        ...

    def guarantees(
        self, method: "Chained", num_samples: Sequence[int], batch: int
    ) -> tuple[Guarantee, ...]:
        """Returns the privacy guarantee of one message of each client."""
        ...


@runtime_checkable
class HasBudget(Protocol):
    """Adds noise that may be calculated for a budget."""

    def calibrated(self, name: str) -> Calibrated | None:
        """Returns the budget that its noise is calculated for, if it is.

        Args:
            name: Dotted key of the stage.
        """
        ...


@runtime_checkable
class ForProtocols(Protocol):
    """Runs on some protocols of its method alone."""

    protocols: ClassVar[tuple[str, ...]]
    """Their names."""


@runtime_checkable
class ChecksProtocol(Protocol):
    """Refuses protocols that it does not fit."""

    def check(self, method: "Chained", protocol: "Coordination") -> None:
        """Refuses a protocol.

        Raises:
            LocatedError: By `method.refusal`.
        """
        ...


@runtime_checkable
class RefusesStatistics(Protocol):
    """Has no place for the statistics of batches that some models keep."""

    statistics_would_be: ClassVar[str]
    """Returns, for error messages, how the stage would change the statistics."""


@runtime_checkable
class NeedsKey(Protocol):
    """Needs the key of the run."""

    draws: ClassVar[bool]
    """Whether it does."""


@runtime_checkable
class TakesSums(Protocol):
    """Needs of a row's messages their weighted sum alone.

    Then `Contributions` may come without single messages, and their weights may not be
    changed any more.
    """

    takes_sums: ClassVar[bool]
    """Whether it does."""


@runtime_checkable
class HasNumbers(Protocol):
    """Has other options than its fractions in which runs of one program may differ."""

    @property
    def numbers(self) -> dict[str, float]:
        """Those options."""
        ...


@runtime_checkable
class Biased(Protocol):
    """May count some clients more than others."""

    def biases(self, protocol: "Coordination", num_clients: int) -> Iterator[str]:
        """Yields lines on clients that count more than others."""
        ...


@runtime_checkable
class GivesRoles(Protocol):
    """Changes some clients, for example into Byzantine ones."""

    def roles(self, method: "Chained", num_clients: int, seed: int) -> tuple[str, ...]:
        """Returns the role of each client, or "" without one.

        Args:
            method: The method that it is a stage of.
            num_clients: K.
            seed: Seed of the run.
        """
        ...


@runtime_checkable
class Resizes(Protocol):
    """Makes messages of another size."""

    def sent_bytes(self, given: int, shape: ProblemShape) -> int:
        """Returns the bytes of a message after the stage, of those before it.

        A download stage resizes the model's message, any other the client's.
        """
        ...


@runtime_checkable
class ByArrays(Protocol):
    """Sends what may depend on the shapes of the model's arrays."""

    @property
    def by_arrays(self) -> bool:
        """Whether it does."""
        ...


@runtime_checkable
class ExchangesMore(Protocol):
    """Exchanges more in a job than a model and a contribution."""

    def answer_bytes(self, shape: ProblemShape) -> int:
        """Returns the bytes that a client gets in a job on top of the model."""
        ...

    def overhead_s(self, shape: ProblemShape) -> float:
        """Returns virtual seconds of a job on top of its client's laws."""
        ...


@runtime_checkable
class SendsAlong(Protocol):
    """Sends something along with the model, such as a control variate or a momentum.

    It is a stage of the server, one at most of a chain. A client gets what went along
    with the version that it reads, as `ClientJob.along`; the server finds the same in
    `Contributions.along` when the contribution arrives. Downloads count it as a second
    model.
    """

    def along(self, state: object) -> "Array":
        """Returns the array that is sent with a version, shaped like the model.

        Args:
            state: The stage's state after the commit that made the version. The state
                before the next commit is sent with the next version.
        """
        ...


@runtime_checkable
class LeadsStep(Protocol):
    """Changes a step by an adjustment that traces and readers need."""

    def scaled(self, step_size: "Array", version: "Array") -> "Array":
        """Returns the step size times the stage's factor, for traces."""
        ...

    def ahead(self, weights: "Array", state: object, step_size: "Array") -> "Array":
        """Returns the vector that clients read, by default the model, `[...]`."""
        ...
