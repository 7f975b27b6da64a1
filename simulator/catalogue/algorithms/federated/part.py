"""Asynchronous methods of the field on horizontally divided data. No JAX in here.

A client starts from the model that it read and makes Q local steps; it sends the sum of
its gradients (divided by nothing, so that one step is plain SGD). The weight of a
contribution is decided here; the protocol decides when or whether it counts.
"""

from functools import cached_property
from typing import Annotated, ClassVar, Literal

from pydantic import Field, model_validator

from ....engine.algorithm import StepSize
from ....engine.optimizers.part import ServerOptimizer, with_steps
from ....parts.base import LocatedError
from .chain import Chained, StagePart
from .clients import (
    Clip,
    ClippedWork,
    Count,
    LocalOptions,
    LocalWork,
    NoiseOptions,
    Positive,
    SentNoise,
)
from .server import (
    AsMoves,
    Compensate,
    Compensation,
    Divisor,
    LimitByStaleness,
    Mean,
    Mix,
    Optimise,
    ScaleByWeight,
    ServerStep,
    Weigh,
    Weighting,
)
from .weights import AnyWeight, ConstantWeight, PolynomialWeight


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
    """Common base of the named methods: local steps, and noise on messages.

    A client that has fewer samples than `batch_size` takes all that it has.
    """

    mechanism: Mechanism | None = None
    """Clipping and noise of clients' messages; by default none."""

    rates: ClassVar[dict[str, str]] = {
        "optimizer": "server_step_size",
        "local_optimizer": "step_size",
    }
    """Step size that the learning rate of each optimiser takes the place of."""

    @model_validator(mode="before")
    @classmethod
    def _rates_are_steps(cls, data: object) -> object:
        return with_steps(data, **cls.rates)

    def keys_of(self, stage: StagePart) -> tuple[str | int, ...]:
        if isinstance(stage, Compensate):
            return ("compensation",)
        return ("mechanism",) if isinstance(stage, ClippedWork | SentNoise) else ()

    def of_client(self, proximal: float | None = None) -> tuple[StagePart, ...]:
        """Returns the stages of a client: its work and its sending."""
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
    """Step size of the local steps; by default `learning_rate`, with which the server
    adds up the clients' moves."""
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

    rates: ClassVar[dict[str, str]] = {
        "optimizer": "step_size",
        "local_optimizer": "local_step_size",
    }

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
    def _rates_are_steps(cls, data: object) -> object:
        data = with_steps(data, **cls.rates)
        if isinstance(data, dict) and data.get("local_optimizer") is not None:
            return {"step_size": 1.0, **data}
        return data


class FedAvg(Federated):
    """Averages the models of a round's clients, weighted by their numbers of samples.

    Clients make local epochs, or local steps, from the server's model w; the server
    goes from w to the sum of n_k / n w_k over the clients of the round, n the sum of
    their n_k. With `mu` it is FedProx, and with an `optimizer`, for which w minus
    that sum is a gradient, FedAvgM, FedAdam or FedYogi. A fraction of the clients in
    each round is `clients.selection`.

    Source: McMahan et al., Communication-Efficient Learning of Deep Networks from
    Decentralized Data (2017), Algorithm 1; Li et al., Federated Optimization in
    Heterogeneous Networks (2020), eq. 2; Reddi et al., Adaptive Federated Optimization
    (2021), Algorithm 2.
    """

    kind: Literal["fed_avg"] = "fed_avg"
    local_steps: Count | None = None
    """Q: steps that a client makes on its own copy, each on a new batch; set either
    these or `local_epochs`."""
    server_step_size: StepSize = 1.0
    """Step from the old model to the mean of the new ones; `learning_rate` is the
    clients'."""
    weighting: Weighting = "samples"
    """Mean over a round's clients: in proportion to their numbers of samples, or with
    equal weights."""
    proximal: Annotated[float, Field(ge=0)] = 0.0
    """mu of FedProx: clients step on their loss plus mu / 2 times the squared distance
    from the server's model."""
    optimizer: ServerOptimizer | None = None
    """The server's optimiser; by default none."""

    protocols: ClassVar[tuple[str, ...]] = ("synchronous",)

    @model_validator(mode="after")
    def _says_how_long(self) -> "FedAvg":
        if self.local_epochs is None and self.local_steps is None:
            raise ValueError(
                "must have local_epochs or local_steps; add for example local_epochs: 1"
            )
        return self

    @cached_property
    def stages(self) -> tuple[StagePart, ...]:
        client = self.of_client(self.proximal or None)
        return (
            *client,
            AsMoves(),
            *self.of_server(self.server_step_size, self.optimizer),
        )


class FedAsync(Federated):
    """Mixes each client's model into the server's: x <- (1 - a) x + a x_client.

    a is `mixing` times the weight of this contribution's own staleness, in which a
    fresh model counts as 0; clients step on their loss plus `mu` / 2 times the
    squared distance from the model that they read.

    Source: Xie, Koyejo and Gupta, Asynchronous Federated Optimization (2019),
    Algorithm 1.
    """

    kind: Literal["fed_async"] = "fed_async"
    mixing: Annotated[float, Field(gt=0, le=1)] = 0.6
    """alpha."""
    proximal: Annotated[float, Field(ge=0)] = 0.005
    """rho."""
    weight: AnyWeight = PolynomialWeight()
    """Weight of a contribution, by its staleness."""

    protocols: ClassVar[tuple[str, ...]] = ("asynchronous", "cyclic", "prescribed")

    @cached_property
    def stages(self) -> tuple[StagePart, ...]:
        return (
            *self.of_client(self.proximal),
            self.with_own(Weigh),
            self.with_own(Mix),
        )


class FedBuff(Federated):
    """Buffers clients' moves, weighted by staleness; steps by the buffer's mean.

    The mean is over the number of contributions, not over their weights. Staleness is
    measured when the contribution arrives in the buffer. With the optimiser `amsgrad`
    and a `staleness_threshold` it is FADAS, whose `b2` is 0.99 (its authors' code;
    optax's is 0.999). The paper corrects no bias of the moments, for which
    `bias_correction_mu` and `bias_correction_nu` are false; its authors' code does
    after the maximum, optax by default before it. Without, the first step is (1 - b1) /
    sqrt(1 - b2) times eta.

    Source: Nguyen et al., Federated Learning with Buffered Asynchronous Aggregation
    (2022), Algorithms 1 and 2, and section 3 (staleness); FADAS: Wang et al., FADAS:
    Towards Federated Adaptive Asynchronous Optimization (2024).
    Its authors' code (yujiaw98/FADAS) takes eta / tau for min(eta, 1 / tau).
    """

    kind: Literal["fed_buff"] = "fed_buff"
    server_step_size: StepSize = 1.0
    """eta_g; `learning_rate` is the clients' eta_l."""
    weight: AnyWeight = PolynomialWeight()
    """Weight of a contribution, by its staleness."""
    weighting: Weighting = "equal"
    """Mean over the buffer: with equal weights, or in proportion to the clients'
    samples."""
    optimizer: ServerOptimizer | None = None
    """The server's optimiser; by default the mean of the buffer is the move. Where it
    is not linear, as signs or Adam, a buffer's mean weight multiplies its step."""
    staleness_threshold: Annotated[int, Field(ge=0)] | None = None
    """tau_c of FADAS: a buffer whose largest staleness tau is beyond it is applied with
    the step size min(eta, 1 / tau), eta being `server_learning_rate` times the
    optimiser's learning rate; by default every buffer with eta."""

    protocols: ClassVar[tuple[str, ...]] = ("buffered",)

    @cached_property
    def stages(self) -> tuple[StagePart, ...]:
        limit = self.staleness_threshold
        limited = () if limit is None else (self.with_own(LimitByStaleness),)
        server = self.of_server(self.server_step_size, self.optimizer, limited)
        return (*self.of_client(), AsMoves(), *server)
