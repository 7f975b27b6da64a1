"""One weight a column."""

from typing import TYPE_CHECKING, ClassVar, Literal

from ....parts.errors import ScenarioError
from ....problem.models.parts import Model

if TYPE_CHECKING:
    from .network import DiagonalNetwork


class Diagonal(Model):
    """One weight a column: output j is `w_j x_j`. It starts at zero.

    With the loss `squared` every client's objective is a quadratic, whose optimum and
    curvature are known: theory's test problem, with the data set `quadratic`.
    """

    kind: Literal["diagonal"] = "diagonal"
    families: ClassVar[tuple[str, ...]] = ("horizontal",)
    is_diagonal: ClassVar[bool] = True

    def num_weights(self, num_features: int, num_outputs: int) -> int:
        if num_features != num_outputs:
            raise ScenarioError(
                f"problem.model.kind must be another for rows of {num_features} "
                f"columns and {num_outputs} outputs, got 'diagonal', which has an "
                f"output for each column; take linear, or the data set quadratic"
            )
        return num_features

    def make(
        self, num_outputs: int, num_features: int, family: str
    ) -> "DiagonalNetwork":
        from .network import DiagonalNetwork

        return DiagonalNetwork(self.num_weights(num_features, num_outputs))
