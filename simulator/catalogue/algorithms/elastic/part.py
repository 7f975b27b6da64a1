"""Elastic averaging SGD. No JAX in here."""

from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

from pydantic import Field

from ....engine.algorithm import Algorithm, Message, ProblemShape, model_and_gradient
from ....parts.base import LocatedError

if TYPE_CHECKING:
    from ....engine.setup import RunSetup
    from ....problem.constants import Constants
    from ....scenario.scenario import Problem
    from .kernel import ElasticKernel


class Easgd(Algorithm):
    """Elastic averaging: a client keeps its model, and a spring pulls it to a centre.

    With x_i the client's model and c the server's, the centre, an arrival makes of both
    at once x_i <- x_i - a (x_i - c) and c <- c + a (x_i - c). The client continues with
    its own model; the first gradient of its next job is taken where it was before.

    Source: Zhang, Choromanska and LeCun, Deep Learning with Elastic Averaging SGD
    (2015), Algorithm 1; synchronous: equations 2 and 3.
    """

    kind: Literal["easgd"] = "easgd"
    family: ClassVar[str] = "horizontal"
    numbers: ClassVar[tuple[str, ...]] = ("moving_rate",)
    protocols: ClassVar[tuple[str, ...]] = ("asynchronous", "synchronous")
    local_steps: Annotated[int, Field(ge=1)] = 1
    """Communication period: steps of a client between two exchanges."""
    moving_rate: Annotated[float, Field(gt=0, le=1)] | None = None
    """Part a of the distance by which client and centre move to each other; by default
    0.9 over the number of clients, as in the paper's experiments."""

    def check(self, problem: "Problem", protocol: Any) -> None:
        super().check(problem, protocol)
        if protocol.gathers or getattr(protocol, "warm_up", False):
            raise LocatedError(
                "algorithm.kind must not be easgd where contributions gather before a "
                "commit; leave out what lets them wait",
            )

    def messages(self, shape: ProblemShape, *, common: bool) -> tuple[Message, ...]:
        return model_and_gradient(shape)

    def make(self, setup: "RunSetup", constants: "Constants") -> "ElasticKernel":
        from .kernel import build

        return build(self, setup, constants)
