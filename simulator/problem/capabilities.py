"""Capabilities: answers of some algorithms beyond those of all. No JAX.

A part inherits from those that it has. Callers check for a capability, never for a
part: `isinstance(algorithm, HasStages)`. Those of protocols are in
`world.protocol_abilities`; one more is where it is used: `metrics.HasModels`.
"""

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

from ..privacy.releases import Calibrated, Guarantee
from .models.parts import ModelCounts, ProblemShape

if TYPE_CHECKING:
    from ..engine.algorithm import Algorithm
    from ..world.protocol import Protocol


class AveragesModels:
    """An algorithm whose workers average their own models."""

    pushes: ClassVar[bool] = False
    """Whether models are shared out as in push-sum, which directed graphs need."""


class DividesRows:
    """The kernel is `engine.divided.Divided`, so that rows may be executed in waves."""

    @property
    def beyond_gradients(self) -> tuple[str | int, ...]:
        """Keys by which clients do more than add up gradients; none if nothing.

        Then a function of the user's cannot make these in their place.
        """
        return ()


class KeepsStatistics:
    """Workers keep the running statistics of layers that normalise batches."""

    def check_model(self, counts: ModelCounts) -> None:
        """Refuses models whose arrays do not show their statistics.

        Raises:
            ScenarioError: The model's statistics do not go with an option.
        """


class NoisyMessages:
    """An algorithm that may clip clients' messages, add noise, or end by a budget."""

    @property
    def clips_samples(self) -> bool:
        """Whether the gradient of each sample is clipped by itself."""
        return False

    @property
    def noise_law(self) -> str | None:
        """Law of the noise on the gradients or models that are sent, if any."""
        return None

    @property
    def noise_by_commit(self) -> bool:
        """Whether the noise is on the sum of a commit, and not on each message."""
        return False

    @property
    def calibrated(self) -> Calibrated | None:
        """Budget that the noise is calculated for, which ends runs; None without."""
        return None

    def guarantees(
        self, num_samples: Sequence[int], batch: int, num_weights: int
    ) -> tuple[Guarantee, ...]:
        """Returns the guarantee of one message of each client; none without noise.

        Args:
            num_samples: n of each client.
            batch: b, samples of a local step.
            num_weights: Numbers of a message.

        Raises:
            UserError: a budget of the noise cannot be reached.
        """
        return ()


class StoresEmbeddings:
    """An algorithm whose server stores embeddings, which a protocol may refresh."""

    @property
    def embedding_noise(self) -> Any:
        """Noise on the embeddings that are uploaded."""
        raise NotImplementedError

    @property
    def uploads_batch(self) -> bool:
        """Whether an upload carries its batch's samples alone, and not all samples."""
        raise NotImplementedError

    @property
    def refreshes_all(self) -> bool:
        """Whether each upload refreshes its client's embeddings of all samples first.

        Then their age when they are used follows from who commits.
        """
        raise NotImplementedError


class SumsOutputs:
    """The parties' models meet in a sum of outputs.

    There is no bias besides their weights; the objective may be transfer learning's.
    """


class HasStages(DividesRows, KeepsStatistics, NoisyMessages):
    """A chain of stages, and its consequences.

    Its clients' contributions have losses and norms, for worlds that need them.
    """

    @cached_property
    def stages(self) -> tuple[Any, ...]:
        """The stages, in their order."""
        raise NotImplementedError

    def overhead_s(self, shape: ProblemShape) -> float:
        """Returns the virtual seconds of a job on top of its client's laws."""
        raise NotImplementedError

    @property
    def remembers_reads(self) -> bool:
        """Whether it remembers each client's model, also of jobs that fail."""
        raise NotImplementedError

    @property
    def by_arrays(self) -> bool:
        """Whether messages depend on the shapes of the model's arrays."""
        raise NotImplementedError

    @property
    def can_shorten_jobs(self) -> bool:
        """Whether a job may have fewer local steps than others of its client."""
        raise NotImplementedError

    def biases(self, protocol: "Protocol", num_clients: int) -> Iterator[str]:
        """Yields lines on clients that count more than others."""
        raise NotImplementedError

    def roles(self, num_clients: int, seed: int) -> tuple[str, ...]:
        """Returns the role of each client in a run with this seed.

        Nothing where all are equal.
        """
        raise NotImplementedError


def noise_of(algorithm: "Algorithm") -> NoisyMessages:
    """Returns an algorithm's facts on its messages' noise: nothing without any."""
    return algorithm if isinstance(algorithm, NoisyMessages) else NoisyMessages()
