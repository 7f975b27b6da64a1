"""Decentralised SGD: every worker has its own model. No JAX here.

Which of the known methods it is follows from the protocol: `gossip` in pairs is
AD-PSGD, with everyone in rounds SYNC (all-reduce SSGD), with all neighbours D-PSGD.

Source: Xu, Zhang and Wang, A(DP)2SGD; decisions (A-) are in
evidence/pages/decisions.md. Lian, Zhang, Zhang, Hsieh, Zhang and Liu, D-PSGD (2017);
Lian, Zhang, Zhang and Liu, AD-PSGD (2018).
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

from pydantic import Field, model_validator

from ....engine.algorithm import FLOAT_BYTES, Algorithm, Bytes, ProblemShape
from ....engine.optimizers.part import Optimizer
from ....parts.base import Config, LocatedError, tag
from ....parts.errors import ScenarioError
from ....parts.metrics import NON_NEGATIVE, HasModels, Metric, Models
from ....privacy.gossip_noise import Noise
from ....privacy.releases import SAMPLE, Calibrated, Guarantee
from ....problem.capabilities import AveragesModels, KeepsStatistics, NoisyMessages
from ....problem.models.parts import ModelCounts

if TYPE_CHECKING:
    from ....engine.setup import RunSetup
    from ....problem.constants import Constants
    from ....scenario.scenario import Problem
    from .kernel import GossipKernel
    from .merging import Merging


class Decentralised(AveragesModels, KeepsStatistics, HasModels, Algorithm):
    """Common base: the gradient at a worker's snapshot steps its own model.

    The average of all workers' models is evaluated (A-14).
    """

    family: ClassVar[str] = "horizontal"
    protocols: ClassVar[tuple[str, ...]] = ("gossip",)

    @property
    def models(self) -> frozenset[Models]:
        return frozenset({Models.EACH_WORKER, Models.ALL_WORKERS})

    def check(self, problem: "Problem", protocol: Any) -> None:
        if self.pushes:
            pushed = (protocol.average, protocol.order)
            if pushed != ("neighbours", "step_then_average"):
                raise LocatedError(
                    f"protocol must have average: neighbours and order: "
                    f"step_then_average for the algorithm {tag(type(self))!r}, got "
                    f"{protocol.average} and {protocol.order}; add them",
                )
        elif protocol.is_directed:
            raise LocatedError(
                f"protocol.graph must be undirected for the algorithm "
                f"{tag(type(self))!r}, got {protocol.graph.kind!r}; take one such as "
                f"ring or edges, or (for rounds with all neighbours) the algorithm sgp",
                ("protocol", "graph", "kind"),
            )

    def messages(self, shape: ProblemShape, *, common: bool) -> Bytes:
        return {"up": FLOAT_BYTES * shape.num_weights}

    def make(self, setup: "RunSetup", constants: "Constants") -> "GossipKernel":
        from .methods import build

        return build(self, setup, constants)


class Augmentation(Config):
    """Random crops and mirrors of a batch's images, drawn for every job.

    Padding is zeros of the scaled features: black with `scale: unit`, the mean image
    with `standard` (the reference implementation pads with black).

    Source: the public PyTorch implementation that A(DP)2SGD, section 5.1, names
    (pytorch-cifar: RandomCrop(32, padding=4), RandomHorizontalFlip).
    """

    crop: Annotated[int, Field(ge=0, le=100)] = 4
    """Pixels of padding on each side, out of which a crop of the old size is cut."""
    flip: bool = True
    """Whether every second image is mirrored, by chance."""

    @model_validator(mode="after")
    def _changes_something(self) -> "Augmentation":
        if not (self.crop or self.flip):
            raise LocatedError(
                "crop must be >= 1 without flip, got 0; leave augmentation out",
            )
        return self


class Meeting(Decentralised):
    """Common base of the methods whose models meet in pairs, or all at once."""

    protocols: ClassVar[tuple[str, ...]] = ("gossip", "push_gossip")
    merge: Literal["mean", "age", "replace", "cached"] = "mean"
    """How two models merge: their mean; or by weights in proportion to their ages,
    their numbers of steps, and then both have the age of the older one; or `replace`,
    where a model that is pushed replaces the receiver's own, so that models walk at
    random; or `cached`: the receiver keeps the last model of each neighbour that has
    reached it, and averages its own and all of these, for which it stores K models.
    Source: Hegedűs, Danner and Jelasity, Decentralized Learning Works (2021), section
    3; Ormándi, Hegedűs and Jelasity (2013), RW; the caches of gossipy's
    `CacheNeighNode`, which merges with one of them when it sends.
    """
    optimizer: Optimizer | None = None
    """Each worker's own optimiser, of noisy gradients where there is noise; its moments
    are not averaged. By default plain SGD. Weight decay is `problem.l2`."""
    augmentation: Augmentation | None = None
    """Random augmentation of the images of a batch."""

    def merging(self) -> "Merging":
        """Returns the way of merging two workers' models; a variant has its own."""
        from .merging import WAYS  # JAX

        return WAYS[self.merge]()

    def check(self, problem: "Problem", protocol: Any) -> None:
        super().check(problem, protocol)
        if self.augmentation and (problem.model.is_linear or problem.model.sequential):
            raise LocatedError(
                f"algorithm.augmentation must be with a network for images, got the "
                f"model {tag(type(problem.model))!r}; leave it out",
            )
        if self.merge == "age" and protocol.average in ("all", "neighbours"):
            raise LocatedError(
                f"algorithm.merge must be mean where all average at once, got 'age' "
                f"with average: {protocol.average}; leave it out",
            )
        if self.merge in ("replace", "cached") and protocol.average != "push":
            raise LocatedError(
                f"algorithm.merge must be mean or age where two models become one, got "
                f"{self.merge!r}; take the protocol push_gossip",
            )


class Psgd(Meeting):
    """Parallel SGD: AD-PSGD, D-PSGD or SYNC, as the protocol has it.

    Source: Lian et al. (2017), Algorithm 1; Lian et al. (2018), Algorithm 1.
    """

    kind: Literal["psgd"] = "psgd"


class Adp2sgd(NoisyMessages, Meeting):
    """A(DP)2SGD: parallel SGD with normal noise on every gradient.

    Source: A(DP)2SGD, Algorithm 1; in rounds with everyone it is its private SYNC.
    """

    kind: Literal["adp2sgd"] = "adp2sgd"
    noise: Noise
    """Noise on the messages."""

    def check(self, problem: "Problem", protocol: Any) -> None:
        if problem.model.normalises_batches and self.clips_samples:
            raise LocatedError(
                "algorithm.noise.clip must be none where samples are normalised "
                "together, got 'sample'; change it, or problem.model.norm to group",
            )
        super().check(problem, protocol)

    def check_model(self, counts: ModelCounts) -> None:
        if counts.num_statistics and self.clips_samples:
            raise ScenarioError(
                "algorithm.noise.clip must be none where samples are normalised "
                "together, got 'sample'; change it, or the model's normalisation"
            )

    @property
    def clips_samples(self) -> bool:
        return self.noise.clip == "sample"

    @property
    def calibrated(self) -> Calibrated | None:
        """Steps of all workers together that Theorem 2's noise is calculated for."""
        budget = self.noise.budget
        if budget is None:
            return None
        key = "algorithm.noise.budget.iterations"
        return Calibrated(key, in_all=budget.iterations)

    @property
    def noise_law(self) -> str:
        return "gaussian"

    def guarantees(
        self, num_samples: Sequence[int], batch: int, num_weights: int
    ) -> tuple[Guarantee, ...]:
        from ....privacy import gossip_noise, guarantees  # SciPy

        noise = self.noise
        sigma = gossip_noise.sigma_of(noise, num_samples, batch)
        name = f"{guarantees.NAMES['gaussian']} on the {noise.on}, clip: {noise.clip}"
        lacks = gossip_noise.lacking(noise) + guarantees.lacking(self)
        why = "the noise is for the l2 sensitivity of clipped samples"
        if lacks:
            why += f", but {'; '.join(lacks)}"
        found = []
        for n in num_samples:
            release = gossip_noise.release_of(noise, sigma, n, batch)
            release = guarantees.repeated(release, self.sampling, n, batch)
            said = why + guarantees.repeats(batch, n, self.sampling)
            found.append(Guarantee(release, not lacks, said, name, SAMPLE))
        return tuple(found)

    def structure(self) -> dict[str, object]:
        found = super().structure()
        return {**found, "noise": self.noise.clip}


class Sgp(Decentralised):
    """Stochastic gradient push: shares of models go along directed edges.

    A worker computes with its model over its push-sum weight, which is also evaluated.

    Source: Assran, Loizou, Ballas and Rabbat, Stochastic Gradient Push for Distributed
    Deep Learning (2019), Algorithm 1.
    """

    kind: Literal["sgp"] = "sgp"
    pushes: ClassVar[bool] = True


CONSENSUS_DISTANCE = Metric(
    "consensus_distance",
    "stalesim.simulator.catalogue.algorithms.decentralised.merging:consensus_distance",
    meaning="mean squared distance of workers' models from the average model",
    bounds=NON_NEGATIVE,
    models=Models.ALL_WORKERS,
)
