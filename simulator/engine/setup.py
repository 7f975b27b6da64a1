"""The facts of a run, before any array is on a device. No JAX."""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Float

from ..privacy.ledger import Ledger
from ..privacy.releases import Guarantee
from ..problem.capabilities import AveragesModels, NoisyMessages, StoresEmbeddings
from ..problem.learning import Learning, Shares
from ..problem.models.parts import ProblemShape
from ..problem.sampler import Sampler
from ..world.protocol_abilities import MixesModels
from ..world.streams import Purpose, Streams

if TYPE_CHECKING:
    from ..scenario.scenario import Scenario
    from ..scenario.study import Run
    from ..timelines.base import RunTimeline


@dataclass(frozen=True)
class RunSetup:
    """Everything about a run that follows from its scenario and data.

    The one bundle of facts: algorithms, engine and tables are made from it.

    Attributes:
        run: The run of the study, with its scenario and seed.
        learning: The problem with its data, made once for all runs that share it.
        shares: The data, and the client that each part belongs to.
        shape: Counts that messages depend on.
        sampler: The minibatches.
        timeline: The timeline, simulated or recorded.
    """

    run: "Run"
    learning: Learning
    shares: Shares
    shape: ProblemShape
    sampler: Sampler
    timeline: "RunTimeline"

    @property
    def scenario(self) -> "Scenario":
        """The run's scenario, all of whose values are chosen."""
        return self.run.scenario

    @property
    def samples(self) -> tuple[int, int]:
        """Shape of a row's samples, `V` and `S`."""
        return 1 if self.sampler.common else self.timeline.width, self.sampler.width

    @property
    def coordinated(self) -> bool:
        """Whether one common batch is embedded freshly by all parties in each row."""
        vertical = self.scenario.algorithm.family == "vertical"
        meets = self.scenario.protocol.traits.common_batch
        return vertical and meets and self.sampler.common

    @property
    def upload_ratio(self) -> float:
        """Samples of an upload over all samples."""
        algorithm = self.scenario.algorithm
        stored = isinstance(algorithm, StoresEmbeddings)
        if stored and not algorithm.uploads_batch and not self.coordinated:
            return 1.0
        return self.shape.batch / self.shape.num_samples

    @cached_property
    def guarantees(self) -> tuple[Guarantee, ...]:
        """Privacy guarantees of one message of each client; empty without noise.

        Raises:
            UserError: A budget of the noise cannot be reached.
        """
        algorithm = self.scenario.algorithm
        if not isinstance(algorithm, NoisyMessages):
            return ()
        found = algorithm.guarantees(
            self.shares.num_samples, self.shape.batch, self.shape.num_weights
        )
        if not (reported := self.timeline.reported):
            return found
        more = f", but {reported}, which clients report without noise"
        return tuple(replace(g, formal=False, why=g.why + more) for g in found)

    def ledger(self) -> Ledger | None:
        """Returns a new ledger of the messages; None if none is configured.

        Raises:
            UserError: A budget of the noise cannot be reached.
        """
        privacy = self.scenario.privacy
        if privacy is None:
            return None
        names = privacy.names(self.scenario.algorithm)
        clients = self.scenario.clients
        drawn = clients.selection.in_flight if clients and clients.selection else 0
        return Ledger(self.guarantees, names, privacy.delta, drawn)

    @cached_property
    def mixing(self) -> Float[np.ndarray, "Q K K"] | None:
        """Matrices by which gossip averages all models, in turn; None in pairs."""
        algorithm, protocol = self.scenario.algorithm, self.scenario.protocol
        if not isinstance(protocol, MixesModels):
            return None
        streams = Streams(self.run.seed)
        return protocol.mixing(
            self.scenario.num_clients,
            lambda number: streams.at(Purpose.GRAPH, 0, number),
            pushes=isinstance(algorithm, AveragesModels) and algorithm.pushes,
        )
