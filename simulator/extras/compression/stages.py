"""Compression of messages, in either direction: stages and the base.

No JAX is imported until a run needs it.

A compressor C is unbiased, E C(x) = x with E |C(x) - x|^2 <= omega |x|^2, or contracts:
|C(x) - x|^2 <= (1 - alpha) |x|^2. Stages with a memory need contractions: there an
unbiased C is multiplied by 1 / (1 + omega), and contracts with alpha = 1 / (1 + omega).
"""

from abc import abstractmethod
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, Self

from jaxtyping import Float

from ...catalogue.algorithms.federated.chain import (
    Chained,
    ReadPart,
    SendPart,
    StagePart,
    in_program,
)
from ...catalogue.algorithms.federated.stages import BROADCAST_ERROR, ClientJob
from ...parts.base import Part
from ...parts.catalogue import AnyPart
from ...parts.errors import ScenarioError
from ...parts.lazy import Late
from ...problem.constants import Constants
from ...problem.models.parts import ProblemShape, Shapes

if TYPE_CHECKING:
    import jax
    import jax.numpy as jnp
    from jaxtyping import Array, PyTree

    from ...engine import client_work, kernel
    from ...engine.client_work import Work
    from ...engine.setup import RunSetup
    from ...problem.horizontal import HorizontalProblem

    AnyCompressor = Any
else:
    jax, jnp = Late("jax"), Late("jax.numpy")
    kernel = Late("...engine.kernel", __package__)
    client_work = Late("...engine.client_work", __package__)
    Array = PyTree = Work = HorizontalProblem = RunSetup = Any

    AnyCompressor = Annotated[Any, AnyPart("compressors")]
"""Any compressor, chosen by its kind."""
Feedback = Literal["none", "ef", "ef21"]
OF_MESSAGES, OF_MODELS = 1, 2
"""Directions, for the keys of random draws."""


class Compressor(Part):
    """Common base of the compressors: of a vector, makes one that takes fewer bytes.

    It is called with the vector, its own state, a key (None unless it `draws`) and the
    shapes of the model's arrays (None unless it is `by_arrays`); it returns the
    compressed vector, of the same size, and its state.
    """

    draws: ClassVar[bool] = False
    """Whether it needs a key."""
    by_arrays: ClassVar[bool] = False
    """Whether it needs the shapes of the model's arrays."""

    def variance(self, size: int) -> float | None:
        """Returns omega of an unbiased compressor; None, as by default, of others."""

    @abstractmethod
    def num_bytes(self, shape: ProblemShape) -> int:
        """Returns the bytes of a message, indices and scales included."""

    def start(self, values: Array, arrays: PyTree) -> PyTree:
        """Returns the state of one client before its first message: by default none."""

    @abstractmethod
    def __call__(
        self, values: Array, state: PyTree, key: PyTree, arrays: PyTree
    ) -> tuple[Array, PyTree]:
        """Returns the compressed vector, and the state."""


Remembered = tuple[Float[Array, " P"] | None, PyTree]
"""The memory of one client: its unsent part (`ef`), or the other side's copy (`ef21`),
None without a memory; and the compressor's state."""


class Compression(StagePart):
    """What both directions share."""

    statistics_would_be: ClassVar[str] = "sent as they are"
    draws: ClassVar[bool] = True  # some compressors do
    compressor: AnyCompressor
    """The compressor of a message."""
    _memory: Feedback
    _scale: float
    _shapes: Shapes | None

    @property
    def by_arrays(self) -> bool:
        """Whether the compressor needs the shapes of the model's arrays."""
        return self.compressor.by_arrays

    def sent_bytes(self, given: int, shape: ProblemShape) -> int:
        """Returns the bytes of a compressed message.

        Raises:
            ScenarioError: They are no fewer.
        """
        made = self.compressor.num_bytes(shape)
        if made >= given:
            raise ScenarioError(
                f"algorithm's compressor must make a message of {given:,} bytes "
                f"smaller, got {self.compressor.kind!r}, which makes it {made:,}; "
                f"lower its numbers, or take another one or a larger model"
            )
        return made

    @abstractmethod
    def feedback_of(self, variance: float | None) -> Feedback:
        """Returns the error memory for a compressor of a variance."""

    def make(self, setup: RunSetup, constants: Constants) -> Self:
        variance = self.compressor.variance(setup.shape.num_weights)
        memory = self.feedback_of(variance)
        scale = 1.0 if memory == "none" else 1 / (1 + (variance or 0.0))
        facts = {"_memory": memory, "_scale": scale, "_shapes": setup.shape.arrays}
        return in_program(self, ("compressor",), **facts)

    def start(self, problem: HorizontalProblem, weights: Array) -> Remembered:
        nothing = jnp.zeros_like(weights).reshape(-1)
        own = self.compressor.start(nothing, self._shapes)
        return None if self._memory == "none" else nothing, own

    def compressed(
        self, given: Float[Array, "..."], state: Remembered, job: ClientJob, of: int
    ) -> tuple[Float[Array, "..."], Remembered, Float[Array, ""]]:
        """Returns the received message, the memory, and the relative error."""
        key, values, (memory, own) = None, given.reshape(-1), state
        if self.compressor.draws:
            assert job.key is not None
            # No client has the number of a direction.
            for number in (client_work.OF_SERVER - of, job.worker, job.number):
                key = jax.random.fold_in(job.key if key is None else key, number)
        if memory is not None:
            values = values + memory if self._memory == "ef" else values - memory
        made, own = self.compressor(values, own, key, self._shapes)
        made = self._scale * made
        arrived, left = made, values - made
        if memory is not None and self._memory == "ef":
            memory = left
        elif memory is not None:
            memory = arrived = memory + made
        squared = kernel.summed(jnp.square, values)
        error = kernel.summed(jnp.square, left) / jnp.where(squared > 0, squared, 1)
        return arrived.reshape(given.shape), (memory, own), error


class Compress(Compression, SendPart):
    """Compresses clients' messages, each client with its own error memory.

    `none` sends C(g). `ef` sends C(g + e) and keeps the unsent part of g + e as e, to
    be sent later. `ef21` sends C(g - h), by which client and server both move h, and h
    counts as the message. Memories start at zero, and ignore a job whose message is
    lost or rejected: the client undoes its change. They are in gradients, so that a
    step size multiplies old errors as it does new gradients.

    Source: Seide et al., 1-Bit Stochastic Gradient Descent (2014), and Karimireddy et
    al., Error Feedback Fixes SignSGD (2019), Algorithm 1 (`ef`); Richtarik, Sokolov and
    Fatkhullin, EF21 (2021), Algorithm 2 (`ef21`).
    """

    kind: Literal["compress"] = "compress"
    feedback: Feedback | None = None
    """Memory of errors; by default `ef` of biased compressors, `none` of unbiased."""

    def fits(self, method: Chained) -> None:
        """Refuses what would come after it and undo it."""
        after = method.stages[method.stages.index(self) + 1 :]
        other = next((stage for stage in after if isinstance(stage, SendPart)), None)
        if other is not None:
            raise method.refusal(
                self,
                "",
                "must be the last stage of the message, whose bytes it determines, "
                f"got {getattr(other, 'kind', '')!r} after it; move it down, or "
                "remove one",
            )

    def feedback_of(self, variance: float | None) -> Feedback:
        return self.feedback or ("ef" if variance is None else "none")

    def __call__(
        self, job: ClientJob, work: Work, state: Remembered
    ) -> tuple[Work, Remembered]:
        """Returns the contribution as it arrives, and the client's memory."""
        message, state, error = self.compressed(work.message, state, job, OF_MESSAGES)
        info = work.info | {"compression_error": error}
        return work._replace(message=message, info=info), state


class Broadcast(Compression, ReadPart):
    """Compresses the server's model on its way to clients.

    The server keeps each client's model, h, and sends C(x - h), by which both move h;
    the client works at h. It begins with the model's start. In rounds of all clients
    this is EF21's bidirectional form; where clients read at any time, h is a model for
    each. h moves with every model that arrives at a client, also of a job that is
    rejected, stopped or lost later. If a job ends before its model has arrived, both
    sides keep h.

    Source: Fatkhullin et al., EF21 with Bells & Whistles (2021), EF21-BC.
    """

    kind: Literal["broadcast"] = "broadcast"

    def fits(self, method: Chained) -> None:
        if sum(isinstance(stage, Broadcast) for stage in method.stages) > 1:
            raise method.refusal(
                self, "", "must be the only broadcast, got two; remove one"
            )

    def feedback_of(self, variance: float | None) -> Feedback:
        return "ef21"

    def start(self, problem: HorizontalProblem, weights: Array) -> Remembered:
        return weights.reshape(-1), super().start(problem, weights)[1]

    def __call__(
        self, job: ClientJob, state: Remembered
    ) -> tuple[ClientJob, Remembered]:
        """Returns the job at the model that the client has got, and that model."""
        given = job.problem.narrowed(job.read)
        read, state, error = self.compressed(given, state, job, OF_MODELS)
        info = job.info | {BROADCAST_ERROR: error}
        return job._replace(read=read, info=info), state
