"""Asynchronous methods of the field on horizontally divided data. No JAX in here.

A client starts from the model that it read and makes Q local steps; what it sends is
the sum of its gradients (divided by nothing, so that one step is plain SGD). What
changes how much a contribution counts stands here; when or whether it counts is the
protocol's.
"""

from functools import cached_property
from typing import Any, Literal, TypeVar

from pydantic import model_validator

from ...config.base import LocatedError
from ..optimizers.part import ServerOptimizer, with_steps
from ..part import StepSize
from .chain import Chained, StagePart
from .parts import (
    Clip,
    ClippedWork,
    Compensate,
    Compensation,
    Divisor,
    LocalOptions,
    LocalWork,
    Mean,
    NoiseOptions,
    Optimise,
    Positive,
    ScaleByWeight,
    SentNoise,
    ServerStep,
    Weigh,
)
from .weights import AnyWeight, ConstantWeight

Some = TypeVar("Some", bound=StagePart)


class Mechanism(NoiseOptions):
    """Clips every contribution and adds noise to it before it is sent.

    The noise's scale is a multiplier times the sensitivity when one sample is replaced:
    2 C / b where each sample's gradient is clipped to C, 2 C where whole contributions
    are.

    Source: Abadi et al., Deep Learning with Differential Privacy (2016), Algorithm 1;
    `contribution`: McMahan et al. (2018), Algorithm 1.
    """

    clip_bound: Positive
    """C, l2 norm."""
    clip: Literal["sample", "contribution"] = "sample"
    """Object of the clipping: each sample's gradient, or all that a client sends."""


class Federated(LocalOptions, Chained):
    """Common base of the named methods: local steps, and noise on what is sent.

    A client that has fewer samples than `batch` takes all that it has.
    """

    mechanism: Mechanism | None = None
    """Clipping and noise of what clients send; by default none."""

    def of_client(self, proximal: float | None = None) -> tuple[StagePart, ...]:
        """Returns the stages of a client: its work, and what it sends."""
        given = self.mechanism
        if given is None:
            return (self.with_own(LocalWork, proximal=proximal),)
        noise = SentNoise.model_construct(
            law=given.law, multiplier=given.multiplier, budget=given.budget
        )
        if given.clip == "sample":
            return (ClippedWork(clip_bound=given.clip_bound), noise)
        work = self.with_own(LocalWork, proximal=proximal)
        return (work, Clip(clip_bound=given.clip_bound), noise)

    def of_server(
        self,
        step_size: StepSize,
        optimizer: ServerOptimizer | None,
        adjusted: tuple[StagePart, ...] = (),
    ) -> tuple[StagePart, ...]:
        """Returns the stages of a server that steps by a mean: its optimiser last."""
        weigh = self.with_own(Weigh)
        if optimizer is not None:
            scaled = not (optimizer.is_linear or weigh.weight.constant)
            adjusted += (ScaleByWeight(),) if scaled else ()
            adjusted += (Optimise.model_construct(optimizer=optimizer),)
        step = ServerStep.model_construct(step_size=step_size)
        return (weigh, self.with_own(Mean), *adjusted, step)

    def with_own(self, stage: type[Some], **options: Any) -> Some:
        """Returns a stage with the options that the method has of the same names."""
        names = {*type(self).model_fields} & {*stage.model_fields} - {"kind"} - {
            *options
        }
        return stage.model_construct(**{n: getattr(self, n) for n in names}, **options)

    @model_validator(mode="after")
    def _samples_are_clipped_in_one_step(self) -> "Federated":
        by_sample = self.mechanism is not None and self.mechanism.clip == "sample"
        steps, epochs = self.local_steps or 1, self.local_epochs
        if by_sample and (steps > 1 or epochs is not None):
            given = f"local_steps {steps}" if epochs is None else "local_epochs"
            raise LocatedError(
                f"mechanism.clip must be contribution for local steps, got 'sample' "
                f"with {given}; a later step depends on all samples of the earlier "
                f"ones",
            )
        if by_sample and self.local_optimizer is not None:
            raise LocatedError(
                "mechanism.clip must be contribution with local_optimizer, which makes "
                "a step of the samples' gradients together, got 'sample'; change it",
            )
        return self


class Sgd(Federated):
    """Stochastic gradient descent: contributions taken at the model that was read.

    The server steps by the mean of a commit's contributions, each times its weight.
    With local steps it is asynchronous local SGD, or FedAvg where the protocol is
    synchronous.

    Source: Agarwal and Duchi, Distributed Delayed Stochastic Optimization (2011);
    Stich, Local SGD Converges Fast and Communicates Little (2019).
    """

    kind: Literal["sgd"] = "sgd"
    local_step_size: StepSize | None = None
    """Step size of the local steps; by default `step_size`, with which the server adds
    up what the clients moved."""
    weight: AnyWeight = ConstantWeight()
    """Weight of a contribution, by its staleness."""
    compensation: Compensation | None = None
    """First-order compensation of the delay; by default none."""
    divisor: Divisor | None = None
    """Number by which the sum of a commit's contributions is divided, where the
    protocol gathers them; by default how many there are. `expected`: how many trials of
    a round are in time on average, by the clients' laws (MindFlayer)."""
    optimizer: ServerOptimizer | None = None
    """The server's optimiser; by default the mean contribution is the direction. Where
    it is not linear, as signs or Adam, a commit's mean weight multiplies its step."""

    @property
    def local_rule(self) -> StepSize:
        own = self.local_step_size
        return self.step_size if own is None else own

    @cached_property
    def stages(self) -> tuple[StagePart, ...]:
        given = self.compensation
        compensated = (Compensate.model_construct(**dict(given)),) if given else ()
        return (
            *self.of_client(),
            *compensated,
            *self.of_server(self.step_size, self.optimizer),
        )

    @model_validator(mode="before")
    @classmethod
    def _rates_are_steps(cls, data: Any) -> Any:
        data = with_steps(
            data, optimizer="step_size", local_optimizer="local_step_size"
        )
        if isinstance(data, dict) and data.get("local_optimizer") is not None:
            return {"step_size": 1.0, **data}
        return data
