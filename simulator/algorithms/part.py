"""Learning algorithms' configurations, and what their messages weigh. No JAX here."""

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Annotated, Any, ClassVar, Literal, NamedTuple

import numpy as np
from jaxtyping import Int
from pydantic import BeforeValidator, Field, model_validator

from ..config.base import LocatedError, Rule
from ..config.errors import ScenarioError
from ..config.parts import Part, tag
from ..learning.sampler import Sampler
from ..learning.shape import ProblemShape
from ..learning.uneven import UnevenSampler
from ..models.parts import ModelCounts
from ..privacy.releases import Calibrated, Guarantee
from ..world.workload import Workload
from .optimizers.part import programs, with_steps
from .step_rules import StepSize

FLOAT_BYTES = 4
"""Messages carry float32 values, whatever precision the engine computes in."""


class Message(NamedTuple):
    """One kind of message of an algorithm.

    Attributes:
        name: Content of the message.
        direction: `up` (client to server) or `down`.
        bytes: payload of one message.
    """

    name: str
    direction: Literal["up", "down"]
    bytes: int


def model_and_gradient(shape: ProblemShape) -> tuple[Message, ...]:
    """Returns the messages of a contribution: the model down, as many numbers up."""
    size = FLOAT_BYTES * shape.num_weights
    return (Message("gradient", "up", size), Message("model", "down", size))


def _unambiguous(batch: Any) -> Any:
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

    `batch` is a number of samples, or, below 1, a fraction of the samples of a client.
    """

    step_size: StepSize
    """Step size: a number, or a rule by which it changes."""
    batch: Batch
    """Samples of a step: a whole number, 1 being a single one, or below 1 a fraction of
    those of the smallest client; 1.0 is refused, since it may be meant for either."""
    has_bias: ClassVar[bool] = True
    """Whether the model that is learned has a bias besides the clients' weights."""
    stores_embeddings: ClassVar[bool] = False
    """Whether the server keeps embeddings, which a protocol may refresh."""
    transfers: ClassVar[bool] = False
    """Whether the objective may be that of transfer learning."""
    pushes: ClassVar[bool] = False
    """Whether models are shared out as in push-sum, which directed graphs need."""
    remembers_reads: ClassVar[bool] = False
    """Whether it remembers what each client has got, also of jobs that fail."""
    divided: ClassVar[bool] = False
    """Whether its kernel is `base.Divided`, so that rows may be executed in waves."""
    asks: ClassVar[tuple[str, ...]] = ("metrics",)
    """What a world may ask of it, of `world.answers.QUESTIONS`."""
    family: ClassVar[str]
    """How the data must be divided: `horizontal` (by rows) or `vertical`."""
    protocols: ClassVar[tuple[str, ...]]
    """Names of the protocols that it runs on."""
    numbers: ClassVar[tuple[str, ...]] = ()
    """Options, besides step sizes, in which runs of one program may differ."""
    worker_metrics: ClassVar[bool] = False
    """Whether workers have models of their own that metrics can speak of."""
    keeps_statistics: ClassVar[bool] = False
    """Whether workers keep the running statistics of layers that normalise batches."""
    sampling: Literal["distinct", "replacement", "shuffled"] = "distinct"
    """A batch's samples: all different (V-31), or drawn one by one with replacement, or
    the next ones of a shuffled pass over the client's own samples."""
    samples: Literal["own", "common"] | None = None
    """Whether the workers of a commit draw their own batches or share one; by default
    as the algorithm and the protocol have it."""

    @model_validator(mode="before")
    @classmethod
    def _rates_are_steps(cls, data: Any) -> Any:
        """Lets the learning rate of an optimiser stand for the step size."""
        given = "optimizer" in cls.model_fields
        return with_steps(data, optimizer="step_size") if given else data

    @property
    def steps_per_job(self) -> int:
        """Local steps of a job."""
        return 1

    @property
    def batches_per_job(self) -> int:
        """Batches of a job: one a local step, unless they share one."""
        return self.steps_per_job

    @property
    def shortens(self) -> bool:
        """Whether the batch of a client that has fewer samples is all that it has."""
        return False

    @property
    def step_sizes(self) -> tuple[StepSize | None, ...]:
        """All step sizes, in an order that stays."""
        return (self.step_size, None, None)

    @property
    def clips_samples(self) -> bool:
        """Whether the gradient of each sample is clipped by itself."""
        return False

    @property
    def by_arrays(self) -> bool:
        """Whether messages depend on the shapes of the model's arrays."""
        return False

    @cached_property
    def stages(self) -> tuple[Any, ...]:
        """Stages of the chain that it is; none where it is another kernel."""
        return ()

    @property
    def can_shorten_jobs(self) -> bool:
        """Whether a job may have fewer local steps than others of its client."""
        return False

    @property
    def beyond_gradients(self) -> tuple[str | int, ...]:
        """Keys of what clients do more than to add up gradients; none if nothing.

        Then a function of the user's cannot make these in their place.
        """
        return ("clip",) if self.clips_samples else ()

    @property
    def uploads_batch(self) -> bool:
        """Whether an upload carries its batch's samples alone, which a server keeps."""
        return False

    @property
    def uploads_all(self) -> bool:
        """Whether an upload carries all samples."""
        return False

    @property
    def embedding_noise(self) -> Any:
        """Noise on the embeddings that are uploaded."""
        return None

    @property
    def noises_first_layer_only(self) -> bool:
        """Whether the gradients of all layers but the first are sent without noise."""
        return False

    @property
    def noise_law(self) -> str | None:
        """Law of the noise on the gradients or models that are sent, if any."""
        return None

    @property
    def noise_by_commit(self) -> bool:
        """Whether the noise is on the sum of a commit, and not on each message."""
        return False

    def biases(self, protocol: Any, num_clients: int) -> Iterator[str]:
        """Yields lines on clients that count more than others by what they are asked.

        Args:
            protocol: The protocol of the scenario.
            num_clients: K.
        """
        yield from ()

    def described(self) -> dict[str, Any]:
        """Returns what it says of itself to analysis, as plain values for manifests.

        Returns:
            `activities`: what a job does besides its stages; `refreshes_all`: whether
            each upload refreshes its client's embeddings of all samples before they are
            used, so that their age follows from who commits.
        """
        return {"activities": [], "refreshes_all": False}

    def roles(self, num_clients: int, seed: int) -> tuple[str, ...]:
        """Returns what each client is besides one of many; nothing where all are alike.

        Args:
            num_clients: K.
            seed: Seed of the run.
        """
        return ()

    @property
    def calibrated(self) -> Calibrated | None:
        """Budget that the noise is calculated for, which ends runs; None without."""
        return None

    def guarantees(
        self, num_samples: Sequence[int], batch: int, num_weights: int
    ) -> tuple[Guarantee, ...]:
        """Returns what one message of each client releases; nothing without noise.

        Args:
            num_samples: n of each client.
            batch: b, samples of a local step.
            num_weights: numbers of a message.

        Raises:
            UserError: a budget of the noise cannot be reached.
        """
        return ()

    def check(self, problem: Any, protocol: Any) -> None:
        """Refuses problems and protocols that the algorithm cannot have.

        Args:
            problem: The problem of the scenario.
            protocol: The protocol of the scenario, one that the algorithm names.

        Raises:
            LocatedError: saying where, what and what to do.
        """
        if problem.model.normalises_batches and not self.keeps_statistics:
            raise LocatedError(
                f"problem.model.norm must be group for the algorithm "
                f"{tag(type(self))!r}, which has no place for a batch's statistics, "
                f"got 'batch'; change it",
            )

    def check_model(self, counts: ModelCounts) -> None:
        """Refuses models of which only their arrays tell what they keep.

        Args:
            counts: The counts of the problem's model.

        Raises:
            ScenarioError: It keeps statistics of batches, for which there is no place.
        """
        if counts.num_statistics and not self.keeps_statistics:
            raise ScenarioError(
                f"problem.model must keep no statistics of batches for the algorithm "
                f"{tag(type(self))!r}, which has no place for them, got "
                f"{counts.num_statistics} numbers; normalise layers or groups, or take "
                f"sgd, fed_async, fed_buff or psgd"
            )

    def batch_size(self, num_samples: int) -> int:
        """Returns the number of samples in a batch of a client with `num_samples`."""
        if isinstance(self.batch, int):
            return self.batch
        return max(1, round(self.batch * num_samples))

    def sampler(
        self, seed: int, pools: list[Int[np.ndarray, " _"]], protocol: Any
    ) -> Sampler:
        """Returns the minibatches of a run.

        Args:
            seed: Seed of the run.
            pools: Sample ids of each client, or one pool that all clients draw from.
            protocol: The protocol of the scenario.

        Raises:
            ScenarioError: A batch is larger than a client's samples.
        """
        common = protocol.common_batch and self.family == "vertical"
        if self.samples is not None:
            common = self.samples == "common"
        smallest = min(pool.size for pool in pools)
        size, steps = self.batch_size(smallest), self.batches_per_job
        if self.shortens and size > smallest and not common:
            return UnevenSampler(seed, pools, size, sampling=self.sampling, steps=steps)
        return Sampler(
            seed,
            pools,
            size,
            sampling=self.sampling,
            steps=steps,
            common=common,
            by_round=protocol.batch_per_round,
        )

    def workload(
        self, shape: ProblemShape, sampler: Sampler, protocol: Any
    ) -> Workload:
        """Returns what a job computes and sends.

        Args:
            shape: The problem's counts.
            sampler: The minibatches of the run.
            protocol: The protocol of the scenario; where it pools all data, nothing
                is sent.
        """
        messages = self.messages(shape, common=sampler.common)
        sent = {"up": 0, "down": 0}
        for message in () if protocol.pooled else messages:
            sent[message.direction] += message.bytes
        num_samples, parties = shape.num_samples, 1
        if self.family == "vertical":  # each party contributes for the same samples
            num_samples, parties = sampler.num_samples, shape.num_clients
        per_job = shape.batch * self.batches_per_job
        own_steps, own_samples = sampler.own_steps, sampler.own_samples
        if own_samples is not None:
            per_job = float(own_samples.mean())
        return Workload(
            upload_bytes=sent["up"],
            download_bytes=sent["down"],
            contributions_per_epoch=parties * num_samples / per_job,
            steps=sampler.steps if own_steps is not None else self.steps_per_job,
            samples=shape.batch * self.steps_per_job,
            overhead_s=0 if protocol.pooled else self.overhead_s(shape),
            own_steps=() if own_steps is None else tuple(own_steps.tolist()),
            own_samples=() if own_samples is None else tuple(own_samples.tolist()),
        )

    def structure(self) -> dict[str, Any]:
        """Returns all but the numbers that runs of one program may differ in."""
        numbers = {"step_size", "server_step_size", *self.numbers}
        rest = self.model_dump(mode="json", exclude=numbers)
        return rest | programs(self)

    @abstractmethod
    def messages(self, shape: ProblemShape, *, common: bool) -> tuple[Message, ...]:
        """Returns the messages of one contribution.

        Args:
            shape: The problem's counts.
            common: Whether the workers of a row share one batch.
        """

    def overhead_s(self, shape: ProblemShape) -> float:
        """Returns virtual seconds of a job on top of its client's laws.

        Args:
            shape: the problem's counts.
        """
        return 0
