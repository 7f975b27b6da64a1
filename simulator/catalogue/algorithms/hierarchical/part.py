"""Hierarchical averaging. No JAX in here."""

from typing import TYPE_CHECKING, Annotated, ClassVar, Literal

from pydantic import Field

from ....engine.algorithm import Algorithm, Bytes, ProblemShape, model_and_gradient

if TYPE_CHECKING:
    from ....engine.setup import RunSetup
    from ....problem.constants import Constants
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
