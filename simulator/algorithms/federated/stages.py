"""What runs of the stages of a chain: what each is given, and what it hands on.

A stage of a run is what a `chain.StagePart` makes: a small `equinox.Module`, whose
array fields are numbers in which runs of one program may differ. It has a state of its
own, which `start` makes, and is a pure function of that state, given last, and of what
comes in; the state after it is returned second. A state is any tree of arrays, None
without any.

    place          runs        is given                        returns
    `read`         client      `ClientJob`                     `ClientJob`
    `work`         client      `ClientJob`                     `Work`
    `sent`         client      `ClientJob`, `Work`             `Work`
    `attack`       server      `ServerRow`, `Contributions`    `Contributions`
    `received`     server      `ServerRow`, `Contributions`    `Contributions`
    `weight`       server      `ServerRow`, what was read      factors and shares
    `aggregation`  `Stepping`  `ServerRow`, `Contributions`    `Aggregate`, .., info
    `adjusted`     `Stepping`  `ServerRow`, `Step`             `Step`
    `server`       server      `ServerRow`, `Contributions`    the next model, .., info
"""

from abc import abstractmethod
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, Key

from ...learning.horizontal import HorizontalProblem
from .. import client_work
from ..base import Event, Info
from .chain import StagePart

BROADCAST_ERROR = "broadcast_error"
"""Diagnostic of what is read, which a job has of which nothing comes as well."""


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
        info: Diagnostics of stages of what is read.
    """

    problem: HorizontalProblem
    read: Float[Array, "..."]
    samples: Int[Array, "Q S"]
    step_size: Float[Array, ""]
    worker: Int[Array, ""]
    number: Int[Array, ""]
    key: Key[Array, ""] | None
    info: Info = {}  # noqa: RUF012 - a default of a tuple, which nothing changes

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
        total: Sum of messages, each times its `weight`, where they were not made one by
            one; then `message` is None.
        info: Diagnostics of the row by stages of receiving.
    """

    read: Float[Array, "W ..."]
    message: Float[Array, "W ..."] | None
    statistics: Float[Array, "W Q"] | None
    factor: Float[Array, " W"]
    share: Float[Array, " W"] | Bool[Array, " W"]
    scale: Float[Array, ""] | None = None
    total: Float[Array, "..."] | None = None
    info: Info = {}  # noqa: RUF012 - a default of a tuple, which nothing changes

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

    @property
    def takes_sums(self) -> bool:
        """Whether it needs of a row's messages their weighted sum alone.

        Then `Contributions` may come without single messages, and what each counts is
        not to be changed any more.
        """
        return False

    def start(self, problem: HorizontalProblem, weights: Float[Array, "..."]) -> Any:
        """Returns the state before the first row: by default none.

        That of a client's stage is the state of one client; the chain keeps a table.
        """

    @abstractmethod
    def __call__(self, *given: Any, **named: Any) -> Any:
        """Returns what the chain hands on, as the table above says."""


class StepStage(ChainStage):
    """Common base of the stages that have a say in the server's step."""

    def scaled(self, step_size: Array, version: Int[Array, ""]) -> Array:
        """Returns the step size with what the stage multiplies it by, for traces."""
        return step_size

    def ahead(
        self, weights: Float[Array, "..."], state: Any, step_size: Array
    ) -> Float[Array, "..."]:
        """Returns what clients read: by default the model."""
        return weights


class OwnStage(StepStage):
    """A stage whose part computes by its options alone, and is called itself.

    Attributes:
        numbers: Options in which runs of one program may differ.
        part: Class of the part.
        options: Its other options.
    """

    numbers: dict[str, Array]
    part: type[StagePart] = eqx.field(static=True)
    options: tuple[tuple[str, Any], ...] = eqx.field(static=True)

    @property
    def draws(self) -> bool:
        return self.part.draws

    @property
    def takes_sums(self) -> bool:
        return self.part.takes_sums

    def start(self, problem: HorizontalProblem, weights: Float[Array, "..."]) -> Any:
        return self._own().start(problem, weights)

    def __call__(self, *given: Any, **named: Any) -> Any:
        """Returns what the part makes of what it is given."""
        return self._own()(*given, **named)

    def _own(self) -> Any:
        given: dict[str, Any] = dict(self.options) | self.numbers
        return self.part.model_construct(**given)


def own_stage(part: StagePart, *facts: Any) -> OwnStage:
    """Returns the stage that a part computes by itself."""
    numbers = {name: jnp.asarray(value, float) for name, value in part.numbers.items()}
    options = tuple((name, value) for name, value in part if name not in numbers)
    return OwnStage(numbers, type(part), options)


def mean_of(present: Bool[Array, " W"], values: Array) -> Float[Array, ""]:
    """Returns the mean over the workers of a row, padding left out."""
    share = present / jnp.maximum(present.sum(), 1)
    return jnp.sum(share * values)
