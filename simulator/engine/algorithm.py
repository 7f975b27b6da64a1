"""Learning algorithms' configurations, and what their messages weigh. No JAX here."""

from abc import abstractmethod
from typing import (
    TYPE_CHECKING,
    Annotated,
    ClassVar,
    Literal,
    runtime_checkable,
)
from typing import Protocol as Ability

import numpy as np
from jaxtyping import Int
from pydantic import BeforeValidator, Field, model_validator

from ..parts.base import LocatedError, Part, Rule, tag
from ..parts.errors import ScenarioError
from ..problem.capabilities import HasStages, KeepsStatistics
from ..problem.models.parts import ModelCounts, ProblemShape
from ..problem.sampler import Sampler, UnevenSampler
from ..world.protocol import Protocol
from ..world.workload import Workload
from .optimizers.part import programs, with_steps
from .step_rules import StepSize

if TYPE_CHECKING:
    from ..scenario.scenario import Problem
    from ..world.protocol import Protocol

FLOAT_BYTES = 4
"""Messages carry float32 values, whatever precision the engine computes in."""


Bytes = dict[Literal["up", "down"], int]
"""Bytes of a contribution's messages: `up` from the client, `down` to it; nothing of a
direction in which none is sent."""


def model_and_gradient(shape: ProblemShape) -> Bytes:
    """Returns the bytes of a contribution: the model down, as many numbers up."""
    size = FLOAT_BYTES * shape.num_weights
    return {"up": size, "down": size}


def _unambiguous(batch: object) -> object:
    """Refuses 1.0, which may be one sample as well as the whole of a client's."""
    if isinstance(batch, float) and batch == 1:
        raise ValueError(
            "must be a number of samples or a fraction below 1, got 1.0, which may "
            "mean one sample or all; write 1 for one, the number of samples for all"
        )
    return batch


Batch = Annotated[
    Annotated[int, Field(ge=1)] | Annotated[float, Field(gt=0, lt=1)],
    Rule(
        "a whole number of samples >= 1, or a fraction of a client's samples below 1",
        "40 or 0.01",
    ),
    BeforeValidator(_unambiguous),
]
"""A number of samples or, below 1, a fraction of the samples of a client; not 1.0."""


class Algorithm(Part):
    """Common base of all algorithms: a step size and a batch.

    `batch_size` is a number of samples, or, below 1, a fraction of a client's samples.
    """

    step_size: StepSize
    """Step size: a number, or a rule by which it changes."""
    batch: Batch
    """Samples of a step: a whole number, 1 being a single one, or below 1 a fraction of
    those of the smallest client; 1.0 is refused, since it may be meant for either."""
    family: ClassVar[str]
    """How the data must be divided: `horizontal` (by rows) or `vertical`."""
    protocols: ClassVar[tuple[str, ...]]
    """Names of the protocols that it runs on."""
    numbers: ClassVar[tuple[str, ...]] = ()
    """Options, besides step sizes, in which runs of one program may differ."""
    sampling: Literal["distinct", "replacement", "shuffled"] = "distinct"
    """A batch's samples: all different (V-31), or drawn one by one with replacement, or
    the next ones of a shuffled pass over the client's own samples."""
    samples: Literal["own", "common"] | None = None
    """Whether the workers of a commit draw their own batches or share one; by default
    as the algorithm and the protocol have it."""

    @model_validator(mode="before")
    @classmethod
    def _rates_are_steps(cls, data: object) -> object:
        """Lets the learning rate of an optimiser stand for the step size."""
        given = "optimizer" in cls.model_fields
        return with_steps(data, optimizer="step_size") if given else data

    @property
    def steps_per_job(self) -> int:
        """Local steps of a job: its option `local_steps`, if it has one."""
        return getattr(self, "local_steps", 1)

    def check(self, problem: "Problem", protocol: "Protocol") -> None:
        """Refuses problems and protocols that the algorithm cannot have.

        Args:
            problem: The problem of the scenario.
            protocol: The protocol of the scenario, one that the algorithm names.

        Raises:
            LocatedError: saying where, what and what to do.
        """
        keeps = isinstance(self, KeepsStatistics)
        if problem.model.normalises_batches and not keeps:
            raise LocatedError(
                f"problem.model.norm must be group for the algorithm "
                f"{tag(type(self))!r}, which has no place for a batch's statistics, "
                f"got 'batch'; change it",
            )

    def structure(self) -> dict[str, object]:
        """Returns all but the numbers that runs of one program may differ in."""
        numbers = {"step_size", "server_step_size", *self.numbers}
        rest = self.model_dump(mode="json", exclude=numbers)
        return rest | programs(self)

    @abstractmethod
    def messages(self, shape: ProblemShape, *, common: bool) -> Bytes:
        """Returns the bytes of one contribution's messages.

        Args:
            shape: The problem's counts.
            common: Whether the workers of a row share one batch.
        """


@runtime_checkable
class OwnSampler(Ability):
    """An algorithm whose minibatches are not one for each local step."""

    def sampler(
        self, seed: int, pools: list[Int[np.ndarray, " _"]], protocol: Protocol
    ) -> Sampler:
        """Returns the minibatches of a run, as `sampler_of` does."""
        ...


def sampler_of(
    algorithm: Algorithm,
    seed: int,
    pools: list[Int[np.ndarray, " _"]],
    protocol: Protocol,
) -> Sampler:
    """Returns the minibatches of a run: by default one for each local step.

    Args:
        algorithm: The algorithm of the scenario.
        seed: Seed of the run.
        pools: Sample ids of each client, or one pool that all clients draw from.
        protocol: The protocol of the scenario.

    Raises:
        ScenarioError: A batch is larger than a client's samples.
    """
    if isinstance(algorithm, OwnSampler):
        return algorithm.sampler(seed, pools, protocol)
    steps = algorithm.steps_per_job
    return minibatches(algorithm, seed, pools, protocol, steps=steps)


def check_statistics(
    algorithm: Algorithm, counts: ModelCounts, sampler: Sampler, *, own_work: bool
) -> None:
    """Refuses statistics of batches that have no place, or would count padding.

    Args:
        algorithm: The algorithm of the scenario.
        counts: Of a model that keeps statistics of batches.
        sampler: The minibatches of the run.
        own_work: Whether a function of the user's own computes the gradients.

    Raises:
        ScenarioError: One line with the rule and the remedy.
    """
    if isinstance(algorithm, KeepsStatistics):
        algorithm.check_model(counts)
    else:
        raise ScenarioError(
            f"problem.model must keep no statistics of batches for the algorithm "
            f"{tag(type(algorithm))!r}, which has no place for them, got "
            f"{counts.num_statistics} numbers; normalise layers or groups, or take "
            f"sgd, fed_async, fed_buff or psgd"
        )
    if own_work:
        raise ScenarioError(
            f"problem.model must keep no statistics of batches with problem.work, "
            f"which returns gradients alone, got {counts.num_statistics} numbers; "
            f"normalise layers or groups"
        )
    if sampler.own_steps is not None:
        raise ScenarioError(
            "problem.model must keep no statistics of batches where clients have "
            "batches or steps of their own (local_epochs, speeds, or fewer samples "
            f"than a batch of {sampler.size}), whose padding they would count; give "
            "all local_steps and a smaller batch, or normalise layers or groups"
        )


def batch_size(batch: int | float, num_samples: int) -> int:
    """Returns the number of samples in a batch of a client with `num_samples`."""
    return batch if isinstance(batch, int) else max(1, round(batch * num_samples))


def minibatches(
    algorithm: Algorithm,
    seed: int,
    pools: list[Int[np.ndarray, " _"]],
    protocol: Protocol,
    *,
    steps: int,
    shortens: bool = False,
) -> Sampler:
    """Returns the minibatches of a run.

    Args:
        algorithm: Defines their size, their sampling, and whether they are common.
        seed: Seed of the run.
        pools: Sample ids of each client, or one pool that all clients draw from.
        protocol: The protocol of the scenario.
        steps: Batches of a job.
        shortens: Whether the batch of a client that has fewer samples is all that it
            has.

    Raises:
        ScenarioError: A batch is larger than a client's samples.
    """
    common = protocol.traits.common_batch and algorithm.family == "vertical"
    if algorithm.samples is not None:
        common = algorithm.samples == "common"
    smallest = min(pool.size for pool in pools)
    size, sampling = batch_size(algorithm.batch, smallest), algorithm.sampling
    if shortens and size > smallest and not common:
        return UnevenSampler(seed, pools, size, sampling=sampling, steps=steps)
    return Sampler(
        seed,
        pools,
        size,
        sampling=sampling,
        steps=steps,
        common=common,
        by_round=protocol.traits.batch_per_round,
    )


def workload_of(
    algorithm: Algorithm, shape: ProblemShape, sampler: Sampler, *, pooled: bool
) -> Workload:
    """Returns the computation and the messages of a job.

    Args:
        algorithm: The algorithm of the scenario.
        shape: The problem's counts.
        sampler: The minibatches of the run.
        pooled: Whether all data are in one place: then nothing is sent.
    """
    sent: Bytes = {}
    overhead_s: float = 0  # a whole number, as timelines are known by its text
    if not pooled:
        sent = algorithm.messages(shape, common=sampler.common)
        if isinstance(algorithm, HasStages):
            overhead_s = algorithm.overhead_s(shape)
    num_samples, parties = shape.num_samples, 1
    if algorithm.family == "vertical":  # each party contributes for the same samples
        num_samples, parties = sampler.num_samples, shape.num_clients
    per_job = shape.batch * sampler.steps
    own_steps, own_samples = sampler.own_steps, sampler.own_samples
    if own_samples is not None:
        per_job = float(own_samples.mean())
    steps = algorithm.steps_per_job
    return Workload(
        upload_bytes=sent.get("up", 0),
        download_bytes=sent.get("down", 0),
        contributions_per_epoch=parties * num_samples / per_job,
        steps=sampler.steps if own_steps is not None else steps,
        samples=shape.batch * steps,
        overhead_s=overhead_s,
        own_steps=() if own_steps is None else tuple(own_steps.tolist()),
        own_samples=() if own_samples is None else tuple(own_samples.tolist()),
    )
