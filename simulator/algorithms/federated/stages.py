"""The stages of a chain: what each takes, what it hands on, and the state it keeps.

    client's work -> what is sent -> what is received -> weight -> server

A stage is a small `equinox.Module`, whose array fields are numbers in which runs of one
program may differ. It has a state of its own, which `start` makes, and is a pure
function of that state and of what comes in. A state is any tree of arrays, None without
any. A new stage is a class in a file of its own; the chain and the others stay as they
are.

    stage              runs        is given                  returns
    `WorkStage`        client      what was read, samples    a contribution (`Work`)
    `SendStage`        client      a contribution            what is sent of it
    `ReceiveStage`     server      a row's contributions     contributions
    `Weighing`         server      staleness, clients        factors and shares
    `ServerStage`      server      weighted contributions    the next model
    `AggregateStage`   `Stepping`  weighted contributions    a direction
    `AdjustStage`      `Stepping`  a step                    a step
"""

from abc import abstractmethod
from collections.abc import Iterable
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, Key

from ...learning.horizontal import HorizontalProblem
from .. import client_work
from ..base import Event, Info
from ..client_work import Work


class ClientJob(NamedTuple):
    """What a client works on.

    Attributes:
        problem: The problem.
        read: The model that it read, as wide as a register.
        samples: Sample ids of each local step.
        step_size: Step size of its local steps.
        worker: The client.
        number: Number of its job.
        key: Key of the run; None where nothing is drawn.
    """

    problem: HorizontalProblem
    read: Float[Array, "..."]
    samples: Int[Array, "Q S"]
    step_size: Float[Array, ""]
    worker: Int[Array, ""]
    number: Int[Array, ""]
    key: Key[Array, ""] | None

    @property
    def training_key(self) -> Key[Array, ""] | None:
        """Key of what training draws, such as dropout; None for models without any."""
        return client_work.training_key(
            self.problem, self.key, self.worker, self.number
        )


class ServerRow(NamedTuple):
    """A row, and the server's model before it.

    Attributes:
        problem: The problem.
        event: The row.
        weights: Weights of the server's model.
        step_size: The server's step size, which multiplies directions.
        rate: The same times an optimiser's learning rate.
        local_step_size: Step size of the clients' local steps.
        key: Key of the run; None where nothing is drawn.
    """

    problem: HorizontalProblem
    event: Event
    weights: Float[Array, "..."]
    step_size: Float[Array, ""]
    rate: Float[Array, ""]
    local_step_size: Float[Array, ""]
    key: Key[Array, ""] | None

    @property
    def server_key(self) -> Key[Array, ""]:
        """Key of what the server draws at this version, for a stage that `draws`."""
        assert self.key is not None
        own = jax.random.fold_in(self.key, client_work.OF_SERVER)
        return jax.random.fold_in(own, self.event.version)

    @property
    def num_statistics(self) -> int:
        """Numbers at the end of the weights that are statistics of batches."""
        return self.problem.model.num_statistics


class Contributions(NamedTuple):
    """A row's contributions, one for each worker.

    Attributes:
        read: Models that were read.
        message: What was sent of the sums of gradients; anything for padding.
        statistics: Running statistics of each, of a model that keeps some.
        factor: What each is multiplied by, 0 for padding.
        share: What each counts by in a mean, 0 for padding.
        scale: What a sum of messages is multiplied by where they are moves: the step
            size of local steps; None where they are gradients.
    """

    read: Float[Array, "W ..."]
    message: Float[Array, "W ..."]
    statistics: Float[Array, "W Q"] | None
    factor: Float[Array, " W"]
    share: Float[Array, " W"] | Bool[Array, " W"]
    scale: Float[Array, ""] | None = None

    @property
    def weight(self) -> Float[Array, " W"]:
        """What each message is multiplied by in a sum."""
        # Flags of padding change nothing: its factors are 0 as it is.
        flags = self.share.dtype == jnp.bool_
        return self.factor if flags else self.factor * self.share

    def scaled(self, message: Float[Array, "..."]) -> Float[Array, "..."]:
        """Returns a sum or mean of messages as gradients or moves."""
        return message if self.scale is None else self.scale * message


class Aggregate(NamedTuple):
    """What contributions are aggregated to.

    Attributes:
        direction: Against this the server steps: by default a mean of contributions,
            which ends with that of statistics, of a model that keeps some.
        applies: Whether the server steps now.
        weight: Mean factor of the contributions.
    """

    direction: Float[Array, "..."]
    applies: Bool[Array, ""]
    weight: Float[Array, ""]


class Step(NamedTuple):
    """A step of the server.

    Attributes:
        direction: The model moves by minus this times the step size.
        step_size: Step size.
        rate: The same times an optimiser's learning rate, as traces have it.
        applies: Whether it is made.
        weight: Mean factor of the contributions.
    """

    direction: Float[Array, "..."]
    step_size: Float[Array, ""]
    rate: Float[Array, ""]
    applies: Bool[Array, ""]
    weight: Float[Array, ""]


class ChainStage(eqx.Module):
    """Common base of the stages."""

    @property
    def draws(self) -> bool:
        """Whether it needs the key of the run."""
        return False

    def start(self, problem: HorizontalProblem, weights: Float[Array, "..."]) -> Any:
        """Returns the state before the first row: by default none.

        That of a client's stage is the state of one client; the chain keeps a table.
        """
        del problem, weights


class WorkStage(ChainStage):
    """Makes a contribution of what a client has read."""

    @abstractmethod
    def __call__(self, job: ClientJob, state: Any) -> tuple[Work, Any]:
        """Returns the contribution, and the client's state after it."""


class SendStage(ChainStage):
    """Changes the message of a contribution before it is sent."""

    @abstractmethod
    def __call__(self, job: ClientJob, work: Work, state: Any) -> tuple[Work, Any]:
        """Returns the contribution with another message, and the client's state."""


class ReceiveStage(ChainStage):
    """Changes contributions as they arrive, before they are weighted."""

    @abstractmethod
    def __call__(
        self, row: ServerRow, contributions: Contributions, state: Any
    ) -> tuple[Contributions, Any]:
        """Returns the contributions, and the state after the row."""


class AggregateStage(ChainStage):
    """Aggregates contributions: those of a row, or of several."""

    @abstractmethod
    def __call__(
        self, row: ServerRow, contributions: Contributions, state: Any
    ) -> tuple[Aggregate, Any, Info]:
        """Returns the aggregate, the state after the row, and diagnostics."""


class StepStage(ChainStage):
    """Common base of the stages that have a say in the server's step."""

    def scaled(self, step_size: Array, version: Int[Array, ""]) -> Array:
        """Returns the step size with what the stage multiplies it by, for traces."""
        del version
        return step_size

    def ahead(
        self, weights: Float[Array, "..."], state: Any, step_size: Array
    ) -> Float[Array, "..."]:
        """Returns what clients read: by default the model."""
        del state, step_size
        return weights


class AdjustStage(StepStage):
    """Changes a step before it is made: what an optimiser does, or noise."""

    @abstractmethod
    def __call__(self, row: ServerRow, step: Step, state: Any) -> tuple[Step, Any]:
        """Returns the step, and the state after the row, a NULL row's as before."""


class ServerStage(StepStage):
    """Makes the next model of contributions."""

    @abstractmethod
    def __call__(
        self, row: ServerRow, contributions: Contributions, state: Any
    ) -> tuple[Float[Array, "..."], Any, Info]:
        """Returns the model after the row, the state, and diagnostics."""


def refuse_others(name: str, stages: Iterable[Any], kind: type[ChainStage]) -> None:
    """Refuses stages of another kind.

    Args:
        name: Place of the stages in a chain, for the message.
        stages: Stages.
        kind: Kind that they must be of.

    Raises:
        TypeError: One is of another kind.
    """
    for stage in stages:
        if not isinstance(stage, kind):
            raise TypeError(
                f"{name} must be of the kind {kind.__name__}, got "
                f"{type(stage).__name__}; put it where its kind goes"
            )


def mean_of(present: Bool[Array, " W"], values: Array) -> Float[Array, ""]:
    """Returns the mean over the workers of a row, padding left out."""
    share = present / jnp.maximum(present.sum(), 1)
    return jnp.sum(share * values)
