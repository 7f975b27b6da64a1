"""Averages of the models that clients send: FedAvg, FedAsync, FedBuff. No JAX here."""

from functools import cached_property
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field, model_validator

from ..optimizers.part import ServerOptimizer, with_steps
from ..part import StepSize
from .chain import StagePart
from .part import Federated
from .parts import AsMoves, Count, LimitByStaleness, Mix, Weigh, Weighting
from .weights import AnyWeight, PolynomialWeight


class FedAvg(Federated):
    """Averages the models of a round's clients, weighted by their numbers of samples.

    Clients make local epochs, or local steps, from the server's model w; the server
    goes from w to the sum of n_k / n w_k over the clients of the round, n the sum of
    their n_k. With `proximal` it is FedProx, and with an `optimizer`, for which w minus
    that sum is a gradient, FedAvgM, FedAdam or FedYogi. A fraction of the clients in
    each round is `clients.selection`.

    Source: McMahan et al., Communication-Efficient Learning of Deep Networks from
    Decentralized Data (2017), Algorithm 1; Li et al., Federated Optimization in
    Heterogeneous Networks (2020), eq. 2; Reddi et al., Adaptive Federated Optimization
    (2021), Algorithm 2.
    """

    kind: Literal["fed_avg"] = "fed_avg"
    local_steps: Count | None = None
    """Q: steps that a client makes on its own copy, each on a batch of its own; either
    these or `local_epochs` must be given."""
    server_step_size: StepSize = 1.0
    """Step from the old model to the mean of the new ones; `step_size` is the
    clients'."""
    weighting: Weighting = "samples"
    """Mean over a round's clients: in proportion to their numbers of samples, or of all
    alike."""
    proximal: Annotated[float, Field(ge=0)] = 0.0
    """mu of FedProx: clients step on their loss plus mu / 2 times the squared distance
    from the server's model."""
    optimizer: ServerOptimizer | None = None
    """The server's optimiser; by default none."""

    protocols: ClassVar[tuple[str, ...]] = ("synchronous",)

    @model_validator(mode="before")
    @classmethod
    def _rates_are_steps(cls, data: Any) -> Any:
        return with_steps(
            data, optimizer="server_step_size", local_optimizer="step_size"
        )

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
    fresh model counts as 0; clients step on their loss plus `proximal` / 2 times the
    squared distance from what they read.

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

    protocols: ClassVar[tuple[str, ...]] = ("asynchronous", "cyclic")

    @model_validator(mode="before")
    @classmethod
    def _rates_are_steps(cls, data: Any) -> Any:
        return with_steps(data, local_optimizer="step_size")

    @cached_property
    def stages(self) -> tuple[StagePart, ...]:
        return (
            *self.of_client(self.proximal),
            self.with_own(Weigh),
            self.with_own(Mix),
        )


class FedBuff(Federated):
    """Buffers what clients moved, weighted by staleness; steps by the buffer's mean.

    The mean is over the number of contributions, not over their weights. Staleness is
    that of the contribution's arrival in the buffer. With the optimiser `amsgrad` and a
    `staleness_threshold` it is FADAS, whose `b2` is 0.99 (its authors' code; optax's is
    0.999). The paper corrects no bias of the moments, for which `bias_correction_mu`
    and `bias_correction_nu` are false; its authors' code does after the maximum, optax
    by default before it. Without, the first step is (1 - b1) / sqrt(1 - b2) times eta.

    Source: Nguyen et al., Federated Learning with Buffered Asynchronous Aggregation
    (2022), Algorithms 1 and 2, and section 3 (staleness); FADAS: Wang et al., FADAS:
    Towards Federated Adaptive Asynchronous Optimization (2024), as methods.md has it.
    Its authors' code (yujiaw98/FADAS) takes eta / tau for min(eta, 1 / tau).
    """

    kind: Literal["fed_buff"] = "fed_buff"
    server_step_size: StepSize = 1.0
    """eta_g; `step_size` is the clients' eta_l."""
    weight: AnyWeight = PolynomialWeight()
    """Weight of a contribution, by its staleness."""
    weighting: Weighting = "equal"
    """Mean over the buffer: of contributions alike, or in proportion to the samples of
    their clients."""
    optimizer: ServerOptimizer | None = None
    """The server's optimiser; by default the mean of the buffer is the move. Where it
    is not linear, as signs or Adam, a buffer's mean weight multiplies its step."""
    staleness_threshold: Annotated[int, Field(ge=0)] | None = None
    """tau_c of FADAS: a buffer whose largest staleness tau is beyond it is applied with
    the step size min(eta, 1 / tau), eta being `server_step_size` times the optimiser's
    learning rate; by default every buffer with eta."""

    protocols: ClassVar[tuple[str, ...]] = ("buffered",)

    @model_validator(mode="before")
    @classmethod
    def _rates_are_steps(cls, data: Any) -> Any:
        return with_steps(
            data, optimizer="server_step_size", local_optimizer="step_size"
        )

    @cached_property
    def stages(self) -> tuple[StagePart, ...]:
        limit = self.staleness_threshold
        limited = () if limit is None else (self.with_own(LimitByStaleness),)
        server = self.of_server(self.server_step_size, self.optimizer, limited)
        return (*self.of_client(), AsMoves(), *server)
