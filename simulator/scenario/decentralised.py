"""Decentralised SGD: every worker has a model of its own. No JAX here.

Which of the known methods it is follows from the protocol: `gossip` in pairs is
AD-PSGD, with everyone in rounds SYNC (all-reduce SSGD), with all neighbours D-PSGD.

Source: Xu, Zhang and Wang, A(DP)2SGD; decisions (A-) are in
docs/decisions.md. Lian, Zhang, Zhang, Hsieh, Zhang and Liu, D-PSGD (2017); Lian, Zhang,
Zhang and Liu, AD-PSGD (2018).
"""

from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field, model_validator

from simulator.config.base import Config, PlacedError
from simulator.protocols import Gossip
from simulator.protocols.gossip.mixing import is_directed
from simulator.scenario.algorithms import (
    FLOAT_BYTES,
    Algorithm,
    Message,
    Positive,
    ProblemShape,
)

Part = Annotated[float, Field(gt=0, lt=1)]


class Decentralised(Algorithm):
    """What all of them share: the gradient at a worker's snapshot steps its own model.

    The average of all workers' models is what is evaluated (A-14).
    """

    family: ClassVar[str] = "horizontal"
    protocols: ClassVar[tuple[str, ...]] = ("gossip",)
    pushes: ClassVar[bool] = False
    """Whether models are shared out as in push-sum, which directed graphs need."""
    worker_metrics: ClassVar[bool] = True
    """Whether workers have models of their own that metrics can speak of."""

    def messages(self, shape: ProblemShape, *, common: bool) -> tuple[Message, ...]:
        """Returns what a worker sends in an averaging: its model."""
        del common
        return (Message("model", "up", FLOAT_BYTES * shape.num_weights),)


class _Merging(Decentralised):
    merge: Literal["mean", "age"] = "mean"
    """How two models merge: their mean, or by weights in proportion to their ages, the
    steps that have gone into them; then both have the age of the older one. Source:
    Hegedűs, Danner and Jelasity, Decentralized Learning Works (2021), section 3."""


class Psgd(_Merging):
    """Parallel SGD: AD-PSGD, D-PSGD or SYNC, as the protocol has it.

    Source: Lian et al. (2017), Algorithm 1; Lian et al. (2018), Algorithm 1.
    """

    kind: Literal["psgd"] = "psgd"
    made_by: ClassVar[str] = "simulator.algorithms.decentralised:build"


class Noise(Config):
    """Normal noise on every gradient.

    Either `sigma`, or a `budget` from which Theorem 2 has it.
    """

    sigma: Annotated[float, Field(ge=0)] | None = None
    """Standard deviation of every coordinate, absolute (A-04)."""
    budget: "Budget | None" = None
    on: Literal["sum", "mean"] = "sum"
    """Whether `sigma` is of the noise on the sum of a batch's gradients, as the
    experiments have it, or on their mean, as Theorem 2 does (A-01)."""
    sensitivity: Literal["consistent", "paper"] = "consistent"
    """What the accounts take for the sensitivity of what gets the noise: 2 G of a sum
    and 2 G / B of a mean, or 2 G / B of either (A-02)."""
    clip: Literal["none", "sample"] = "none"
    """Whether each sample's gradient is clipped to norm G; without that G is but
    assumed, and nothing is guaranteed (A-03)."""
    bound: Positive = 1.0
    """G, l2 norm of a sample's gradient."""

    @model_validator(mode="after")
    def _one_way(self) -> "Noise":
        if (self.sigma is None) == (self.budget is None):
            raise ValueError(
                "must have either sigma or budget, not both or neither; remove one or "
                "add one"
            )
        return self

    def per_mean(self, batch: int) -> float:
        """Returns what a standard deviation is divided by for a batch's mean."""
        return float(batch if self.on == "sum" else 1)


class Budget(Config):
    """What the workers' noise is for; Theorem 2 says how much it is.

    Source: A(DP)2SGD, Theorem 2, with the best of its parameters mu (A-06).
    """

    epsilon: Positive
    delta: Part = 1e-5
    iterations: Annotated[int, Field(ge=1)]
    """T: steps of all workers together."""


class Adp2sgd(_Merging):
    """A(DP)2SGD: parallel SGD with normal noise on every gradient.

    Source: A(DP)2SGD, Algorithm 1; in rounds with everyone it is its private SYNC.
    """

    kind: Literal["adp2sgd"] = "adp2sgd"
    made_by: ClassVar[str] = "simulator.algorithms.decentralised:build"
    noise: Noise

    def structure(self) -> dict[str, Any]:
        """Returns all but the numbers that runs of one program may differ in."""
        found = super().structure()
        return {**found, "noise": self.noise.clip}


class Sgp(Decentralised):
    """Stochastic gradient push: shares of models go along directed edges.

    What a worker computes and is evaluated with is its model over its push-sum weight.

    Source: Assran, Loizou, Ballas and Rabbat, Stochastic Gradient Push for Distributed
    Deep Learning (2019), Algorithm 1.
    """

    kind: Literal["sgp"] = "sgp"
    made_by: ClassVar[str] = "simulator.algorithms.decentralised:build"
    pushes: ClassVar[bool] = True


def check_decentralised(protocol: Config, algorithm: Any, model: Config) -> None:
    """Refuses what workers with models of their own cannot do, or others cannot.

    Args:
        protocol: of the scenario.
        algorithm: of any family.
        model: of the problem.

    Raises:
        PlacedError: saying where, what and what to do.
    """
    normalised = getattr(model, "norm", "") == "batch"
    kind = algorithm.kind
    if not isinstance(algorithm, Decentralised):
        if normalised:
            raise PlacedError(
                f"problem.model.norm must be group for the algorithm {kind!r}, which "
                f"has no place for a batch's statistics, got 'batch'; change it",
                ("problem", "model", "norm"),
            )
        return
    if not isinstance(protocol, Gossip):
        return  # refused elsewhere
    noise = getattr(algorithm, "noise", None)
    if normalised and isinstance(noise, Noise) and noise.clip == "sample":
        raise PlacedError(
            "algorithm.noise.clip must be none where samples are normalised together, "
            "got 'sample'; change it, or problem.model.norm to group",
            ("algorithm", "noise", "clip"),
        )
    if algorithm.pushes:
        if protocol.average != "neighbours" or protocol.order != "step_then_average":
            raise PlacedError(
                f"protocol must have average: neighbours and order: step_then_average "
                f"for the algorithm {kind!r}, got {protocol.average} and "
                f"{protocol.order}; add them",
                ("protocol",),
            )
        return
    if is_directed(protocol.graph):
        raise PlacedError(
            f"protocol.graph must be undirected for the algorithm {kind!r}, "
            f"got {protocol.graph.kind!r}; take the algorithm sgp",
            ("protocol", "graph", "kind"),
        )
    if getattr(algorithm, "merge", "mean") == "age" and protocol.in_rounds:
        raise PlacedError(
            f"algorithm.merge must be mean where all average at once, got 'age' with "
            f"average: {protocol.average}; leave it out",
            ("algorithm", "merge"),
        )
