"""Hierarchical averaging. No JAX in here."""

from typing import TYPE_CHECKING, Annotated, ClassVar, Literal

from pydantic import Field

from ....engine.algorithm import Algorithm, Bytes, ProblemShape, model_and_gradient
from ....parts.base import LocatedError
from ....world.protocol import Protocol

if TYPE_CHECKING:
    from ....engine.setup import RunSetup
    from ....problem.constants import Constants
    from ....scenario.scenario import Problem
    from .kernel import HierarchicalKernel


class Hierarchical(Algorithm):
    """Edges average their clients' models, and the cloud averages those of edges.

    An edge averages its clients' models after local steps. A cloud that waits takes the
    mean of the edges' models, by their numbers of clients; one that does not wait moves
    towards each by a fraction: x <- (1 - mixing) x + mixing x_edge. Edges take the
    cloud's model. An edge that does not wait for its clients moves towards each of
    their models by that fraction.

    Source: Liu, Zhang, Song and Letaief (2020), Algorithm 1; `mixing`: Xie, Koyejo and
    Gupta, Asynchronous Federated Optimization (2019), Algorithm 1.
    """

    kind: Literal["hierarchical"] = "hierarchical"
    family: ClassVar[str] = "horizontal"
    numbers: ClassVar[tuple[str, ...]] = ("mixing",)
    protocols: ClassVar[tuple[str, ...]] = ("hierarchy",)
    local_steps: Annotated[int, Field(ge=1)] = 1
    """Steps that a client makes on its own copy, each on a new batch."""
    mixing: Annotated[float, Field(gt=0, le=1)] = 0.5
    """Fraction of an edge's model in the model of a cloud that does not wait, and of a
    client's in that of an edge that does not wait."""

    def messages(self, shape: ProblemShape, *, common: bool) -> Bytes:
        return model_and_gradient(shape)

    def make(self, setup: "RunSetup", constants: "Constants") -> "HierarchicalKernel":
        from .kernel import build

        return build(self, setup, constants)


class FedAt(Hierarchical):
    """Weighs the newest model of each tier by the updates of the tier opposite to it.

    An edge is a tier of clients of like speed, the fastest first, and makes rounds by
    itself. After T_m updates of tier m of M, and T of all, the cloud's model is sum_m
    (T_{M + 1 - m} / T) x_m, x_m being the newest mean of tier m's clients, at first the
    start. So a slow tier has the weight of a fast one's number of updates.

    Source: Chai et al., FedAT: A High-Performance and Communication-Efficient Federated
    Learning System with Asynchronous Tiers (2021), Algorithm 1 and its weighted
    aggregation; all clients of a tier work, and messages are not compressed.
    """

    kind: Literal["fed_at"] = "fed_at"  # pyright: ignore
    mixing: ClassVar[float] = 1.0  # pyright: ignore
    numbers: ClassVar[tuple[str, ...]] = ("proximal",)
    proximal: Annotated[float, Field(ge=0)] = 0.0
    """lambda: clients step on their loss plus half of it times the squared distance
    from the model read."""

    def check(self, problem: "Problem", protocol: Protocol) -> None:
        super().check(problem, protocol)
        usual = {"cloud": "asynchronous", "edge": "synchronous", "rounds": 1}
        for key, wanted in (usual | {"within": None}).items():
            if (given := getattr(protocol, key, wanted)) != wanted:
                rule = "left out" if wanted is None else wanted
                raise LocatedError(
                    f"protocol.{key} must be {rule} with fed_at, whose tiers send each "
                    f"round's model to a cloud that does not wait, got "
                    f"{getattr(given, 'kind', given)!r}; change it",
                )

    def make(self, setup: "RunSetup", constants: "Constants") -> "HierarchicalKernel":
        import jax.numpy as jnp

        from .kernel import build
        from .tiers import TierKernel

        proximal = jnp.asarray(self.proximal, float)
        return build(self, setup, constants, TierKernel, proximal=proximal)
