"""The arguments and results of a chain's stages. No JAX until a run needs it.

A stage is a pure function of its state, the last argument, and of its input; it returns
the state after it second. A state is any tree of arrays, None without any.

    place          is given                        returns
    `read`         `ClientJob`                     `ClientJob`
    `work`         `ClientJob`                     `Work`
    `sent`         `ClientJob`, `Work`             `Work`
    `attack`       `ServerRow`, `Contributions`    `Contributions`
    `received`     `ServerRow`, `Contributions`    `Contributions`
    `weight`       `ServerRow`, what was read      factors and shares
    `aggregation`  `ServerRow`, `Contributions`    `Step`, .., info
    `adjusted`     `ServerRow`, `Step`             `Step`
    `server`       `ServerRow`, `Step`             the next model, .., info

A server's step without an aggregation before it receives `Contributions`.
"""

from typing import TYPE_CHECKING, Any, NamedTuple

from jaxtyping import Bool, Float, Int, Key

from ....parts.lazy import Late

if TYPE_CHECKING:
    import jax
    import jax.numpy as jnp
    from jaxtyping import Array

    from ....engine import client_work
    from ....engine.kernel import Event, Info
    from ....problem.horizontal import HorizontalProblem
else:
    jax, jnp = Late("jax"), Late("jax.numpy")
    client_work = Late("....engine.client_work", __package__)
    Array = HorizontalProblem = Event = Info = Any

BROADCAST_ERROR = "broadcast_error"
"""Diagnostic of a download stage; discarded jobs have it as well."""


class ClientJob(NamedTuple):
    """The input of a client's work.

    Attributes:
        problem: The problem.
        read: The model that it read, as wide as a register.
        samples: Sample ids of each local step.
        step_size: Step size of its local steps.
        worker: The client.
        number: Number of its job.
        version: Commits applied before it has read.
        key: Key of the run; None where nothing is drawn.
        info: Diagnostics of download stages.
        taken: Local steps of the job, the first ones of the samples; None for all.
        along: The array that the server sent with that version, by the stage that
            `SendsAlong`; None without one.
        drift: Term that local steps add to each gradient, the same at all steps of the
            job; a download or work stage may set it. None for nothing.
    """

    problem: HorizontalProblem
    read: Float[Array, "..."]
    samples: Int[Array, "Q S"]
    step_size: Float[Array, ""]
    worker: Int[Array, ""]
    number: Int[Array, ""]
    version: Int[Array, ""]
    key: Key[Array, ""] | None
    info: Info = {}  # noqa: RUF012 - a default of a tuple, which nothing changes
    taken: Int[Array, ""] | None = None
    along: Float[Array, "..."] | None = None
    drift: Float[Array, "..."] | None = None

    @property
    def training_key(self) -> Key[Array, ""] | None:
        """Random key of training, such as dropout; None for models without any."""
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

    def step(
        self,
        direction: Float[Array, "..."],
        applies: Bool[Array, ""],
        weight: Float[Array, ""],
    ) -> "Step":
        """Returns the step of this row against a direction, as `Step` has it."""
        return Step(direction, self.step_size, self.rate, applies, weight)

    @property
    def server_key(self) -> Key[Array, ""]:
        """Random key of the server at this version, for a stage that `draws`."""
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
        message: The sums of gradients as sent; anything for padding.
        statistics: Running statistics of each, of a model that keeps some.
        factor: Factor of each message, 0 for padding.
        share: Weight of each message in a mean, 0 for padding.
        scale: Factor of a sum of messages where they are moves: the step size of local
            steps; None where they are gradients.
        total: Sum of messages, each times its `weight`, where they were not made one by
            one; then `message` is None.
        info: Diagnostics of the row by stages of receiving.
        along: What went along with the versions that were read; zeros for padding, and
            None where no stage `SendsAlong`.
    """

    read: Float[Array, "W ..."]
    message: Float[Array, "W ..."] | None
    statistics: Float[Array, "W Q"] | None
    factor: Float[Array, " W"]
    share: Float[Array, " W"] | Bool[Array, " W"]
    scale: Float[Array, ""] | None = None
    total: Float[Array, "..."] | None = None
    info: Info = {}  # noqa: RUF012 - a default of a tuple, which nothing changes
    along: Float[Array, "W ..."] | None = None

    @property
    def weight(self) -> Float[Array, " W"]:
        """Factor of each message in a sum."""
        # Flags of padding change nothing: its factors are 0 as it is.
        flags = self.share.dtype == jnp.bool_
        return self.factor if flags else self.factor * self.share

    def scaled(self, message: Float[Array, "..."]) -> Float[Array, "..."]:
        """Returns a sum or mean of messages as gradients or moves."""
        return message if self.scale is None else self.scale * message


class Step(NamedTuple):
    """A step of the server.

    Attributes:
        direction: The model moves by minus this times the step size. An aggregation's
            direction ends with the mean of statistics, of a model that keeps some.
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


def summed(
    contributions: Contributions,
) -> tuple[Float[Array, "..."], Float[Array, ""]]:
    """Returns the weighted sum of a row's contributions, and the sum of weights."""
    total, message = contributions.total, contributions.message
    if message is not None:
        weight = contributions.weight.astype(message.dtype)
        total = jnp.tensordot(weight, message, 1)
    assert total is not None
    mass = contributions.share.sum(dtype=total.dtype)
    return contributions.scaled(total), mass


def statistics(
    row: ServerRow, contributions: Contributions
) -> Float[Array, " Q"] | None:
    """Returns the sum, by shares, of the clients' running statistics.

    Each client sends its own. The server takes them by the contribution's share, at
    most 1, and keeps the rest of its own: so the result is a mean of statistics,
    however stale they are. None for a model without any.
    """
    if contributions.statistics is None:
        return None
    mine = row.weights[-row.num_statistics :][None]
    counts = jnp.minimum(contributions.factor, 1).astype(mine.dtype)[:, None]
    blended = mine + counts * (contributions.statistics - mine)
    shares = contributions.share.astype(mine.dtype)[:, None]
    return jnp.where(shares > 0, shares * blended, 0).sum(axis=0)


def divisor(count: Int[Array, ""] | Float[Array, ""]) -> Array:
    """Returns the divisor of a sum for its mean; the mean of nothing is 0."""
    return jnp.where(count > 0, count, 1)


def placed(
    vector: Float[Array, "..."],
    statistics: Float[Array, " Q"] | None,
    count: Int[Array, ""] | Float[Array, ""],
) -> Float[Array, "..."]:
    """Returns a vector that ends with the mean of the statistics, if any."""
    if statistics is None:
        return vector
    mean = statistics / divisor(count).astype(statistics.dtype)
    return vector.at[-statistics.size :].set(mean)


def mean_of(present: Bool[Array, " W"], values: Array) -> Float[Array, ""]:
    """Returns the mean over the workers of a row, padding left out."""
    share = present / jnp.maximum(present.sum(), 1)
    return jnp.sum(share * values)
