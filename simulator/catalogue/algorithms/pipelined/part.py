"""Pipelined SGD and its remedies. No JAX in here."""

from typing import TYPE_CHECKING, Annotated, ClassVar, Literal

from pydantic import Field

from ....engine.algorithm import Algorithm, Bytes, ProblemShape
from ....engine.optimizers.part import Optimizer

if TYPE_CHECKING:
    from ....engine.setup import RunSetup
    from ....problem.constants import Constants
    from .kernel import PipelinedKernel


class Pipelined(Algorithm):
    """Steps by gradients of which each stage's is taken at its own delay.

    x_s <- y_s - step_size / max(1, d_s)^delay_power * g_s, d_s is the delay of stage s
    by the protocol. g is the gradient at a model whose stage s has version k - d_s,
    forwards and backwards (weight stashing), or the initial one before that. y is the
    model with its look-ahead, x + look_ahead (x - the x before), of any version. A
    stage has successive matrices of the model, each with the biases and gains after it,
    divided as evenly as possible.

    Source: Narayanan et al., PipeDream (2019), section 3.3; `delay_power`: Yang et al.,
    PipeMare: Asynchronous Pipeline Parallel DNN Training (2021), technique 1;
    `look_ahead`: Nesterov's method, as Ajanthan et al. (2025) take it for pipelines.
    """

    kind: Literal["pipelined"] = "pipelined"
    family: ClassVar[str] = "horizontal"
    numbers: ClassVar[tuple[str, ...]] = ("delay_power", "look_ahead")
    protocols: ClassVar[tuple[str, ...]] = ("pipeline",)
    delay_power: Annotated[float, Field(ge=0)] = 0.0
    """Power of a stage's delay by which its step is divided; 0 for the same step."""
    look_ahead: Annotated[float, Field(ge=0, lt=1)] = 0.0
    """Part of the last move by which the model that is read is ahead."""
    optimizer: Optimizer | None = None
    """Optimiser of all stages together; by default the gradient is the direction."""

    def messages(self, shape: ProblemShape, *, common: bool) -> Bytes:
        return {}

    def make(self, setup: "RunSetup", constants: "Constants") -> "PipelinedKernel":
        from .kernel import build

        return build(self, setup, constants)
