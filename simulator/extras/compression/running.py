"""What runs of compression: one step of a client's memory, in either direction."""

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from ...algorithms.base import summed
from ...algorithms.client_work import OF_SERVER, Work
from ...algorithms.federated.stages import BROADCAST_ERROR, ChainStage, ClientJob
from ...learning.constants import Constants
from ...learning.horizontal import HorizontalProblem
from ...models.parts import Shapes
from ...setup import RunSetup
from .stages import Broadcast, Compress, Compression, Compressor, Feedback

OF_MESSAGES, OF_MODELS = OF_SERVER - 1, OF_SERVER - 2
"""Numbers of the keys of what either direction draws; no client has them."""


class Remembered(NamedTuple):
    """What is kept of one client.

    Attributes:
        memory: What it has not sent (`ef`), or what the other side has of it (`ef21`);
            None without a memory.
        own: The compressor's state.
    """

    memory: Float[Array, " P"] | None
    own: Any


class Compressing(ChainStage):
    """Compresses messages of one direction.

    Attributes:
        compressor: The compressor.
        feedback: What is remembered of errors.
        scale: What is made is multiplied by it.
        arrays: Shapes of the model's arrays, where the compressor asks for them.
    """

    compressor: Compressor = eqx.field(static=True)
    feedback: Feedback = eqx.field(static=True)
    scale: float = eqx.field(static=True)
    arrays: Shapes | None = eqx.field(static=True)

    @property
    def draws(self) -> bool:
        return self.compressor.draws

    def start(
        self, problem: HorizontalProblem, weights: Float[Array, "..."]
    ) -> Remembered:
        nothing = jnp.zeros_like(weights).reshape(-1)
        own = self.compressor.start(nothing, self.arrays)
        return Remembered(None if self.feedback == "none" else nothing, own)

    def compressed(
        self, given: Float[Array, "..."], state: Remembered, job: ClientJob, of: int
    ) -> tuple[Float[Array, "..."], Remembered, Float[Array, ""]]:
        """Returns what arrives of a message, the memory, and the relative error.

        Args:
            given: The message.
            state: What is remembered of the client.
            job: Its job, which keys what is drawn.
            of: Number of the direction's keys.
        """
        key, values, memory = None, given.reshape(-1), state.memory
        if self.draws:
            assert job.key is not None
            for number in (of, job.worker, job.number):
                key = jax.random.fold_in(job.key if key is None else key, number)
        if memory is not None:
            values = values + memory if self.feedback == "ef" else values - memory
        made, own = self.compressor(values, state.own, key, self.arrays)
        made = self.scale * made
        arrived, left = made, values - made
        if memory is not None and self.feedback == "ef":
            memory = left
        elif memory is not None:
            memory = arrived = memory + made
        squared = summed(jnp.square, values)
        error = summed(jnp.square, left) / jnp.where(squared > 0, squared, 1)
        return arrived.reshape(given.shape), Remembered(memory, own), error


class CompressedMessages(Compressing):
    """Compresses what clients send."""

    def __call__(
        self, job: ClientJob, work: Work, state: Remembered
    ) -> tuple[Work, Remembered]:
        """Returns the contribution as it arrives, and the client's memory."""
        found = self.compressed(work.message, state, job, OF_MESSAGES)
        message, state, error = found
        info = work.info | {"compression_error": error}
        return work._replace(message=message, info=info), state


class CompressedModels(Compressing):
    """Compresses what clients read."""

    def start(
        self, problem: HorizontalProblem, weights: Float[Array, "..."]
    ) -> Remembered:
        return super().start(problem, weights)._replace(memory=weights.reshape(-1))

    def __call__(
        self, job: ClientJob, state: Remembered
    ) -> tuple[ClientJob, Remembered]:
        """Returns the job at the model that the client has got, and that model."""
        given = job.problem.narrowed(job.read)
        read, state, error = self.compressed(given, state, job, OF_MODELS)
        info = job.info | {BROADCAST_ERROR: error}
        return job._replace(read=read, info=info), state


def sending(part: Compress, setup: RunSetup, _: Constants) -> CompressedMessages:
    """Returns the stage of what clients send."""
    biased = part.compressor.variance(setup.shape.num_weights) is None
    feedback = part.feedback or ("ef" if biased else "none")
    return _made(CompressedMessages, part, feedback, setup)


def broadcasting(part: Broadcast, setup: RunSetup, _: Constants) -> CompressedModels:
    """Returns the stage of what clients read."""
    return _made(CompressedModels, part, "ef21", setup)


def _made(kind: Any, part: Compression, feedback: Feedback, setup: RunSetup) -> Any:
    omega = part.compressor.variance(setup.shape.num_weights) or 0.0
    scale = 1.0 if feedback == "none" else 1 / (1 + omega)
    return kind(part.compressor, feedback, scale, setup.shape.arrays)
